// The host's interface: what each call does, who may make it, and how much of it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createServer } from "node:http";
import { call, freshDisk, message, skip, startHost, tokens, until } from "./host.mjs";

let host;
before(async () => {
  if (!skip) host = await startHost({ disk: freshDisk({ memory: true }) });
});
after(() => host?.kill());

let count = 0;
async function made(options = {}) {
  const id = `s-${count++}`;
  const { status } = await call(host, "POST", "/v1/sessions", { ...options, body: { id } });
  assert.equal(status, 201);
  return `/v1/sessions/${id}`;
}
const append = (path, events, options = {}) => call(host, "POST", `${path}/events`, { ...options, body: { events } });
const read = async (path, from = 0, options = {}) => (await call(host, "GET", `${path}/events?from=${from}`, options)).json;
const texts = (events) => events.map((event) => event.data.text);

test("creates, appends, reads from a seq, lists, deletes", { skip }, async () => {
  const created = await call(host, "POST", "/v1/sessions", { body: { id: "first", title: "A title", cwd: "/work" } });
  assert.deepEqual([created.status, created.json], [201, { id: "first", seq: 1 }]);
  assert.equal((await call(host, "POST", "/v1/sessions", { body: { id: "first" } })).status, 409);
  const { json } = await append("/v1/sessions/first", [message("one"), message("two"), message("three")]);
  assert.deepEqual(json.events.map(({ seq }) => seq), [1, 2, 3]);
  assert.match(json.events[0].id, /^[0-9a-f]{16}$/);
  const tail = await read("/v1/sessions/first", 2);
  assert.deepEqual([texts(tail.events), tail.next, tail.more], [["two", "three"], 4, false]);
  const page = (await call(host, "GET", "/v1/sessions/first/events?from=1&limit=1")).json;
  assert.deepEqual([texts(page.events), page.next, page.more], [["one"], 2, true]);
  assert.deepEqual((await read("/v1/sessions/first", 99)).events, []);
  const messages = (await call(host, "GET", "/v1/sessions/first/messages")).json.messages;
  assert.deepEqual(messages.map(({ role, parts }) => [role, parts[0].text]), [["user", "one"], ["user", "two"], ["user", "three"]]);
  const listed = await until(async () => (await call(host, "GET", "/v1/sessions")).json.sessions.find(({ id, events }) => id === "first" && events === 4), "the index");
  assert.deepEqual([listed.title, listed.preview, listed.archived], ["A title", "one", false]);
  assert.deepEqual((await call(host, "DELETE", "/v1/sessions/first")).json, { deleted: true });
  assert.equal((await call(host, "GET", "/v1/sessions/first")).status, 404);
  assert.ok(!(await call(host, "GET", "/v1/sessions")).json.sessions.some(({ id }) => id === "first"));
  // The id is free again, and nothing of the old session comes back.
  assert.deepEqual((await call(host, "POST", "/v1/sessions", { body: { id: "first" } })).json, { id: "first", seq: 0 });
});

test("an idempotency key is carried out once, also when it is sent many times at once, and belongs to one request", { skip }, async () => {
  const path = await made();
  const headers = { "idempotency-key": "order-1" };
  const answers = await Promise.all(Array.from({ length: 8 }, () => append(path, [message("once"), message("only")], { headers })));
  assert.deepEqual(new Set(answers.map(({ json }) => JSON.stringify(json.events))).size, 1);
  assert.equal(answers.filter(({ json }) => json.replayed).length, 7);
  assert.deepEqual(texts((await read(path)).events), ["once", "only"]);
  assert.equal((await append(path, [message("another")], { headers })).status, 422);
  assert.deepEqual(texts((await read(path)).events), ["once", "only"]);
  assert.equal((await append(path, [message("x")], { headers: { "idempotency-key": "k".repeat(129) } })).status, 400);
});

