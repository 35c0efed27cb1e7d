// Derivation beside plain JavaScript: parse every stored line, filter, map. Targets stand in issue 4.
import init, { SessionStore } from "sessionlog";

const SIZE = 10_000;
const body = (i) => `${i} `.padEnd(900, "the quick brown fox jumps over the lazy dog, \"twice\"\n");
const event = (i) => [
  ["user/message", { text: body(i) }],
  ["assistant/message", { parts: [{ type: "text", text: body(i) }, { type: "tool-call", id: `call_${i}`, name: "read_file", args: { path: `src/${i}.ts` } }], provider: "p", model: "m" }],
  ["tool/call", { turn: 1, step: 1, id: `call_${i - 1}`, name: "read_file", args: { path: body(i) } }],
  ["tool/result", { id: `call_${i - 2}`, content: body(i) }],
][i % 4];

/** What a program without a session log would do. */
function plain(lines) {
  return lines.map((line) => JSON.parse(line)).filter((e) => e.type !== "tool/call").map((e) => {
    const [role, parts] = e.type === "user/message" ? ["user", [{ type: "text", text: e.data.text }]]
      : e.type === "assistant/message" ? ["assistant", e.data.parts] : ["tool", [{ type: "tool-result", id: e.data.id, content: e.data.content }]];
    return { role, parts, sources: [e.seq] };
  });
}

function fill(session, size) {
  for (let i = 0; i < size; i++) session.append(...event(i));
  return session;
}

export default async function run(bench) {
  await init();
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const long = fill(store.create(), SIZE);
  await long.flush();
  // What is stored, line by line, is what an export holds; a program that stores less has less to parse.
  const stored = new TextDecoder().decode(await store.exportSession(long.id)).trimEnd();
  const text = stored.slice(stored.indexOf("\n") + 1);
  const lines = long.events.map((e) => JSON.stringify(e));
  let kept;
  const scratch = await bench.compare(`messages of ${SIZE} events of 1 KB, from scratch`, {
    "stored text: split, JSON.parse, map": () => { kept = plain(text.split("\n")); },
    "without digests, split before": () => { kept = plain(lines); },
    "deriveMessages({upto})": () => { kept = long.deriveMessages({ upto: SIZE - 1 }); },
  }, { rounds: 31 });

  const short = fill(store.create(), 100);
  short.deriveMessages();
  long.deriveMessages();
  // The append is not what is measured: its time is taken out.
  const derive = (session) => {
    session.append("user/message", { text: "one more" });
    const start = performance.now();
    kept = session.deriveMessages();
    return performance.now() - start;
  };
  const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
  const times = [short, long].map(() => []);
  for (let i = 0; i < 400; i++) [short, long].forEach((session, at) => times[at].push(derive(session)));
  const [few, many] = times.map((list) => median(list.slice(100)) * 1000);
  bench.print(`deriveMessages after one append: ${few.toFixed(1)} µs at 100 events, ${many.toFixed(1)} µs at ${SIZE}`);

  const ratios = { scratch: scratch["deriveMessages({upto})"] / scratch["stored text: split, JSON.parse, map"], length: many / few, micros: many };
  for (const target of ["openai-chat", "openai-responses", "anthropic", "gemini", "ai-sdk"]) {
    const request = long.deriveRequest({ target, system: "s" });
    const result = await bench.compare(`deriveRequest(${target}) after one append`, {
      "JSON.stringify of it": () => { kept = JSON.stringify(request); },
      deriveRequest: () => {
        long.append("user/message", { text: "one more" });
        kept = long.deriveRequest({ target, system: "s" });
      },
      "assertLogInvariant too": () => {
        long.append("user/message", { text: "one more" });
        long.assertLogInvariant(long.deriveRequest({ target, system: "s" }));
      },
    }, { rounds: 11 });
    ratios[target] = result.deriveRequest / result["JSON.stringify of it"];
  }
  bench.print(`ratios: ${JSON.stringify(ratios, (_, v) => (typeof v === "number" ? Number(v.toFixed(2)) : v))}`);
  if (kept === undefined) bench.print("nothing was derived");
  await store.dispose();
}
