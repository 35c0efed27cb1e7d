// The log: what an append costs beside `JSON.stringify`, whether it grows with the log, what forking, loading and holding cost.
// Limits: append 3.0 (aim 2.0) of JSON.stringify, and at 100,000 events 1.3 of that at 1,000; a fork of 100,000 no dearer than
// one of 100; loading 0.5 of split and JSON.parse; memory 1.3 of the JSON bytes.
import init, { SessionStore } from "sessionlog";
import { initSync as exportsOf } from "../pkg/dist/glue.js";

const EVENTS = 100_000;

const payload = (i) => ({
  parts: [
    { type: "text", text: `message ${i}: ${"lorem ipsum dolor sit amet ".repeat(20)}` },
    { type: "tool-call", id: `call_${i}`, name: "read_file", args: { path: `/src/file${i}.ts`, from: 1, to: 200, flags: ["a", "b"], nested: { deep: { n: i, ok: true } } } },
    { type: "text", text: "x".repeat(200) },
  ],
  turn: i, step: 1, provider: "openai", model: "some-model", stopReason: "tool-calls",
});

const open = () => SessionStore.open({ storage: { kind: "memory" } });

/** A backend that keeps nothing: what is left in memory is the log. */
const nowhere = { name: "nowhere", get: async () => null, list: async () => [], transact: async () => {} };

/** A backend that keeps what it is given, as it is. */
function keeping() {
  const map = new Map();
  return {
    name: "keeping",
    get: async (key) => map.get(key) ?? null,
    list: async (start, end, { limit = Infinity, reverse = false, keysOnly = false } = {}) => {
      const keys = [...map.keys()].filter((key) => key >= start && key < end).sort();
      if (reverse) keys.reverse();
      return keys.slice(0, limit).map((key) => [key, keysOnly ? new Uint8Array() : map.get(key)]);
    },
    transact: async ({ puts = [], deletes = [] }) => {
      for (const [key, value] of puts) map.set(key, value);
      for (const key of deletes) map.delete(key);
    },
  };
}

/** An export as the package writes it, made without it, so that nothing but the load uses the module's memory. */
function exported() {
  const lines = [JSON.stringify({ sessionlog: 1, header: { version: 1, id: "held", createdAt: 0 } })];
  for (let seq = 0; seq < EVENTS; seq++) {
    const data = JSON.stringify(payload(seq));
    const id = seq.toString(16).padStart(16, "0");
    lines.push(`{"seq":${seq},"id":"${id}","at":1,"type":"assistant/message","salt":"${id}${id}","digest":"${id}${id}${id}${id}","bytes":${data.length},"data":${data}}`);
  }
  return new TextEncoder().encode(`${lines.join("\n")}\n`);
}

async function memory(bench) {
  const bytes = exported();
  const store = await SessionStore.open({ storage: { kind: "custom", backend: nowhere } });
  const before = exportsOf().memory.buffer.byteLength;
  globalThis.gc?.();
  const heap = globalThis.process?.memoryUsage?.();
  const { session } = await store.importSession(bytes);
  globalThis.gc?.();
  const grown = exportsOf().memory.buffer.byteLength - before;
  bench.print(`memory of a loaded log of ${session.seq} events, of its ${(bytes.length / 1e6).toFixed(1)} MB of JSON`);
  bench.print(`  ${"in the module".padEnd(34)} ${(grown / 1e6).toFixed(1).padStart(9)} MB  ×${(grown / bytes.length).toFixed(2)}`);
  if (globalThis.gc !== undefined && heap !== undefined) {
    const used = process.memoryUsage().heapUsed - heap.heapUsed;
    bench.print(`  ${"in JavaScript".padEnd(34)} ${(used / 1e6).toFixed(1).padStart(9)} MB  ×${(used / bytes.length).toFixed(2)}`);
  }
  await store.dispose();
}

