// Every call of the contract with arguments that make no sense: a typed error each time, and a module that still works.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import init, * as sessionlog from "sessionlog";

await init();

const { ChatSessionController, CostTotal, PriceTable, ScrubStream, SessionLogError, SessionStore, VirtualFs } = sessionlog;

const declarations = readFileSync(new URL("../../npm/types/index.d.ts", import.meta.url), "utf8");

/** The methods that the contract declares for a class or an interface. */
function methods(name) {
  const start = declarations.search(new RegExp(`^export (class|interface) ${name}\\b`, "m"));
  const block = declarations.slice(start, declarations.indexOf("\n}", start));
  const found = [...block.matchAll(/^ {2}([a-zA-Z]+)[<(]/gm)].map(([, method]) => method);
  // Ending things is the last thing to do with them.
  return [...new Set(found)].filter((method) => !["constructor", "dispose", "end"].includes(method));
}

const cyclic = {};
cyclic.self = cyclic;
let deep = [];
for (let depth = 0; depth < 20_000; depth++) deep = [deep];
const ODD = [
  undefined, null, 0, -1, 1.5, NaN, Infinity, -0, 1e308, 2 ** 53, "", " ", "a", "s1", "/a", "/a/b", "../..", "\0", "\ud800", "x".repeat(1000), true, [], {}, [1, 2], cyclic, deep,
  { get x() { throw new Error("a getter"); } }, Symbol("s"), 10n, () => 1, new Date(0), new Map(), new Uint8Array([255, 0]), /x/, new Error("e"), { text: "hi" }, { parts: [{ type: "text", text: 5 }] },
  { target: "anthropic" }, { target: "nope" }, { upto: -5 }, "user/message", "turn/start", { turn: 1, step: 1 }, { kind: "memory" }, { kind: "nope" }, Object.create(null),
  Promise.resolve(1), { then: 5 }, "anthropic.messages", { pattern: "(" }, { pattern: "(a+)+$" }, { values: ["x"] }, { builtin: "no" },
];

function generator(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state % below;
  };
}

/** What a caller's own value threw when it was looked at goes through as it is. */
const isTheirs = (thrown) => /^(a getter|1 is not a function)/.test(thrown?.message ?? "");

for (const seed of [1, 2, 3]) {
  test(`arguments that make no sense, seed ${seed}`, async () => {
    const random = generator(seed);
    const wrong = [];
    const attempt = async (name, work, receiver) => {
      const args = Array.from({ length: random(4) }, () => ODD[random(ODD.length)]);
      const judge = (thrown) => {
        if ((!(thrown instanceof SessionLogError) && !isTheirs(thrown)) || thrown.code === "poisoned") wrong.push(`${name}: ${thrown?.name} ${thrown?.code ?? ""} ${thrown?.message}`);
      };
      try {
        const result = work.apply(receiver, args);
        if (typeof result?.then === "function") await result.then(() => {}, judge);
      } catch (thrown) {
        judge(thrown);
      }
    };
    const store = await SessionStore.open();
    const session = store.create();
    session.append("user/message", { text: "hi" });
    const fs = await VirtualFs.open();
    fs.mkdir("/a");
    fs.writeFile("/a/b", "x");
    const run = fs.beginRun("r1");
    const chat = new ChatSessionController({ store, fs, outputFn: () => {} });
    const receivers = {
      SessionStore: store, Session: session, VirtualFs: fs, RunFs: run, ChatSessionController: chat, PriceTable: PriceTable.builtin(), CostTotal: new CostTotal(), ScrubStream: new ScrubStream(),
      EventStream: session.openStream({ turn: 1, step: 1 }), RunStore: store.runs, UndoJournal: run.journal, AuditLogger: store.runs.auditLogger(),
    };
    let calls = 0;
    for (const [name, receiver] of Object.entries(receivers)) {
      for (const method of methods(name === "RunFs" ? "VirtualFs" : name).filter((found) => typeof receiver[found] === "function")) {
        for (let i = 0; i < 40; i++, calls++) await attempt(`${name}.${method}`, receiver[method], receiver);
      }
    }
    for (const [name, value] of Object.entries(sessionlog)) {
      if (typeof value !== "function" || ["default", "initSync", "checkBackend", "SessionLogError", "Session"].includes(name)) continue;
      for (let i = 0; i < 20; i++, calls++) {
        if (!value.prototype || Object.getOwnPropertyDescriptor(value, "prototype")?.writable !== false) await attempt(name, value);
        else if (["ScrubStream", "ChatSessionController"].includes(name)) await attempt(`new ${name}`, (...args) => new value(...args));
      }
    }
    assert.ok(calls > 3_000, `${calls} calls`);
    assert.deepEqual([...new Set(wrong)], []);
    // All of it is as sound as before.
    assert.equal(session.verify(), null);
    await store.dispose();
    const next = await SessionStore.open();
    assert.equal(next.create().append("user/message", { text: "hi" }).seq, 0);
    await next.dispose();
  });
}

test("a caller's function that throws, or runs out of stack, fails its own call only", async () => {
  const store = await SessionStore.open();
  const session = store.create();
  const endless = (text) => endless(text) + "x";
  const fault = new Error("mine");
  for (const scrubber of [endless, { scrub: endless }, () => { throw fault; }]) {
    const end = store.registerScrubber(scrubber);
    assert.throws(() => session.append("user/message", { text: "hi" }), (thrown) => thrown === fault || thrown instanceof RangeError);
    end();
  }
  assert.equal(session.append("user/message", { text: "hi" }).seq, 0);
  await store.dispose();
  await assert.rejects(async () => (await SessionStore.open({ random: endless })).create(), RangeError);
  const other = await SessionStore.open();
  assert.equal(other.create().append("user/message", { text: "hi" }).seq, 0);
  await other.dispose();
});
