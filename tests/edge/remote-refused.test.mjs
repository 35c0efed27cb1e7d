// What the client of a host does when it is refused, put off or not answered: it says so, goes on later, and keeps the order of calls.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import init, { SessionStore } from "sessionlog";
import { RemoteStore } from "sessionlog/remote";
import { WebSocket } from "undici";
import { call, freshDisk, message, skip, startHost, tokens, until } from "./host.mjs";

let host;
let slow;
before(async () => {
  if (skip) return;
  await init();
  host = await startHost({ disk: freshDisk({ memory: true }) });
  slow = await startHost({ disk: freshDisk({ memory: true }), env: { CALLS_PER_SECOND: "40" } });
});
after(() => Promise.all([host?.kill(), slow?.kill()]));

const remote = (at = host, more = {}) => new RemoteStore({ url: at.url, token: tokens.alice, WebSocket, ...more });
const openStore = (more, options = {}) => SessionStore.open({ storage: remote(host, more).storage, ...options });
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A WebSocket that hands over what comes and goes to `pass`, which may change it or keep it back. */
const through = ({ send = (data) => data, take = (data) => data }) =>
  class extends WebSocket {
    send(data) {
      const out = send(data, this);
      if (out !== null) super.send(out);
    }
    addEventListener(type, listener) {
      super.addEventListener(type, type !== "message" ? listener : (event) => {
        const data = take(event.data);
        if (data !== null) listener({ data });
      });
    }
  };
class NeverOpens extends EventTarget {
  send() {}
  close() {}
}
class NeverOpensAndEnds extends NeverOpens {
  constructor() {
    super();
    setTimeout(() => this.dispatchEvent(Object.assign(new Event("close"), { code: 1006, reason: "" })), 5);
  }
}

test("appends keep the order of their calls when the host takes less than comes", { skip, timeout: 60_000 }, async () => {
  await remote(slow).create({ id: "order" });
  const session = remote(slow).session("order");
  const receipts = await Promise.all(Array.from({ length: 300 }, (_, n) => session.append("user/message", { text: String(n) })));
  assert.deepEqual(receipts.map(({ seq }) => seq), Array.from({ length: 300 }, (_, n) => n));
  await sleep(1_000);
  assert.deepEqual((await session.read()).map(({ data }) => data.text), Array.from({ length: 300 }, (_, n) => String(n)));
  assert.equal(session.unacknowledged, 0);
  session.close();
});

test("what is put off is asked again: the lease, subscribing, word to the others", { skip, timeout: 60_000 }, async () => {
  const first = await openStore();
  const own = first.create("asked-again");
  own.append("user/message", { text: "first" });
  await own.flush();
  await first.dispose();
  // The first of each kind is not let through, and refused as one of too many is.
  const refused = new Set();
  const Refusing = through({
    send(data, socket) {
      const { t } = data === "ping" ? {} : JSON.parse(data);
      if (!["lease", "tail", "tell"].includes(t) || refused.has(t)) return data;
      refused.add(t);
      setTimeout(() => socket.dispatchEvent(new MessageEvent("message", { data: JSON.stringify({ t: "refused", re: t, code: "unavailable", message: "wait" }) })), 5);
      return null;
    },
  });
  const store = await openStore({ WebSocket: Refusing });
  const session = await store.resume("asked-again");
  assert.equal(session.readOnly, false);
  const other = await openStore();
  const follower = await other.resume("asked-again");
  const listener = remote(host, { WebSocket: Refusing }).session("asked-again");
  await listener.info();
  const seen = [];
  // The connection stands before it subscribes, so that it asks with a message.
  const opened = new Promise((resolve) => listener.onState((state) => state === "open" && resolve()));
  listener.subscribe({ onEvent() {} })();
  await opened;
  listener.subscribe({ onEvent: ({ data }) => seen.push(data.text) });
  session.append("user/message", { text: "second" });
  await session.flush();
  await until(() => follower.seq === 2 && seen.length === 2, () => `the follower and the listener to see two events: ${follower.seq}, ${seen}`);
  assert.deepEqual([...refused].sort(), ["lease", "tail", "tell"]);
  listener.close();
  await store.dispose();
  await other.dispose();
});

test("a session is resumed while its host is asked too much", { skip, timeout: 60_000 }, async () => {
  const flood = remote(slow).session("flooded");
  await remote(slow).create({ id: "flooded" });
  let over = false;
  const flooding = (async () => {
    for (; !over; await sleep(50)) for (let n = 0; n < 10; n++) flood.append("user/message", { text: "f" }).catch(() => {});
  })();
  await sleep(1_500);
  const store = await SessionStore.open({ storage: remote(slow, { retryMs: 30_000 }).storage });
  const session = await store.resume("flooded");
  assert.equal(session.id, "flooded");
  over = true;
  await flooding;
  flood.close();
  await store.dispose();
});

test("a message that is too long is refused by its name", { skip }, async () => {
  await remote().create({ id: "long" });
  const session = remote().session("long");
  await assert.rejects(session.append("user/message", { text: "x".repeat(4_200_000) }), { code: "quota" });
  await session.append("user/message", { text: "short" });
  session.close();
});

