// What tools are given and what they give: schemas, friendly and hostile; results of every kind; models that talk nonsense.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import init, { ChatSessionController, SessionStore, VirtualFs, createLlmAdapter } from "sessionlog";

before(() => init());

async function world(options = {}) {
  const store = await SessionStore.open(options);
  const output = [];
  const controller = new ChatSessionController({ store, fs: await VirtualFs.open(), outputFn: (text) => output.push(text) });
  return { store, controller, session: controller.session, output };
}

const tool = (name, run, parameters = { type: "object" }, more = {}) => ({ name, description: "", parameters, run, ...more });
const call = (id, name, args = {}) => ({ type: "tool-call", id, name, args: typeof args === "string" ? args : JSON.stringify(args) });
const script = (steps, tools, more = {}) => ({ model: "scripted/script", providerOptions: { script: steps }, tools, ...more });
const say = (text) => [{ type: "text", text }];
const results = (session) => session.events.filter(({ type }) => type === "tool/result").map(({ data }) => data);
const valid = (session) => {
  for (const target of ["openai-chat", "openai-responses", "anthropic", "gemini", "ai-sdk"]) {
    assert.deepEqual(session.deriveRequest({ target }).repairs.filter(({ code }) => code === "invalid_request"), [], target);
  }
  assert.equal(session.verify(), null);
};

/** Holds arguments against a schema through a whole run; null when they fit, else what the model is told. */
async function fault(parameters, args) {
  const { controller, session } = await world();
  let ran = 0;
  await controller.executeTask("go", script([[call("1", "t", args)], say("ok")], [tool("t", () => ((ran += 1), "ok"), parameters)]));
  const [{ error, content }] = results(session);
  assert.equal(ran, error === undefined ? 1 : 0);
  if (error !== undefined) assert.equal(error.code, "invalid_arguments");
  return error === undefined ? null : content;
}

