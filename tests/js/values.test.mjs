import { test } from "node:test";
import assert from "node:assert/strict";
import vm from "node:vm";
import init, { isJsonValue, SessionStore } from "sessionlog";

await init();

const bad = [
  [10n, ""], [() => 1, ""], [Symbol("x"), ""], [undefined, ""], [{ a: undefined }, "a"], [[undefined], "[0]"], [NaN, ""], [Infinity, ""],
  [-0, ""], [{ a: [1, { n: -0 }] }, "a[1].n"], [new Array(3), ""], [[1, , 2], ""], [new Map(), ""], [new Set(), ""], [new Date(0), ""], [/x/, ""],
  [new Uint8Array(2), ""], [new (class A {})(), ""], [new String("x"), ""], [new Number(1), ""], [{ [Symbol("s")]: 1 }, ""], ["\ud83d", ""],
  [{ "\udc00": 1 }, ""], [{ meta: { onClick() {} } }, "meta.onClick"], [{ parts: [0, 0, { args: { n: 10n } }] }, "parts[2].args.n"],
  [{ get a() { throw new Error("no"); } }, "a"], [Object.create({ inherited: 1 }), ""], [{ "x y": NaN }, '["x y"]'],
  [Object.assign([1], { extra: 1 }), ""], [new Error("x"), ""], [Promise.resolve(), ""], [new Proxy({ a: 1n }, {}), "a"],
];
const good = [
  null, true, 0, 1.5, "", "🔥", [], {}, [[[]]], { a: null }, Object.assign(Object.create(null), { a: 1 }), new Proxy({ a: [1] }, {}),
  vm.runInNewContext("({a: [1, {b: 2}]})"), JSON.parse('{"__proto__": 1}'), 2 ** 53 - 1, { get a() { return 1; } },
];

test("lossless values are told from others, with the path", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create();
  for (const [value, path] of bad) {
    assert.equal(isJsonValue(value), false, String(typeof value));
    assert.throws(() => session.append("user/message", { v: value }), (e) => {
      assert.equal(e.code, "not_json");
      assert.equal(e.details.path, path === "" ? "v" : path.startsWith("[") ? `v${path}` : `v.${path}`);
      return true;
    });
  }
  for (const value of good) {
    assert.equal(isJsonValue(value), true);
    const event = session.append("user/message", { v: value });
    assert.equal(JSON.stringify(event.data.v), JSON.stringify(value));
    assert.equal(JSON.stringify(session.event(event.seq).data.v), JSON.stringify(value));
  }
  assert.equal(session.seq, good.length);
});

test("cycles and depth are errors, never overflows", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create();
  const cycle = { a: { b: [] } };
  cycle.a.b.push(cycle.a);
  assert.throws(() => session.append("user/message", cycle), (e) => e.code === "not_json" && e.details.path === "a.b[0]" && /itself/.test(e.message));
  const nest = (depth) => { let v = 1; for (let i = 0; i < depth; i++) v = [v]; return { v }; };
  session.append("user/message", nest(999));
  assert.throws(() => session.append("user/message", nest(1000)), { code: "not_json" });
  assert.throws(() => session.append("user/message", nest(100_000)), { code: "not_json" });
  assert.equal(session.append("user/message", { text: "still works" }).seq, 1);
});

test("repair turns lone halves into U+FFFD", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create();
  const data = { text: "x\ud83dy", "k\udc00": ["\ud83d\ud83d\udd25", "\\ud83d"] };
  assert.throws(() => session.append("user/message", data), { code: "not_json" });
  const event = session.append("user/message", data, { repair: true });
  assert.deepEqual(event.data, { text: "x\ufffdy", "k\ufffd": ["\ufffd🔥", "\\ud83d"] });
  assert.deepEqual(session.event(0).data, event.data);
});

test("a string of 64 MB works", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create();
  const text = "a".repeat(64 * 1024 * 1024);
  session.append("user/message", { text });
  assert.equal(session.event(0).data.text.length, text.length);
  assert.equal(session.append("user/message", { text: "next" }).seq, 1);
});

test("a wide value that contains itself is refused before it takes memory or time", { timeout: 20_000 }, async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create();
  const tree = { children: [] };
  for (let i = 0; i < 300_000; i++) tree.children.push({ text: `${i}`, parent: tree });
  const list = [];
  for (let i = 0; i < 300_000; i++) list.push(list);
  for (const value of [tree, list]) assert.throws(() => session.append("user/message", { value }), { code: "not_json", message: /contains itself/ });
  session.append("user/message", { text: "after" });
  await store.dispose();
});

test("what JSON would leave out or write otherwise is refused in its place", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create();
  const hidden = (value) => Object.defineProperty(value, "toJSON", { value: () => "changed" });
  const list = Object.assign([1], { [Symbol("s")]: 1 });
  class Own extends Array { toJSON() { return "changed"; } }
  const raw = JSON.rawJSON?.("1") ?? new Map();
  for (const value of [hidden({ a: 1 }), hidden([1]), list, Own.of(1), new Proxy({ a: 1 }, { get: (t, k) => (k === "toJSON" ? () => 1 : t[k]) }), raw]) {
    for (const options of [{}, { repair: true }]) {
      assert.throws(() => session.append("user/message", { deep: [value] }, options), (e) => e.code === "not_json" && e.details.path === "deep[0]");
    }
    assert.equal(isJsonValue(value), false);
  }
  assert.throws(() => session.append("user/message", Object.defineProperty({}, "toJSON", { value: () => undefined })), { code: "not_json" });
  // A member of that name that is no function is a member like others.
  assert.deepEqual(session.append("user/message", { toJSON: "text" }).data, { toJSON: "text" });
  await store.dispose();
});

test("repair never makes two members one", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create();
  const data = { v: { "k\ud800": 1, "k\udc00": 2 } };
  assert.throws(() => session.append("user/message", data, { repair: true }), (e) => e.code === "not_json" && e.details.path === "v" && /one/.test(e.message));
  assert.throws(() => session.append("user/message", { "\ufffd": 1, "\ud800": 2 }, { repair: true }), { code: "not_json" });
  assert.equal(session.seq, 0);
  await store.dispose();
});

test("a toJSON that a script gave to all lists or objects is no silent change", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create();
  for (const prototype of [Array.prototype, Object.prototype]) {
    prototype.toJSON = () => "changed";
    try {
      assert.throws(() => session.append("user/message", { parts: [{ type: "text", text: "a" }] }), { code: "not_json", message: /toJSON/ });
    } finally {
      delete prototype.toJSON;
    }
  }
  session.append("user/message", { text: "after" });
  assert.equal(session.seq, 1);
  await store.dispose();
});