test("a token that may only read: the session is resumed and followed", { skip, timeout: 60_000 }, async (t) => {
  const disk = freshDisk({ memory: true });
  const hash = (text) => createHash("sha256").update(text).digest("hex");
  const access = (kind) => ({ disk, env: { CALLERS: JSON.stringify({ alice: { tokens: [hash(tokens.alice)], access: kind } }) } });
  let at = await startHost(access("write"));
  t.after(() => at.kill());
  const store = await SessionStore.open({ storage: remote(at).storage });
  const session = store.create("read");
  session.append("user/message", { text: "x" });
  await session.flush();
  await store.dispose();
  await at.kill();
  at = await startHost(access("read"));
  const reader = await SessionStore.open({ storage: remote(at).storage });
  const again = await reader.resume("read");
  assert.deepEqual([again.readOnly, again.seq], [true, 1]);
  const own = remote(at).session("read");
  await assert.rejects(own.append("user/message", { text: "no" }), { code: "forbidden" });
  own.close();
  await reader.dispose();
});

test("no connection opens, though requests are answered: resume says so in time, or follows", { skip, timeout: 60_000 }, async () => {
  const first = await openStore();
  const own = first.create("no-socket");
  own.append("user/message", { text: "x" });
  await own.flush();
  await first.dispose();
  for (const Socket of [NeverOpens, NeverOpensAndEnds]) {
    const store = await openStore({ WebSocket: Socket }, { lockTimeoutMs: 200 });
    await assert.rejects(store.resume("no-socket"), { code: "unavailable" });
    await store.dispose();
  }
  // It opens late: who followed meanwhile writes.
  let open = false;
  class OpensLate {
    constructor(...args) {
      return open ? new WebSocket(...args) : new NeverOpensAndEnds();
    }
  }
  const store = await openStore({ WebSocket: OpensLate, retryMs: 0 });
  const session = await store.resume("no-socket");
  assert.deepEqual([session.readOnly, session.seq], [true, 1]);
  open = true;
  await until(() => !session.readOnly, "the one who followed to write");
  await store.dispose();
});

test("a token that is not valid, a session that is not there: appends and subscribers are told, whatever the WebSocket says", { skip }, async () => {
  const stranger = remote(host, { token: "not a token" }).session("any");
  await assert.rejects(stranger.append("user/message", { text: "x" }), { code: "unauthorized" });
  await remote().create({ id: "there" });
  const gone = remote(host, { WebSocket: NeverOpensAndEnds }).session("never-made");
  await assert.rejects(gone.append("user/message", { text: "x" }), { code: "missing" });
  // What is there is tried again.
  const there = remote(host, { WebSocket: NeverOpensAndEnds }).session("there");
  const states = [];
  there.onState((state) => states.push(state));
  there.subscribe({ onEvent() {} });
  await until(() => states.length > 3, "it to try again");
  assert.ok(states.every((state) => state === "connecting"));
  there.close();
});

test("a fetch that never answers, or never ends its answer, is given up", { skip }, async (t) => {
  const endless = () => new Response(new ReadableStream({ pull: () => new Promise(() => {}) }));
  for (const answer of [() => new Promise(() => {}), async () => endless()]) {
    t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
    const signals = [];
    const store = remote(host, { retryMs: 1_000, fetch: (_, { signal }) => (signals.push(signal), answer()) });
    const listing = assert.rejects(store.list(), { code: "unavailable" });
    for (let n = 0; n < 20; n++) {
      await new Promise((resolve) => setImmediate(resolve));
      t.mock.timers.tick(20_000);
    }
    await listing;
    assert.ok(signals.length > 0 && signals.every(({ aborted }) => aborted));
    t.mock.timers.reset();
  }
});

test("a task that is waited for may take longer than an answer", { skip }, async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  let answer;
  const store = remote(host, { fetch: () => new Promise((resolve) => (answer = resolve)) });
  const running = store.session("any").run("say x", { model: "scripted/demo", wait: true });
  await new Promise((resolve) => setImmediate(resolve));
  t.mock.timers.tick(3_600_000);
  answer(Response.json({ answer: "x" }));
  assert.deepEqual(await running, { answer: "x" });
});

test("a listener that throws loses nothing of what comes behind", { skip }, async (t) => {
  const reports = t.mock.method(console, "error", () => {});
  await remote().create({ id: "throws" });
  const session = remote().session("throws");
  await session.appendAll(Array.from({ length: 10 }, (_, n) => message(String(n))));
  const seen = [];
  session.onState(() => { throw new Error("of the state's listener"); });
  session.subscribe({
    onEvent({ seq }) { seen.push(seq); if (seq === 3) throw new Error("of the listener"); },
    onLive() { throw new Error("of the listener of the end"); },
  });
  await session.append("user/message", { text: "later" });
  await until(() => seen.length === 11, () => `11 events: ${seen}`);
  assert.deepEqual(seen, Array.from({ length: 11 }, (_, n) => n));
  assert.ok(reports.mock.callCount() >= 2);
  session.close();
});

test("a delete whose answer was lost is not told that there is no such session", { skip }, async () => {
  await remote().create({ id: "del" });
  let lost = 0;
  const flaky = async (input, init) => {
    const answer = await fetch(input, init);
    if (init.method !== "DELETE" || lost++ > 0) return answer;
    throw new TypeError("the connection was lost");
  };
  await remote(host, { fetch: flaky }).delete("del");
  assert.equal(lost, 2);
  assert.equal((await call(host, "GET", "/v1/sessions/del")).status, 404);
  await assert.rejects(remote().delete("del"), { code: "missing" });
});

test("a token that cannot be had is an error of ours", { skip }, async () => {
  const why = new Error("signed out");
  const none = remote(host, { token: () => { throw why; } });
  await assert.rejects(none.list(), (error) => error.name === "SessionLogError" && error.code === "unavailable" && error.cause === why && /signed out/.test(error.message));
});