test("a key belongs to one call with one body, also while that is carried out", { skip }, async () => {
  const path = await made();
  const post = (what, key, body) => call(host, "POST", `${path}/${what}`, { body, headers: { "idempotency-key": key } });
  await post("runs", "k-0", { task: "write /a.txt: a\nsay x", model: "scripted/demo", approval: "never", wait: true });
  assert.equal((await post("undo", "k-1", {})).json.ok, true);
  assert.equal((await post("redo", "k-1", {})).status, 422);
  assert.equal((await post("redo", "k-2", {})).json.ok, true);
  assert.equal((await post("undo", "k-2", {})).status, 422);
  const run = (key, text) => post("runs", key, { task: `wait 400\nsay ${text}`, model: "scripted/demo", wait: true });
  const first = run("k-3", "A");
  await until(async () => (await call(host, "GET", path)).json.running, "the run");
  assert.equal((await run("k-3", "B")).status, 422);
  assert.equal((await post("undo", "k-3", {})).status, 422);
  const [one, same] = [await first, await run("k-3", "A")];
  assert.match(one.json.answer, /A$/);
  assert.deepEqual(same.json, one.json);
});

test("instructions that are too long for a run are refused by name", { skip }, async () => {
  const path = await made();
  const run = (system) => call(host, "POST", `${path}/runs`, { body: { task: "say x", system, model: "scripted/demo", wait: true } });
  const { status, json } = await run("s".repeat(3_000_000));
  assert.deepEqual([status, json.error.code], [413, "quota"]);
  assert.equal((await run("s".repeat(900_000))).json.answer, "x");
});

test("a batch is stored whole or not at all", { skip }, async () => {
  const path = await made();
  const { status, json } = await append(path, [message("fine"), { type: "no/such", data: {} }, message("fine too")]);
  assert.deepEqual([status, json.error.code, json.error.details.index], [400, "undeclared_type", 1]);
  assert.deepEqual((await read(path)).events, []);
  await append(path, [message("after")]);
  const { events } = await read(path);
  assert.deepEqual([texts(events), events[0].seq], [["after"], 0]);
});

test("secrets are taken out before they are stored", { skip }, async () => {
  const path = await made();
  const secret = `sk-ant-api03-${"aB3".repeat(31)}AA`;
  await append(path, [message(`my key is ${secret}`)]);
  const { events } = await read(path);
  assert.ok(!JSON.stringify(events).includes(secret), JSON.stringify(events));
  assert.match(events[0].data.text, /REDACTED/);
});

test("no token, a wrong one: 401. One that may only read: 403 for what writes", { skip }, async () => {
  const path = await made();
  for (const token of [null, "wrong", "", `${tokens.alice}x`, tokens.alice.slice(0, -1)]) {
    const { status, json, headers } = await call(host, "GET", path, { token });
    assert.deepEqual([status, json.error.code], [401, "unauthorized"], String(token));
    assert.match(headers.get("www-authenticate"), /^Bearer/);
  }
  const { reader: token } = tokens;
  assert.equal((await call(host, "GET", "/v1/sessions", { token })).status, 200);
  for (const [method, what, body] of [["POST", "/v1/sessions", {}], ["POST", `${path}/events`, { events: [message("x")] }], ["DELETE", path], ["POST", `${path}/runs`, { task: "x", model: "scripted/demo" }], ["POST", `${path}/undo`, {}]]) {
    const { status, json } = await call(host, method, what, { token, ...(body === undefined ? {} : { body }) });
    assert.deepEqual([status, json.error.code], [403, "forbidden"], what);
  }
});

test("a token that may only read sees what its caller has, and changes nothing of it", { skip }, async () => {
  const path = await made();
  await append(path, [message("to be read")]);
  const { aliceReads: token } = tokens;
  for (const what of ["", "/events", "/messages", "/runs", "/files"]) assert.equal((await call(host, "GET", path + what, { token })).status, 200, what);
  assert.deepEqual(texts((await read(path, 0, { token })).events), ["to be read"]);
  assert.ok((await call(host, "GET", "/v1/sessions", { token })).json.sessions.some(({ id }) => path.endsWith(`/${id}`)));
  for (const [method, what, body] of [["POST", "/v1/sessions", {}], ["POST", `${path}/events`, { events: [message("x")] }], ["DELETE", path], ["POST", `${path}/runs`, { task: "say x", model: "scripted/demo" }],
    ["POST", `${path}/undo`, {}], ["POST", `${path}/redo`, {}], ["POST", `${path}/cancel`, {}], ["POST", `${path}/steer`, { text: "x" }], ["POST", `${path}/approvals/x`, { verdict: "denied" }]]) {
    const { status, json } = await call(host, method, what, { token, ...(body === undefined ? {} : { body }) });
    assert.deepEqual([status, json.error.code], [403, "forbidden"], what);
  }
  assert.deepEqual(texts((await read(path)).events), ["to be read"]);
  // One who has no other tokens is a caller too; a list of something else is none.
  for (const [CALLERS, status] of [['{"only":{"readTokens":["0000000000000000000000000000000000000000000000000000000000000000"]}}', 401], ['{"alice":{"tokens":[],"readTokens":"all"}}', 503], ['{"alice":{}}', 503], ['{"alice":{"tokens":[]}}', 401]]) {
    const other = await startHost({ disk: freshDisk({ memory: true }), env: { CALLERS } });
    assert.equal((await call(other, "GET", "/v1/sessions")).status, status, CALLERS);
    await other.kill();
  }
});