async function appends(bench) {
  const payloads = Array.from({ length: 1000 }, (_, i) => payload(i));
  bench.print(`a payload has ${JSON.stringify(payloads[0]).length} bytes`);
  const stringify = () => { let n = 0; for (const p of payloads) n += JSON.stringify(p).length; return n; };
  const store = await open();
  const session = store.create();
  const messages = payloads.map((p) => ({ text: JSON.stringify(p) }));
  const append = () => { for (const p of payloads) session.append("assistant/message", p); };
  // By themselves: others would leave caches and collector in a state that neither has to answer for.
  await bench.compare("append of a 1 KB event (1,000 a round)", { "JSON.stringify": stringify, append }, { ops: 1000, rounds: 51, warmup: 10 });
  await bench.compare("other appends", {
    "JSON.stringify": stringify,
    "append of a user message": () => { for (const p of messages) session.append("user/message", p); },
    "append, and its write to memory": async () => { append(); await session.flush(); },
  }, { ops: 1000, rounds: 31 });
  await store.dispose();
  return payloads;
}

export default async (bench) => {
  await init();
  await memory(bench);
  const payloads = await appends(bench);

  const store = await open();
  const long = store.create("long");
  while (long.seq < EVENTS) for (const p of payloads) long.append("assistant/message", p);
  await long.flush();
  let fresh = store.create();
  await bench.compare("append at 1,000 and at 100,000 events", {
    "at 1,000": () => { for (const p of payloads) fresh.append("assistant/message", p); },
    "at 100,000": () => { for (const p of payloads) long.append("assistant/message", p); },
    "(a new session for the first)": async () => { await fresh.dispose(); fresh = store.create(); },
  }, { ops: 1000, rounds: 15 });

  const small = store.create("small");
  for (const p of payloads.slice(0, 100)) small.append("assistant/message", p);
  let n = 0;
  await bench.compare("fork", {
    "of 100 events": () => void store.fork("small", { id: `a${n++}` }),
    "of 100,000 events": () => void store.fork("long", { id: `b${n++}` }),
  }, { rounds: 101, warmup: 10 });

  const bytes = await store.exportSession("long");
  const text = new TextDecoder().decode(bytes);
  await store.dispose();
  const backend = keeping();
  const storage = { kind: "custom", backend };
  const loads = await SessionStore.open({ storage });
  await (await loads.importSession(bytes, { id: "stored" })).session.dispose();
  let round = 0;
  let copy;
  await bench.compare("load 100,000 events from an export", {
    "split and JSON.parse": () => text.trimEnd().split("\n").map((line) => JSON.parse(line)).length,
    "importSession (load and store)": async () => ({ session: copy } = await loads.importSession(bytes, { id: `l${round++}` })),
    "resume (load what is stored)": async () => void (await (await loads.resume("stored")).event(0)),
    "(delete both)": async () => {
      await loads.delete(copy.id);
      await loads.get("stored").dispose();
    },
  }, { rounds: 7, warmup: 1 });
  await loads.importSession(firstEvents(bytes, SMALL), { id: "tenth" }).then(({ session }) => session.dispose());
  const perEvent = {};
  for (const [id, count] of [["tenth", SMALL], ["stored", 10 * SMALL]]) {
    const times = [];
    for (let i = 0; i < 7; i++) {
      const start = performance.now();
      const session = await loads.resume(id);
      times.push(performance.now() - start);
      await session.dispose();
    }
    perEvent[id] = times.sort((a, b) => a - b)[3] / count;
  }
  bench.print(`resume, an event at ${10 * SMALL} costs ×${(perEvent.stored / perEvent.tenth).toFixed(2)} of one at ${SMALL} (B09: at most 1.5)`);
  await loads.dispose();
};

const SMALL = 10_000;

/** The header of an export and its first events. */
function firstEvents(bytes, count) {
  let end = 0;
  for (let lines = 0; lines <= count; lines++) end = bytes.indexOf(10, end) + 1;
  return bytes.subarray(0, end);
}
