// SIGKILL in the middle of everything, twenty times: what was acknowledged is there, once, in order, whole.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import init from "sessionlog";
import { RemoteStore } from "sessionlog/remote";
import { WebSocket } from "undici";
import { call, freshDisk, message, skip, startHost, tokens, until } from "./host.mjs";

const KILLS = 20;
const BATCH = 40;
let host;
let disk;
before(async () => {
  if (skip) return;
  await init();
  disk = freshDisk();
  host = await startHost({ disk });
});
after(() => host?.kill());

/** Kills the host and starts it anew at the same address; how long it took until it answered. */
async function restart() {
  const { port } = host;
  await host.kill();
  const started = Date.now();
  host = await startHost({ disk, port });
  assert.equal((await call(host, "GET", "/v1/health", { token: null })).status, 200);
  return Date.now() - started;
}

/** Posts under one key until there is an answer. */
async function post(path, events, key) {
  for (;;) {
    try {
      const { status, json, text } = await call(host, "POST", `${path}/events`, { body: { events }, headers: { "idempotency-key": key } });
      if (status === 200) return json.events;
      assert.ok([429, 500, 502, 503].includes(status), text);
    } catch (error) {
      if (error.code === "ERR_ASSERTION") throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test(`killed ${KILLS} times under concurrent writers: every acknowledged event once, no gap, no torn batch, subscribers miss nothing`, { skip, timeout: 240_000 }, async (t) => {
  const store = new RemoteStore({ url: host.url, token: tokens.alice, WebSocket, retryMs: 30_000 });
  await store.create({ id: "shared" });
  await store.create({ id: "alone" });
  const acknowledged = { shared: new Map(), alone: new Map() };
  let sent = 0;
  let stop = false;
  const told = (id, receipts, texts) => receipts.forEach(({ seq, id: event }, n) => {
    assert.ok(!acknowledged[id].has(seq), `seq ${seq} was given out twice`);
    acknowledged[id].set(seq, { event, text: texts[n] });
  });

  const sockets = Array.from({ length: 3 }, () => store.session("shared"));
  const overSockets = sockets.map(async (session, writer) => {
    for (let n = 0; !stop; n++) {
      const text = `socket ${writer} ${n} ${"y".repeat(n % 300)}`;
      sent++;
      told("shared", [await session.append("user/message", { text })], [text]);
    }
  });
  const overHttp = [0, 1].map(async (writer) => {
    for (let n = 0; !stop; n++) {
      const text = `http ${writer} ${n}`;
      sent++;
      told("alone", await post("/v1/sessions/alone", [message(text)], `http-${writer}-${n}`), [text]);
    }
  });
  const batches = (async () => {
    for (let n = 0; !stop; n++) {
      const texts = Array.from({ length: BATCH }, (_, i) => `batch ${n} ${i}`);
      sent += BATCH;
      told("alone", await post("/v1/sessions/alone", texts.map(message), `batch-${n}`), texts);
    }
  })();
  const watcher = store.session("shared");
  const seen = [];
  watcher.subscribe({ onEvent: ({ seq, id }) => seen.push([seq, id]) });

  const restarts = [];
  for (let kill = 0; kill < KILLS; kill++) {
    await new Promise((resolve) => setTimeout(resolve, 150 + ((kill * 137) % 400)));
    restarts.push(await restart());
  }
  await new Promise((resolve) => setTimeout(resolve, 500));
  stop = true;
  await Promise.all([...overSockets, ...overHttp, batches]);

  for (const [id, acked] of Object.entries(acknowledged)) {
    const events = await store.session(id).read();
    assert.deepEqual(events.map(({ seq }) => seq), events.map((_, at) => at), "no gap");
    assert.equal(new Set(events.map((event) => event.id)).size, events.length);
    for (const [seq, { event, text }] of acked) assert.deepEqual([events[seq]?.id, events[seq]?.data.text], [event, text]);
    // Every writer went on until it was answered: what is stored is what was sent, each once.
    assert.equal(events.length, acked.size);
    const texts = events.map(({ data }) => data.text);
    assert.equal(new Set(texts).size, texts.length, "no event twice");
    texts.forEach((text, at) => {
      const [, n, first] = /^batch (\d+) 0$/.exec(text) ? [null, /^batch (\d+)/.exec(text)[1], at] : [null, null, null];
      if (n !== null) assert.deepEqual(texts.slice(first, first + BATCH), Array.from({ length: BATCH }, (_, i) => `batch ${n} ${i}`));
    });
    assert.equal(texts.filter((text) => text.startsWith("batch ")).length % BATCH, 0, "no torn batch");
  }
  const { size } = acknowledged.shared;
  await until(() => seen.length >= size, () => `${size} events at the subscriber, ${seen.length} came`);
  assert.deepEqual(seen, (await store.session("shared").read()).map(({ seq, id }) => [seq, id]));
  const total = acknowledged.shared.size + acknowledged.alone.size;
  assert.ok(total > 200, `${total}`);
  const sorted = [...restarts].sort((a, b) => a - b);
  t.diagnostic(`${total} events acknowledged, ${sent} sent; restart to serving: median ${sorted[KILLS / 2]} ms, longest ${sorted.at(-1)} ms`);
  [...sockets, watcher].forEach((session) => session.close());
  store.close();
});

test("a task cut off by a kill is closed honestly, and the session goes on", { skip }, async () => {
  await call(host, "POST", "/v1/sessions", { body: { id: "cut" } });
  await call(host, "POST", "/v1/sessions/cut/runs", { body: { task: "write /a.txt: a\nwait 60000\nsay never", model: "scripted/demo", approval: "never" } });
  await until(async () => (await call(host, "GET", "/v1/sessions/cut/events")).json.events.some(({ type }) => type === "step/start" || type === "assistant/chunk"), "the task to be under way");
  await restart();
  const { events } = (await call(host, "GET", "/v1/sessions/cut/events")).json;
  assert.deepEqual([events.at(-1).type, events.at(-1).data.reason.kind], ["turn/end", "interrupted"]);
  assert.equal((await call(host, "POST", "/v1/sessions/cut/runs", { body: { task: "say again", model: "scripted/demo", wait: true } })).json.answer, "again");
});

test("a question outlives a kill: the verdict that comes later lets the turn go on", { skip }, async () => {
  await call(host, "POST", "/v1/sessions", { body: { id: "asks" } });
  await call(host, "POST", "/v1/sessions/asks/runs", { body: { task: "write /b.txt: agreed\nsay over", model: "scripted/demo", approval: "always" } });
  const events = async () => (await call(host, "GET", "/v1/sessions/asks/events")).json.events;
  const asked = await until(async () => (await events()).find(({ type }) => type === "approval/requested"), "the question");
  await restart();
  assert.ok(!(await events()).some(({ type }) => type === "turn/end"), "the turn stays open");
  assert.equal((await call(host, "POST", `/v1/sessions/asks/approvals/${asked.data.callId}`, { body: { verdict: "approved" } })).status, 200);
  await until(async () => (await events()).some(({ type }) => type === "turn/end"), "the end of the turn");
  assert.equal((await events()).findLast(({ type }) => type === "turn/end").data.reason.kind, "completed");
  assert.equal((await call(host, "GET", "/v1/sessions/asks/files?path=/b.txt")).json.text, "agreed");
});

test("the index learns of what happened just before a kill", { skip }, async () => {
  await call(host, "POST", "/v1/sessions", { body: { id: "told" } });
  await call(host, "POST", "/v1/sessions/told/events", { body: { events: [message("just before")] } });
  await restart();
  await until(async () => (await call(host, "GET", "/v1/sessions")).json.sessions.some(({ id, events, preview }) => id === "told" && events === 1 && preview === "just before"), "the index");
});
