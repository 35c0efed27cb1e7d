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

/** Kills the host and starts it anew at the same address; how long it took until it answered, with events of `session` when it is named. */
async function restart(session) {
  const { port } = host;
  await host.kill();
  const started = Date.now();
  host = await startHost({ disk, port });
  const { status } = session === undefined ? await call(host, "GET", "/v1/health", { token: null }) : await call(host, "GET", `/v1/sessions/${session}/events`);
  assert.equal(status, 200);
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
    restarts.push(await restart(kill % 2 === 0 ? "shared" : "alone"));
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
  t.diagnostic(`${total} events acknowledged, ${sent} sent; restart to the first read of a session: median ${sorted[KILLS / 2]} ms, longest ${sorted.at(-1)} ms`);
  assert.ok(sorted.at(-1) < 2_000, `a restart took ${sorted.at(-1)} ms`);
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

test("a run with a key is carried out once: sent again after a kill it gets what became of it", { skip }, async () => {
  await call(host, "POST", "/v1/sessions", { body: { id: "keyed" } });
  const all = async () => (await call(host, "GET", "/v1/sessions/keyed/events")).json.events;
  const count = async (type) => (await all()).filter((event) => event.type === type).length;
  const run = (key, task, more) => call(host, "POST", "/v1/sessions/keyed/runs", { body: { task, model: "scripted/demo", ...more }, headers: { "idempotency-key": key } });
  const long = () => run("run-1", "write /n.txt: once\nwait 60000\nsay never", { approval: "never", wait: true });
  const lost = long().catch(() => null);
  await until(async () => (await count("tool/result")) === 1, "the work");
  await restart();
  await lost;
  const { status, json } = await long();
  assert.deepEqual([status, json.status, json.answer, json.error], [202, "failed", null, "the host was stopped while it ran the task"]);
  assert.deepEqual((await long()).json.status, "failed");
  assert.deepEqual([await count("turn/start"), await count("user/message"), await count("tool/result")], [1, 1, 1]);

  // One that waits for a verdict goes on: who asks again before and after gets what is known then.
  const asks = () => run("run-2", "write /b.txt: agreed\nsay over", { approval: "always", wait: true });
  const cut = asks().catch(() => null);
  const asked = await until(async () => (await all()).find(({ type }) => type === "approval/requested"), "the question");
  await restart();
  await cut;
  assert.deepEqual((await asks()).json.status, "suspended");
  await call(host, "POST", `/v1/sessions/keyed/approvals/${asked.data.callId}`, { body: { verdict: "approved" } });
  const done = await until(async () => {
    const answer = (await asks()).json;
    return answer.status === "suspended" ? null : answer;
  }, "the end of the turn");
  assert.deepEqual([done.status, done.answer, done.error], ["completed", "over", null]);
  assert.equal(await count("turn/start"), 2);

  // What does not wait is answered as before.
  const started = await run("run-3", "say x");
  await until(async () => (await count("turn/end")) === 3, "the third run");
  await restart();
  assert.deepEqual((await run("run-3", "say x")).json, started.json);
  assert.equal(await count("turn/start"), 3);
});

test("sessions that were made, and runs that were taken back, under a key: sent again after a kill they are answered the same", { skip }, async () => {
  const post = (path, key, body) => call(host, "POST", path, { body, headers: { "idempotency-key": key } });
  const make = () => post("/v1/sessions", "make-1", { id: "made", title: "Once" });
  const made = await make();
  await restart();
  assert.deepEqual([(await make()).status, (await make()).json], [201, made.json]);
  await post("/v1/sessions/made/runs", "run-1", { task: "write /a.txt: a\nsay x", model: "scripted/demo", approval: "never", wait: true });
  await post("/v1/sessions/made/undo", "undo-1", {});
  await restart();
  assert.equal((await post("/v1/sessions/made/undo", "undo-1", {})).json.ok, true);
  const { events } = (await call(host, "GET", "/v1/sessions/made/events")).json;
  assert.equal(events.filter(({ type }) => type === "undo/applied").length, 1);
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