test("a caller sees only own sessions: those of others are not there, whatever is asked", { skip }, async () => {
  const path = await made();
  await append(path, [message("of alice")]);
  const { bob: token } = tokens;
  for (const what of ["", "/events", "/messages", "/files"]) {
    const { status, text } = await call(host, "GET", path + what, { token });
    assert.equal(status, 404, what);
    assert.ok(!text.includes("of alice"));
  }
  assert.equal((await append(path, [message("of bob")], { token })).status, 404);
  // A name for the object cannot be smuggled in.
  assert.equal((await call(host, "GET", path, { token, headers: { "x-sessionlog-owner": "alice", "x-sessionlog-write": "1" } })).status, 404);
  assert.equal((await call(host, "GET", "/v1/sessions/..%2Falice%2Fs-0", { token })).status, 400);
  assert.deepEqual((await call(host, "GET", "/v1/sessions", { token })).json.sessions, []);
  // The same id in both hands is two sessions.
  const own = path.split("/").pop();
  assert.equal((await call(host, "POST", "/v1/sessions", { token, body: { id: own } })).status, 201);
  await append(path, [message("of bob")], { token });
  assert.deepEqual(texts((await read(path)).events), ["of alice"]);
  assert.deepEqual(texts((await read(path, 0, { token })).events), ["of bob"]);
});

test("what is no request of ours is refused by name", { skip }, async () => {
  const path = await made();
  for (const [method, what, body, status] of [
    ["POST", `${path}/events`, "not json", 400], ["POST", `${path}/events`, "[1]", 400], ["POST", `${path}/events`, {}, 400], ["POST", `${path}/events`, { events: [] }, 400],
    ["POST", `${path}/events`, { events: [5] }, 400], ["POST", `${path}/events`, { events: [{ type: 5, data: {} }] }, 400], ["POST", `${path}/events`, { events: [{ type: "user/message", data: [] }] }, 400],
    ["GET", `${path}/events?from=-1`, undefined, 400], ["GET", `${path}/nothing`, undefined, 404], ["GET", "/v2/sessions", undefined, 404], ["GET", `${path}/socket`, undefined, 426],
    ["POST", "/v1/sessions", { id: "-x" }, 400], ["POST", "/v1/sessions", { id: "a/b" }, 400], ["POST", `${path}/approvals/none`, { verdict: "perhaps" }, 400],
    ["POST", `${path}/approvals/none`, { verdict: "approved" }, 404], ["POST", `${path}/runs`, { model: "scripted/demo" }, 400], ["POST", `${path}/runs`, { task: "x", model: "scripted/demo", approval: "maybe" }, 400],
    ["POST", "/v1/kv", "not a frame", 400], ["POST", `${path}/kv`, "", 400],
    ["GET", "/v1/sessions/%zz", undefined, 400], ["POST", `${path}/approvals/%zz`, { verdict: "denied" }, 400], ["GET", "/v1/sessions/%ff", undefined, 400],
  ]) {
    const answer = await call(host, method, what, body === undefined ? {} : { body });
    assert.equal(answer.status, status, `${method} ${what} ${JSON.stringify(body)}: ${answer.text}`);
    assert.equal(typeof answer.json.error.message, "string");
  }
  // G05: nothing of that hurt the instance.
  const deep = `{"events":[{"type":"user/message","data":{"text":"x","source":${"[".repeat(100_000)}${"]".repeat(100_000)}}}]}`;
  assert.equal((await call(host, "POST", `${path}/events`, { body: deep })).status, 400);
  assert.equal((await append(path, [message("still working")])).status, 200);
});

