// Raw usage records per second through the JavaScript boundary, next to @pydantic/genai-prices in the same run.
// Build first (`cargo xtask build`), then `node benches/cost.mjs [seconds]`. The table is compiled, all caches are warm.
import { readFileSync } from "node:fs";
import { calcPrice, extractUsage, findProvider } from "@pydantic/genai-prices";
import init, { PriceTable } from "sessionlog";

const seconds = Number(process.argv[2] ?? 2);
await init();
const prices = PriceTable.builtin();
const vectors = readFileSync(new URL("../tests/fixtures/vectors/cost/records.jsonl", import.meta.url), "utf8")
  .split("\n").filter(Boolean).map((line) => JSON.parse(line));

const ours = vectors.map((v) => ({
  apiShape: v.api_shape, raw: v.raw_usage, at: v.at,
  ...(v.provider === null ? {} : { provider: v.provider }), ...(v.model === null ? {} : { model: v.model }),
  ...(v.tier ? { tier: v.tier } : {}), ...(v.tool_counts ? { toolCounts: v.tool_counts } : {}),
  ...(v.override ? { override: v.override } : {}), ...(v.provider_metadata ? { providerMetadata: v.provider_metadata } : {}),
}));

// What both can read: the shapes for which the other library has an extractor.
const FLAVORS = { "openai.chat": "chat", "openai.responses": "responses", "anthropic.messages": "default", "gemini.generate": "default" };
function theirs(v) {
  const flavor = FLAVORS[v.api_shape];
  const provider = flavor && v.provider !== null ? findProvider({ providerId: v.provider }) : undefined;
  if (provider === undefined) return null;
  const data = v.api_shape === "gemini.generate" ? { usageMetadata: v.raw_usage, modelVersion: v.model } : { usage: v.raw_usage, model: v.model };
  const timestamp = new Date(v.at);
  const run = () => {
    const { usage } = extractUsage(provider, data, flavor);
    return calcPrice(usage, v.model, { provider, timestamp });
  };
  try {
    return run() === null ? null : run;
  } catch {
    return null;
  }
}
const both = vectors.map((v, i) => ({ ours: ours[i], theirs: theirs(v) })).filter((pair) => pair.theirs !== null);

/** Records per second in one short round. */
function round(items, work) {
  let done = 0;
  const start = performance.now();
  const end = start + 100;
  while (performance.now() < end) {
    for (const item of items) work(item);
    done += items.length;
  }
  return done / ((performance.now() - start) / 1000);
}

// Rounds take turns, so that whatever else the machine does hits all alike; the best round is the least disturbed one.
const runs = {
  "ours, all shapes": { items: ours, work: (r) => prices.cost(r), rates: [] },
  "ours, shapes both read": { items: both, work: (p) => prices.cost(p.ours), rates: [] },
  "@pydantic/genai-prices": { items: both, work: (p) => p.theirs(), rates: [] },
};
for (let i = 0; i < seconds * 10; i++) for (const run of Object.values(runs)) run.rates.push(round(run.items, run.work));
const results = Object.fromEntries(Object.entries(runs).map(([name, run]) => [name, [Math.round(Math.max(...run.rates)), run.items.length]]));
for (const [name, [perSecond, records]] of Object.entries(results)) {
  console.log(`${name.padEnd(28)} ${perSecond.toLocaleString("en-US").padStart(10)} records/s over ${records} records`);
}
console.log(`factor ${(results["ours, shapes both read"][0] / results["@pydantic/genai-prices"][0]).toFixed(1)}`);
