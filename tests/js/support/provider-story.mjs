// One story for every provider, told in Node and in Chromium: a refusal that passes, thoughts with their signatures, two
// tools side by side, slow words, a connection that is cut, a stop, a refusal that stays. `lib` is the built package.
import { memoryBackend } from "../memory-backend.mjs";

/** Runs in either place and returns nothing but data. */
export async function tell(lib, model, providerOptions) {
  const backend = memoryBackend();
  const storage = { kind: "custom", backend };
  const store = await lib.SessionStore.open({ storage });
  const fs = await lib.VirtualFs.open({ storage });
  const output = [];
  const controller = new lib.ChatSessionController({ store, fs, outputFn: (text) => output.push(text) });
  const { session } = controller;
  const ran = [];
  let together = 0;
  let most = 0;
  const tool = (name, properties) => ({
    name, description: `${name}s`, parameters: { type: "object", properties, required: Object.keys(properties) }, parallel: true,
    async run(args, { callId }) {
      most = Math.max(most, ++together);
      await new Promise((resolve) => setTimeout(resolve, 10));
      together--;
      ran.push([callId, name, args]);
      return `${name} ${JSON.stringify(args)}`;
    },
  });
  const config = { model, providerOptions, system: "be kind", tools: [tool("read", { path: { type: "string" } }), tool("list", { n: { type: "integer" } })] };
  const results = {};
  results.whole = await controller.executeTask("go", config);
  results.cut = await controller.executeTask("be cut", config);
  const stop = session.on("event", ({ type, data }) => {
    if (type !== "assistant/chunk" || !data.text.includes("slow")) return;
    stop();
    setTimeout(() => controller.cancel("enough"), 0);
  });
  results.stopped = await controller.executeTask("be slow", config);
  results.refused = await controller.executeTask("be refused", config);
  await store.flush();
  const audits = await Promise.all(Object.values(results).map(({ runResult }) => store.runs.showRun(runResult.runId)));
  const stored = [...backend.map.values()].map((bytes) => new TextDecoder().decode(bytes)).join("\n");
  const again = await lib.SessionStore.open({ storage });
  const reread = await again.read(session.id);
  return JSON.parse(JSON.stringify({ results, output, ran: ran.sort(), most, events: session.events, reread, usage: session.usage(), verify: session.verify(), audits, stored }));
}