test("a session whose making is refused is not there: not to be read, not listed, not counted, and free to be made", { skip }, async () => {
  const small = await startHost({ disk: freshDisk({ memory: true }), env: { MAX_SESSIONS_PER_CALLER: "1" } });
  try {
    for (const body of ['{"id":"again","cwd":"relative"}', '{"id":"again","title":"\\ud800"}', '{"id":"other","title":"\\ud800"}', '{"id":"other","cwd":5}']) {
      assert.equal((await call(small, "POST", "/v1/sessions", { body })).status, 400, body);
      assert.equal((await call(small, "GET", `/v1/sessions/${JSON.parse(body).id}`)).status, 404, body);
      assert.deepEqual((await call(small, "GET", "/v1/sessions")).json.sessions, [], body);
    }
    assert.deepEqual((await call(small, "POST", "/v1/sessions", { body: { id: "again", title: "Better" } })).json, { id: "again", seq: 1 });
    assert.equal((await call(small, "POST", "/v1/sessions", { body: { id: "again" } })).status, 409);
    assert.equal((await call(small, "GET", "/v1/sessions/again")).json.title, "Better");
  } finally {
    await small.kill();
  }
});

test("limits: body, events of a call, events of a session, sessions of a caller, calls a second", { skip }, async () => {
  const small = await startHost({ disk: freshDisk({ memory: true }), env: { MAX_BODY_BYTES: "20000", MAX_EVENTS_PER_CALL: "5", MAX_EVENTS_PER_SESSION: "12", MAX_SESSIONS_PER_CALLER: "2", CALLS_PER_SECOND: "15", MAX_SOCKETS_PER_SESSION: "1" } });
  try {
    const ask = (method, path, body) => call(small, method, path, body === undefined ? {} : { body });
    assert.equal((await ask("POST", "/v1/sessions", { id: "a" })).status, 201);
    assert.equal((await ask("POST", "/v1/sessions", { id: "b" })).status, 201);
    const third = await ask("POST", "/v1/sessions", { id: "c" });
    assert.deepEqual([third.status, third.json.error.code], [507, "quota"]);
    assert.equal((await ask("DELETE", "/v1/sessions/b")).status, 200);
    assert.equal((await ask("POST", "/v1/sessions", { id: "c" })).status, 201);

    const events = (n) => Array.from({ length: n }, (_, i) => message(`${i}`));
    assert.equal((await ask("POST", "/v1/sessions/a/events", { events: events(6) })).status, 413);
    const large = await ask("POST", "/v1/sessions/a/events", { events: [message("x".repeat(20_000))] });
    assert.deepEqual([large.status, large.json.error.code], [413, "quota"]);
    for (let n = 0; n < 2; n++) assert.equal((await ask("POST", "/v1/sessions/a/events", { events: events(5) })).status, 200);
    const full = await ask("POST", "/v1/sessions/a/events", { events: events(3) });
    assert.deepEqual([full.status, full.json.error.code], [507, "quota"]);
    assert.equal((await ask("POST", "/v1/sessions/a/events", { events: events(2) })).status, 200);

    const many = await Promise.all(Array.from({ length: 60 }, () => ask("GET", "/v1/sessions/c")));
    const refused = many.filter(({ status }) => status === 429);
    assert.ok(refused.length > 0 && refused.length < 60, `${refused.length} of 60`);
    assert.deepEqual([refused[0].json.error.code, refused[0].headers.get("retry-after")], ["too_many", "1"]);
    await until(async () => (await ask("GET", "/v1/sessions/c")).status === 200, "the rate to allow calls again");
  } finally {
    await small.kill();
  }
});

test("calls that come together are stored together, each with its own answer, in the order of arrival", { skip }, async () => {
  const path = await made();
  const ask = (events, key) => append(path, events, { headers: { "idempotency-key": key } });
  const calls = Array.from({ length: 40 }, (_, n) => {
    if (n % 10 === 7) return ask([message(`bad ${n}`), { type: "Not A Type", data: {} }], `k-${n}`);
    if (n % 10 === 8) return ask([message(`same`)], "k-same");
    return ask([message(`${n} a`), message(`${n} b`)], `k-${n}`);
  });
  const answers = await Promise.all(calls);
  const { events } = await read(path);
  assert.deepEqual(events.map(({ seq }) => seq), events.map((_, at) => at));
  for (const [n, { status, json }] of answers.entries()) {
    if (n % 10 === 7) assert.equal(status, 400, `${n}`);
    else {
      const own = json.events.map(({ seq }) => events[seq].data.text);
      assert.deepEqual(own, n % 10 === 8 ? ["same"] : [`${n} a`, `${n} b`]);
      assert.deepEqual(json.events.map(({ id }) => id), json.events.map(({ seq }) => events[seq].id));
    }
  }
  assert.equal(answers.filter(({ json }) => json.replayed).length, 3);
  assert.equal(events.length, 32 * 2 + 1);
});

