// The log: what an append costs beside `JSON.stringify`, whether it grows with the log, what loading costs.
import init, { SessionStore } from "sessionlog";

const payload = (i) => ({
  parts: [
    { type: "text", text: `message ${i}: ${"lorem ipsum dolor sit amet ".repeat(20)}` },
    { type: "tool-call", id: `call_${i}`, name: "read_file", args: { path: `/src/file${i}.ts`, from: 1, to: 200, flags: ["a", "b"], nested: { deep: { n: i, ok: true } } } },
    { type: "text", text: "x".repeat(200) },
  ],
  turn: i, step: 1, provider: "openai", model: "some-model", stopReason: "tool-calls",
});

export default async (bench) => {
  await init();
  const payloads = Array.from({ length: 1000 }, (_, i) => payload(i));
  bench.print(`a payload has ${JSON.stringify(payloads[0]).length} bytes`);
  const open = () => SessionStore.open({ storage: { kind: "memory" } });
  let store = await open();
  let session = store.create();
  await bench.compare("append of a 1 KB event (1,000 a round)", {
    "JSON.stringify": () => { let n = 0; for (const p of payloads) n += JSON.stringify(p).length; return n; },
    append: () => { for (const p of payloads) session.append("assistant/message", p); },
  }, { ops: 1000, rounds: 21 });
  await store.dispose();

  store = await open();
  const long = store.create("long");
  const short = () => store.create();
  while (long.seq < 100_000) for (const p of payloads) long.append("assistant/message", p);
  await long.flush();
  let fresh = short();
  await bench.compare("append at 1,000 and at 100,000 events", {
    "at 1,000": () => { fresh = short(); for (const p of payloads) fresh.append("assistant/message", p); },
    "at 100,000": () => { for (const p of payloads) long.append("assistant/message", p); },
  }, { ops: 1000, rounds: 9 });

  const small = store.create("small");
  for (const p of payloads.slice(0, 100)) small.append("assistant/message", p);
  let n = 0;
  await bench.compare("fork", {
    "of 100 events": () => void store.fork("small", { id: `a${n++}` }),
    "of 100,000 events": () => void store.fork("long", { id: `b${n++}` }),
  }, { rounds: 51, warmup: 10 });

  const bytes = await store.exportSession("long");
  const text = new TextDecoder().decode(bytes);
  await store.dispose();
  let round = 0;
  const loads = await open();
  await bench.compare("load 100,000 events from an export", {
    "split and JSON.parse": () => text.trimEnd().split("\n").map((line) => JSON.parse(line)).length,
    importSession: async () => {
      const { session: loaded } = await loads.importSession(bytes, { id: `l${round++}` });
      await loaded.dispose();
      await loads.delete(loaded.id);
    },
  }, { rounds: 5, warmup: 1 });
};