test("arguments that fit a schema run, others are told why", async () => {
  const object = (properties, more = {}) => ({ type: "object", properties, ...more });
  for (const [schema, good, bad] of [
    [object({ n: { type: "integer", minimum: 1 } }, { required: ["n"] }), { n: 1 }, { n: 0 }],
    [object({ s: { enum: ["a", 1, null] } }), { s: null }, { s: "b" }],
    [object({ s: { type: ["string", "null"], maxLength: 2 } }), { s: "🔥🔥" }, { s: "abc" }],
    [object({ l: { type: "array", items: { type: "string" }, minItems: 1, uniqueItems: true } }), { l: ["a"] }, { l: ["a", "a"] }],
    [object({}, { additionalProperties: false }), {}, { x: 1 }],
    [object({ x: { anyOf: [{ type: "string" }, { type: "object", required: ["y"] }] } }), { x: { y: 1 } }, { x: {} }],
    [{ $defs: { tree: { type: "object", properties: { kids: { type: "array", items: { $ref: "#/$defs/tree" } }, v: { type: "number" } }, additionalProperties: false } }, $ref: "#/$defs/tree" }, { kids: [{ v: 1, kids: [] }] }, { kids: [{ kids: [{ w: 1 }] }] }],
    [object({ d: { type: "string", format: "date" } }), { d: "2026-12-02" }, { d: "yesterday" }],
    [object({ p: { type: "string", pattern: "^[a-z]+\\.txt$" } }), { p: "notes.txt" }, { p: "Notes.txt" }],
    [object({ p: { pattern: "b" } }), { p: "abc" }, { p: "acd" }],
    [object({ p: { pattern: "^a*$" } }), { p: "" }, { p: "b" }],
    [object({ p: { pattern: "^a+$", allOf: [{ minLength: 2 }] } }), { p: "aa" }, { p: "a" }],
    [object({ pattern: { type: "string" }, type: { type: "integer" } }), { pattern: "(a+)+$", type: 1 }, { pattern: 1 }],
    [{ type: "object", patternProperties: { "^x-": { type: "number" } } }, { "x-a": 1 }, { "x-a": "1" }],
    [{ type: "object", if: { required: ["a"] }, then: { required: ["b"] }, dependentRequired: { c: ["d"] } }, { a: 1, b: 1 }, { a: 1 }],
    [true, { any: 1 }, undefined],
    [false, undefined, {}],
  ]) {
    if (good !== undefined) assert.equal(await fault(schema, good), null, JSON.stringify([schema, good]));
    if (bad !== undefined) assert.match(await fault(schema, bad), /not executed/, JSON.stringify([schema, bad]));
  }
  assert.match(await fault(object({ p: { pattern: "^[a-z]+$" } }), { p: "A" }), /#\/p: String does not match pattern "/);
});

test("a schema is left as it was given, also what is sent to the model", async () => {
  const parameters = { type: "object", properties: { p: { type: "string", pattern: "^a" } }, required: ["p"], additionalProperties: false };
  const before = structuredClone(parameters);
  const requests = [];
  const { controller } = await world();
  const config = script([[call("1", "t", { p: "a" })], say("ok")], [tool("t", () => "ok", parameters)]);
  config.providerOptions.requests = requests;
  await controller.executeTask("go", config);
  assert.deepEqual(parameters, before);
  assert.deepEqual(Object.getOwnPropertyNames(parameters), Object.getOwnPropertyNames(before));
  assert.deepEqual(requests[1].tools[0].parameters, before);
});

test("no schema makes the check hang: endless references, ones that double, patterns that try again", { timeout: 20_000 }, async () => {
  const long = `${"a".repeat(40_000)}!`;
  const doubling = { $defs: {} };
  for (let n = 0; n < 60; n++) doubling.$defs[`d${n}`] = { anyOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] };
  doubling.$defs.d60 = false;
  const deep = (levels) => (levels === 0 ? {} : { items: deep(levels - 1) });
  const wide = { allOf: Array.from({ length: 30_000 }, () => ({})) };
  for (const [name, schema, args] of [
    ["itself", { $ref: "#" }, {}],
    ["each other", { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" }, {}],
    ["doubling", { ...doubling, $ref: "#/$defs/d0" }, {}],
    ["deep", deep(5_000), { x: 1 }],
    ["wide", wide, {}],
    ["nowhere", { $ref: "https://example.invalid/schema.json" }, {}],
    ["names that try again", { patternProperties: { "^(a+)+$": { type: "number" } } }, { [long]: 1 }],
  ]) {
    assert.match(await fault(schema, args), /not a schema that can be checked|not executed/, name);
  }
  for (const pattern of ["^(a+)+$", "^(a|a)*$", "(.*a){20}$", "^(([a-z])+.)+[A-Z]([a-z])+$"]) {
    assert.match(await fault({ properties: { p: { pattern } } }, { p: long }), /does not match pattern/, pattern);
  }
  // One that cannot be matched in linear time is not matched at all.
  assert.equal(await fault({ properties: { p: { pattern: "^(?=(a+)+$)a+" } } }, { p: long }), null);
});

// ------------------------------------------------------------------- results

test("what a tool gives back never breaks the turn: nothing, BigInt, cycles, getters, classes, bytes, huge, depths, errors of every kind", { timeout: 60_000 }, async () => {
  const cycle = { name: "loop" };
  cycle.self = cycle;
  let nest = [];
  for (let n = 0; n < 20_000; n++) nest = [nest];
  const gives = {
    nothing: undefined, nil: null, big: 10n, bigInside: { n: 10n }, cycle, symbol: Symbol("s"), func: () => {}, nan: NaN, minus: -0, map: new Map([["a", 1]]),
    date: new Date(0), bytes: new Uint8Array([1, 2]), getter: { get x() { throw new Error("no"); } }, nest, huge: "x".repeat(3_000_000), lone: "a\ud83d",
    parts: [{ type: "text", text: "hi" }], image: [{ type: "image", mediaType: "image/png", data: "iVBORw0KGgo=" }], emptyList: [], mixed: [{ type: "text", text: "a" }, 1], toJson: { toJSON() { return { a: 1 }; } },
    proxy: new Proxy({}, { ownKeys() { throw new Error("no keys"); } }), thenable: { then(resolve) { resolve("later"); } }, number: 5, bool: false, text: "",
  };
  const throws = { error: new Error("plain"), text: "words", nothing: undefined, nil: null, number: 5, object: { code: 7, message: 8 }, cycle, frozen: Object.freeze({ message: "cold", code: "E_COLD" }), nasty: { get message() { throw new Error("worse"); } }, symbol: Symbol("s"), noPrototype: Object.create(null) };
  const tools = [
    ...Object.entries(gives).map(([name, value]) => tool(`gives_${name}`, () => value)),
    ...Object.entries(throws).map(([name, value]) => tool(`throws_${name}`, () => { throw value; })),
    ...Object.entries(throws).map(([name, value]) => tool(`rejects_${name}`, () => Promise.reject(value))),
  ];
  const { controller, session } = await world();
  const done = await controller.executeTask("go", script([tools.map(({ name }) => call(name, name)), say("ok")], tools));
  assert.deepEqual([done.runResult.status, done.runResult.errorMessage], ["completed", null]);
  const byId = Object.fromEntries(results(session).map((data) => [data.id, data]));
  assert.deepEqual(Object.keys(byId), tools.map(({ name }) => name));
  for (const [id, { content, isError }] of Object.entries(byId)) {
    assert.ok(typeof content === "string" || Array.isArray(content), id);
    if (/^(throws|rejects)/.test(id)) assert.equal(isError, true, id);
  }
  assert.deepEqual([byId.gives_nothing.content, byId.gives_big.content, byId.gives_number.content, byId.gives_bool.content, byId.gives_thenable.content, byId.gives_toJson.content], ["", "10", "5", "false", "later", '{"a":1}']);
  assert.deepEqual([byId.gives_parts.content, byId.gives_lone.content, byId.gives_huge.content.length], [[{ type: "text", text: "hi" }], "a\ufffd", 3_000_000]);
  assert.deepEqual([byId.throws_text.error, byId.throws_frozen.error], [{ code: "error", message: "words" }, { code: "E_COLD", message: "cold" }]);
  valid(session);
});

test("a tool that never settles can be stopped, and what it does afterwards changes nothing", async () => {
  const { controller, session } = await world();
  let late;
  const tools = [tool("deaf", (_args, { fs }) => new Promise((resolve) => { fs.writeFile("/before.txt", "x"); late = () => { resolve("too late"); return fs; }; }))];
  const running = controller.executeTask("go", script([[call("1", "deaf")]], tools));
  while (late === undefined) await new Promise((resolve) => setTimeout(resolve, 2));
  controller.cancel();
  assert.equal((await running).runResult.status, "cancelled");
  const { seq } = session;
  const fs = late();
  assert.throws(() => fs.writeFile("/after.txt", "x"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(session.seq, seq);
  assert.equal(results(session)[0].error.code, "aborted");
  valid(session);
});

// ------------------------------------------------------------------- models

test("models that talk nonsense: empty answers, ids that stand twice, unknown tools, arguments that are none, unknown chunks", async () => {
  const tools = [tool("t", (args) => args, { type: "object" })];
  const nonsense = [
    [call("a", "t", { n: 1 }), call("a", "t", { n: 2 }), call("", "t"), call("  ", "t"), call("x".repeat(500), "t"), call("ü/🔥", "t")],
    [call("b", "nobody"), call("c", ""), call("d", "t", "not json"), call("e", "t", '{"a":'), call("f", "t", "[1]"), call("g", "t", "null"), call("h", "t", '{"a":1,"a":2}'), call("i", "t", '{"__proto__":{"x":1}}')],
    [{ type: "tool-args", id: "j", delta: '{"n"' }, { type: "tool-args", id: "j", name: "t", delta: ":1}" }, { type: "tool-args", id: "k", delta: "{}" }],
    [{ type: "reasoning", text: "only thinking" }, call("l", "t")],
    [{ type: "text", text: "" }, { type: "text", text: " \n" }],
  ];
  const { controller, session } = await world();
  const done = await controller.executeTask("go", script(nonsense, tools));
  assert.equal(done.runResult.status, "completed");
  assert.equal(session.events.at(-1).data.reason.kind, "empty");
  const ids = session.events.flatMap(({ type, data }) => (type === "assistant/message" ? data.parts : [])).filter(({ type }) => type === "tool-call").map(({ id }) => id);
  assert.deepEqual(results(session).map(({ id }) => id), ids);
  const codes = Object.fromEntries(results(session).map(({ id, error }) => [id, error?.code ?? "ok"]));
  assert.deepEqual(["b", "c", "d", "e", "f", "g", "h"].map((id) => codes[id]), ["unknown_tool", "unknown_tool", "invalid_arguments", "invalid_arguments", "invalid_arguments", "invalid_arguments", "invalid_arguments"]);
  assert.deepEqual([codes.j, codes.k, codes.l, codes.a, codes.a_2], ["ok", "unknown_tool", "ok", "ok", "ok"]);
  valid(session);
  const strange = { provider: "p", model: "m", target: "openai-chat", async *stream() { yield { type: "nonsense" }; yield { type: "text", text: "x" }; } };
  assert.equal((await controller.executeTask("go", { model: "p/m" }, { adapter: strange })).runResult.status, "failed");
  for (const stream of [() => undefined, () => { throw "words"; }, async () => {}, async function* () { yield null; }, async function* () { yield { type: "text", text: 5 }; }, async function* () { throw undefined; }]) {
    const failed = await controller.executeTask("go", { model: "p/m" }, { adapter: { provider: "p", model: "m", target: "openai-chat", stream } });
    assert.deepEqual([failed.runResult.status, typeof failed.runResult.errorMessage, controller.status], ["failed", "string", "idle"], String(stream));
  }
  valid(session);
});

test("a thousand calls in one answer, side by side", { timeout: 60_000 }, async () => {
  let together = 0;
  let most = 0;
  const tools = [tool("t", async ({ n }) => { most = Math.max(most, ++together); await new Promise((resolve) => setTimeout(resolve, 5)); together--; return n; }, { type: "object", properties: { n: { type: "integer" } } }, { parallel: true })];
  const { controller, session } = await world({ scrubbers: [{ builtin: "secrets" }] });
  const done = await controller.executeTask("go", script([Array.from({ length: 1000 }, (_, n) => call(`c${n}`, "t", { n })), say("ok")], tools));
  assert.deepEqual([done.runResult.status, most], ["completed", 1000]);
  assert.deepEqual(results(session).map(({ id, content }) => [id, content]), Array.from({ length: 1000 }, (_, n) => [`c${n}`, String(n)]));
  valid(session);
});

test("an adapter that is asked again and again for more than it has", async () => {
  const { controller, session } = await world();
  const adapter = createLlmAdapter("scripted", "script", { script: [[call("1", "t")]] });
  const done = await controller.executeTask("go", { model: "x/y", tools: [tool("t", () => "ok")] }, { adapter });
  assert.deepEqual([done.runResult.status, session.events.at(-1).data.reason.kind], ["failed", "error"]);
  valid(session);
});