test("a session that is full says so, whoever fills it", { skip }, async () => {
  const small = await startHost({ disk: freshDisk(), env: { MAX_BYTES_PER_SESSION: "400000" } });
  try {
    const long = message("x".repeat(20_000));
    for (const [id, key] of [["keyed", true], ["unkeyed", false]]) {
      await call(small, "POST", "/v1/sessions", { body: { id } });
      const append = (n) => call(small, "POST", `/v1/sessions/${id}/events`, { body: { events: [long] }, headers: key ? { "idempotency-key": `k-${n}` } : {} });
      let taken = 0;
      for (; taken < 40; taken++) if ((await append(taken)).status !== 200) break;
      assert.ok(taken > 10 && taken < 30, `${taken} of 20 KB in 400 KB`);
      const { status, json } = await append(99);
      assert.deepEqual([status, json.error.code], [507, "quota"]);
      assert.equal((await call(small, "GET", `/v1/sessions/${id}/events?limit=500`)).json.events.length, taken);
    }
  } finally {
    await small.kill();
  }
});

test("pages call from allowed origins only", { skip }, async () => {
  const strict = await startHost({ disk: freshDisk({ memory: true }), env: { ORIGINS: "https://app.example" } });
  try {
    const from = (origin) => call(strict, "GET", "/v1/sessions", { headers: { origin } });
    const allowed = await from("https://app.example");
    assert.deepEqual([allowed.status, allowed.headers.get("access-control-allow-origin")], [200, "https://app.example"]);
    const refused = await from("https://evil.example");
    assert.deepEqual([refused.status, refused.json.error.code, refused.headers.get("access-control-allow-origin")], [403, "forbidden", null]);
    const preflight = await call(strict, "OPTIONS", "/v1/sessions", { token: null, headers: { origin: "https://app.example", "access-control-request-method": "POST" } });
    assert.equal(preflight.status, 204);
    assert.match(preflight.headers.get("access-control-allow-headers"), /authorization/);
  } finally {
    await strict.kill();
  }
});

test("a host without callers, or with a list that cannot be read, lets nobody in and says so", { skip }, async () => {
  for (const CALLERS of ["", "{", '{"alice":{"tokens":["short"]}}']) {
    const empty = await startHost({ disk: freshDisk({ memory: true }), env: { CALLERS } });
    const { status, json } = await call(empty, "GET", "/v1/sessions");
    await empty.kill();
    assert.equal(status, 503);
    assert.match(json.error.message, /CALLERS/);
  }
});

test("runs a task, keeps its files, undoes and redoes it; the same request runs once", { skip }, async () => {
  const path = await made();
  const body = { task: "write /notes/a.txt: first\nsay written", model: "scripted/demo", approval: "never", wait: true, request: "run-1" };
  const [one, two] = await Promise.all([call(host, "POST", `${path}/runs`, { body }), call(host, "POST", `${path}/runs`, { body })]);
  assert.deepEqual([one.json.status, one.json.answer, one.json.runId], ["completed", "written", two.json.runId]);
  const file = async () => (await call(host, "GET", `${path}/files?path=/notes/a.txt`)).json.text;
  assert.equal(await file(), "first");
  const kinds = (await read(path)).events.map(({ type }) => type);
  for (const type of ["turn/start", "tool/call", "tool/result", "step/end", "turn/end"]) assert.ok(kinds.includes(type), type);
  assert.equal(kinds.filter((type) => type === "turn/start").length, 1);
  const { runs } = (await call(host, "GET", `${path}/runs`)).json;
  assert.deepEqual(runs.map(({ runId, status, hasUndo }) => [runId, status, hasUndo]), [[one.json.runId, "completed", true]]);
  const undone = (await call(host, "POST", `${path}/undo`, { body: {} })).json;
  assert.equal(undone.ok, true, undone.messages.join());
  assert.equal(await file(), null);
  assert.equal((await call(host, "POST", `${path}/redo`, { body: {} })).json.ok, true);
  assert.equal(await file(), "first");
  assert.deepEqual((await call(host, "POST", `${path}/redo`, { body: {} })).json, { ok: false, messages: ["There is nothing to redo."] });
});

test("one task at a time; it is cancelled; what waits for a verdict goes on with it or without", { skip }, async () => {
  const path = await made();
  const start = (task, more = {}) => call(host, "POST", `${path}/runs`, { body: { task, model: "scripted/demo", ...more } });
  assert.equal((await start("wait 60000\nsay late")).status, 202);
  assert.deepEqual([(await start("say no")).status, (await call(host, "DELETE", path)).status], [409, 409]);
  assert.deepEqual((await call(host, "POST", `${path}/cancel`, { body: { reason: "enough" } })).json, { cancelled: true });
  assert.deepEqual((await call(host, "POST", `${path}/cancel`, { body: {} })).json, { cancelled: false });
  const ends = async () => (await read(path)).events.filter(({ type }) => type === "turn/end").map(({ data }) => data.reason.kind);
  assert.deepEqual(await ends(), ["cancelled"]);

  for (const [verdict, content] of [["denied", null], ["approved", "agreed"]]) {
    await start("write /b.txt: agreed\nsay over", { approval: "policy" });
    const asked = await until(async () => (await read(path)).events.findLast(({ type }) => type === "approval/requested" || type === "turn/end").type === "approval/requested"
      && (await read(path)).events.findLast(({ type }) => type === "approval/requested"), "the question");
    assert.equal((await call(host, "GET", `${path}/files?path=/b.txt`)).json.text, null);
    assert.equal((await call(host, "POST", `${path}/approvals/${asked.data.callId}`, { body: { verdict } })).status, 200);
    await until(async () => (await call(host, "GET", path)).json.running === false, "the end of the turn");
    assert.equal((await call(host, "GET", `${path}/files?path=/b.txt`)).json.text, content);
    // Once settled, a second verdict settles nothing.
    const again = await call(host, "POST", `${path}/approvals/${asked.data.callId}`, { body: { verdict: "approved" } });
    assert.ok([200, 404].includes(again.status));
    assert.equal((await call(host, "GET", `${path}/files?path=/b.txt`)).json.text, content);
  }
  assert.deepEqual(await ends(), ["cancelled", "completed", "completed"]);
});

test("only models on the list, only with a key; the key reaches the provider and nothing else", { skip }, async () => {
  const seen = [];
  const key = `sk-${"q7".repeat(20)}`;
  const provider = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const chunk = (delta, finish = null) => `data: ${JSON.stringify({ id: "r1", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
    response.end(`${chunk({ role: "assistant", content: `your key is ${key}, ` })}${chunk({ content: "hello" })}${chunk({}, "stop")}data: [DONE]\n\n`);
  });
  await new Promise((ready) => provider.listen(0, "127.0.0.1", ready));
  const keyed = await startHost({ disk: freshDisk({ memory: true }), env: { MODELS: "openai-compatible/good*, anthropic/*", OPENAI_API_KEY: key, OPENAI_BASE_URL: `http://127.0.0.1:${provider.address().port}/v1` } });
  try {
    await call(keyed, "POST", "/v1/sessions", { body: { id: "s" } });
    const run = (model) => call(keyed, "POST", "/v1/sessions/s/runs", { body: { task: "greet", model, wait: true } });
    for (const model of ["openai-compatible/bad", "scripted/demo", "gemini/x"]) assert.equal((await run(model)).status, 403, model);
    const without = await run("anthropic/claude");
    assert.deepEqual([without.status, without.json.error.message], [503, "this host has no key for anthropic"]);
    const { json } = await run("openai-compatible/good-1");
    assert.equal(json.status, "completed", JSON.stringify(json));
    assert.match(json.answer, /hello$/);
    assert.deepEqual(seen, [`Bearer ${key}`]);
    const all = (await call(keyed, "GET", "/v1/sessions/s/events")).text + JSON.stringify(json) + keyed.said();
    assert.ok(!all.includes(key), "the key is nowhere");
  } finally {
    await keyed.kill();
    provider.close();
  }
});
