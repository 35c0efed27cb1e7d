// Cost through the built package: every vector, the refusals, and what comes out being plain data.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import init, { CostTotal, PriceTable, SessionLogError, SessionStore, normalizeUsage, usageOfStream } from "sessionlog";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const shared = join(root, "..", "shared", "vectors", "cost");
const folders = [join(root, "tests", "fixtures", "vectors", "cost"), ...(existsSync(shared) ? [shared] : [])];

function lines(file) {
  const texts = new Set(folders.map((folder) => readFileSync(join(folder, file), "utf8")));
  return [...texts].flatMap((text) => text.split("\n").filter(Boolean).map((line) => JSON.parse(line)));
}

const KEYS = {
  inputTokens: "input_tokens", outputTokens: "output_tokens", cacheReadTokens: "cache_read_tokens",
  cacheWriteTokens: "cache_write_tokens", cacheWrite5mTokens: "cache_write_5m_tokens", cacheWrite1hTokens: "cache_write_1h_tokens",
  reasoningTokens: "reasoning_tokens", inputAudioTokens: "input_audio_tokens", outputAudioTokens: "output_audio_tokens",
  cacheReadAudioTokens: "cache_read_audio_tokens", inputImageTokens: "input_image_tokens", outputImageTokens: "output_image_tokens",
  cacheReadImageTokens: "cache_read_image_tokens", toolInputTokens: "tool_input_tokens", citationTokens: "citation_tokens",
  webSearchRequests: "web_search_requests", fileSearchRequests: "file_search_requests",
};
const CORE = Object.keys(KEYS).slice(0, 7);

function checkUsage(id, usage, expected) {
  for (const [key, name] of Object.entries(KEYS)) assert.equal(usage?.[key] ?? 0, expected[name] ?? 0, `${id} ${key}`);
  if (usage === null) return;
  for (const key of Object.keys(usage)) assert.ok(CORE.includes(key) || usage[key] !== 0, `${id} writes ${key}: 0`);
  for (const key of CORE) assert.ok(key in usage, `${id} lacks ${key}`);
}

function checkCost(id, cost, expected) {
  const unknown = expected.cost_picodollars === "unknown";
  assert.equal(cost.picodollars, unknown ? null : expected.cost_picodollars, id);
  assert.equal(cost.source, expected.cost_source, id);
  assert.equal(cost.complete, !unknown, id);
  for (const flag of expected.flags ?? []) assert.ok(cost.flags.includes(flag), `${id} lacks ${flag}`);
  assert.deepEqual(JSON.parse(JSON.stringify(cost)), cost, id);
  if (unknown) {
    assert.deepEqual([cost.usd, cost.cents], [null, null], id);
    return;
  }
  assert.equal(cost.usd, scaled(BigInt(cost.picodollars), 12), id);
  assert.equal(cost.cents, Number(scaled(BigInt(cost.picodollars), 10)), id);
}

/** An independent way to the decimal: BigInt and text. */
function scaled(pico, places) {
  const digits = pico.toString().padStart(places + 1, "0");
  const text = `${digits.slice(0, -places)}.${digits.slice(-places)}`;
  return text.replace(/\.?0+$/, "");
}

const options = (v) => ({
  ...(v.provider === null ? {} : { provider: v.provider }),
  ...(v.model === null ? {} : { model: v.model }),
  ...(v.tool_counts ? { toolCounts: v.tool_counts } : {}),
  ...(v.provider_metadata ? { providerMetadata: v.provider_metadata } : {}),
});
const recordOf = (v, raw) => ({
  apiShape: v.api_shape.replace(/\.stream$/, ""), raw, at: v.at, ...options(v),
  ...(v.tier ? { tier: v.tier } : {}), ...(v.override ? { override: v.override } : {}),
});

before(() => init());

test("every record", () => {
  const prices = PriceTable.builtin();
  const records = lines("records.jsonl");
  assert.ok(records.length >= 339);
  for (const v of records) {
    checkUsage(v.id, normalizeUsage(v.api_shape, v.raw_usage, options(v)).usage, v.expected);
    checkCost(v.id, prices.cost(recordOf(v, v.raw_usage)), v.expected);
  }
});

test("every stream", () => {
  const prices = PriceTable.builtin();
  const streams = lines("streams.jsonl");
  assert.ok(streams.length >= 19);
  for (const v of streams) {
    const found = usageOfStream(v.api_shape, v.events, options(v));
    checkUsage(v.id, found.usage, v.expected);
    assert.deepEqual(normalizeUsage(v.api_shape, found.raw, options(v)).usage, found.usage, v.id);
    checkCost(v.id, prices.cost(recordOf(v, found.raw)), v.expected);
  }
});

test("every running total of cents", () => {
  for (const v of lines("sessions.jsonl").filter((v) => v.kind === "session_cost_cents")) {
    const total = new CostTotal();
    const runs = v.runs ?? [...(v.generate.prefix ?? []), ...Array(v.generate.count).fill(v.generate.run)];
    let refused = 0;
    runs.forEach((run, i) => {
      if ("cost_cents" in run) {
        try {
          total.add(run.cost_cents);
        } catch (error) {
          assert.equal(error.code, "invalid_usage");
          refused++;
        }
      }
      if (v.expected.after_each) assert.equal(total.cents, Number(v.expected.after_each[i]), v.id);
    });
    assert.equal(refused, v.expected.refused ?? 0, v.id);
    assert.equal(scaled(BigInt(total.picodollars), 10), v.expected.session_cost_cents, v.id);
    assert.equal(total.usd, scaled(BigInt(total.picodollars), 12), v.id);
  }
});

test("a total takes strings as they are and refuses what is no amount", () => {
  const total = new CostTotal();
  total.add("0.1");
  total.add(0.2);
  total.add("1e-7");
  total.add(-0);
  assert.deepEqual([total.cents, total.usd, total.picodollars], [0.3000001, "0.003000001", "3000001000"]);
  for (const bad of [-1, NaN, Infinity, "", "-0.1", "abc", " 1", "0x1", null, undefined, {}, true, 1n, "1e300"]) {
    assert.throws(() => total.add(bad), (e) => e instanceof SessionLogError && e.code === "invalid_usage", String(bad));
  }
  assert.equal(total.picodollars, "3000001000");
});

test("faults of a price table are named by path", () => {
  const table = (price, model = {}, top = {}) => ({
    schema: "sessionlog.prices/1",
    providers: [{ id: "acme", models: [{ id: "acme-1", prices: [price], ...model }] }],
    ...top,
  });
  const good = { rates: { input: "3", output: "15" } };
  const faults = [
    [table({ rates: { input: "-3" } }), "providers[0].models[0].prices[0].rates.input"],
    [table({ rates: { input: 3 } }), "providers[0].models[0].prices[0].rates.input"],
    [table({ rates: { inptu: "3" } }), "providers[0].models[0].prices[0].rates.inptu"],
    [table(good, {}, { rate_unit: "EUR per token" }), "rate_unit"],
    [table(good, {}, { schema: "other" }), "schema"],
    [table(good, { prices: [good, { ...good, from: "2026-01-01" }, { ...good, from: "2026-01-01" }] }), "providers[0].models[0].prices[2]"],
    [table(good, { pricess: [] }), "providers[0].models[0].pricess"],
  ];
  for (const [json, path] of faults) {
    assert.throws(() => PriceTable.fromJson(json), (e) => e.code === "invalid_price_table" && e.details.path === path, path);
  }
  const loop = {};
  loop.self = loop;
  for (const bad of [null, undefined, 5, "x", [], loop]) {
    assert.throws(() => PriceTable.fromJson(bad), (e) => e instanceof SessionLogError && e.code === "invalid_price_table");
  }
});

test("a user's own prices win over the table's", () => {
  const own = PriceTable.fromJson({
    schema: "sessionlog.prices/1", as_of: "2026-12-01",
    providers: [{ id: "openai", models: [{ id: "gpt-4o", prices: [{ rates: { input: "1", output: "2" } }] }] }],
  });
  const both = PriceTable.builtin().with(own);
  const record = (model) => ({ apiShape: "openai.chat", provider: "openai", model, raw: { prompt_tokens: 1_000_000, completion_tokens: 0 }, at: "2026-11-20" });
  assert.equal(both.cost(record("gpt-4o")).usd, "1");
  assert.equal(both.cost(record("gpt-4.1")).usd, "2");
  assert.equal(PriceTable.builtin().cost(record("gpt-4o")).usd, "2.5");
  assert.deepEqual([PriceTable.builtin().asOf, both.asOf], ["2026-11-09", "2026-12-01"]);
});

test("lookup says what it found and how", () => {
  const prices = PriceTable.builtin();
  assert.deepEqual(prices.lookup("openai", "gpt-5.2-20251211"), { provider: "openai", model: "gpt-5.2", flags: [] });
  assert.deepEqual(prices.lookup(undefined, "claude-sonnet-4-6"), { provider: "anthropic", model: "claude-sonnet-4-6", flags: ["provider_inferred"] });
  assert.deepEqual(prices.lookup("azure", "gpt-4o"), { provider: "openai", model: "gpt-4o", flags: ["fallback_provider"] });
  for (const [provider, model] of [["openai", "gpt-4oo"], ["nobody", "gpt-4o"], ["openai", ""], ["OpenAI", "\ud800"]]) {
    assert.equal(prices.lookup(provider, model), null);
  }
});

test("nonsense is counted as nothing or refused, and never breaks the module", () => {
  const prices = PriceTable.builtin();
  assert.throws(() => normalizeUsage("no.such", {}), (e) => e.code === "invalid_usage");
  assert.throws(() => prices.cost({ apiShape: "no.such", raw: {} }), (e) => e.code === "invalid_usage");
  assert.throws(() => prices.cost({ apiShape: "openai.chat", raw: { prompt_tokens: 1n } }), (e) => e.code === "invalid_usage");
  assert.throws(() => usageOfStream("openai.chat", {}), (e) => e.code === "invalid_usage");
  assert.throws(() => new PriceTable(), (e) => e.code === "invalid_argument");
  for (const raw of [null, undefined, {}, [], "x", 5, true, { prompt_tokens: "12" }, { prompt_tokens: null }, { prompt_tokens: NaN }]) {
    assert.deepEqual(normalizeUsage("openai.chat", raw), { usage: null, flags: ["missing_usage"] });
    const cost = prices.cost({ apiShape: "openai.chat", provider: "openai", model: "gpt-4o", raw });
    assert.deepEqual([cost.picodollars, cost.source, cost.complete], [null, "unknown", false]);
  }
  const { usage } = normalizeUsage("openai.chat", { prompt_tokens: -5, completion_tokens: true, total_tokens: 1e400 });
  assert.deepEqual([usage.inputTokens, usage.outputTokens], [0, 0]);
});

test("a record without a time is priced as of now", () => {
  const cost = PriceTable.builtin().cost({ apiShape: "openai.chat", provider: "openai", model: "gpt-4o", raw: { prompt_tokens: 4 } });
  assert.equal(cost.usd, "0.00001");
});


async function withSession(run) {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  try {
    return await run(store.create(), store);
  } finally {
    await store.dispose();
  }
}

function checkSession(id, usage, expected) {
  assert.equal(usage.steps, expected.steps, id);
  assert.equal(usage.unpricedSteps, expected.unpriced_steps, id);
  assert.equal(usage.promptTokens, expected.prompt_tokens ?? expected.input_tokens, id);
  assert.equal(usage.completionTokens, expected.completion_tokens ?? expected.output_tokens, id);
  assert.equal(usage.cost.picodollars, expected.cost_picodollars, id);
  assert.equal(usage.cost.complete, expected.unpriced_steps === 0, id);
  assert.equal(usage.cost.source, "sum", id);
}

test("every session that is written out", async () => {
  for (const v of lines("sessions.jsonl").filter((v) => v.kind !== "session_cost_cents" && v.events)) {
    await withSession((session) => {
      let turn = 0;
      for (const { type, payload } of v.events) {
        if (type === "step/end") {
          turn++;
          const usage = v.kind === "priced_projection" ? { ...recordOf(payload, payload.raw_usage) }
            : payload.usage ? { apiShape: "step.usage", raw: payload.usage } : undefined;
          session.append("step/end", { turn, step: 1, ...(usage ? { usage } : {}) });
        } else if (type === "usage") {
          session.append("usage", { turn, step: 1, usage: { apiShape: "step.usage", raw: payload } });
        } else if (type === "session/compacted") {
          session.append(type, { summary: payload.summary, uptoSeq: payload.upto_seq });
        } else if (type === "session/forked") {
          session.append(type, payload);
        }
      }
      checkSession(v.id, session.usage(), v.expected);
      assert.deepEqual(session.usage(), session.usage());
    });
  }
});

test("a hundred thousand steps, each asked for as it comes", async () => {
  const v = lines("sessions.jsonl").find((v) => v.generate?.kind === "lcg" && v.generate.count === 100000);
  await withSession((session) => {
    const { seed, a, c, m, count } = v.generate;
    let x = BigInt(seed);
    for (let i = 0; i < count; i++) {
      x = (BigInt(a) * x + BigInt(c)) % BigInt(m);
      const cost = Number(`${x % 1000003n}e-9`);
      session.append("step/end", { turn: i, step: 1, usage: { apiShape: "step.usage", raw: { prompt_tokens: Number(x % 4096n), completion_tokens: 1, cost } } });
      if (i % 1000 === 0) session.usage();
    }
    checkSession(v.id, session.usage(), v.expected);
  });
});

test("a fork counts what is its own, and nothing ever costs less", async () => {
  await withSession((parent, store) => {
    const step = (turn, cost) => ({ turn, step: 1, usage: { apiShape: "step.usage", raw: { prompt_tokens: 1, completion_tokens: 1, cost } } });
    parent.append("turn/start", { turn: 1, trigger: { kind: "message" } });
    parent.append("step/end", step(1, 0.1));
    parent.append("turn/end", { turn: 1, reason: { kind: "completed" } });
    const child = store.fork(parent.id);
    assert.deepEqual([child.usage().cost.usd, child.usage().own.cost.usd], ["0.1", "0"]);
    child.append("step/end", step(2, 0.2));
    child.append("session/rewound", { uptoSeq: 0 });
    assert.deepEqual([child.usage().cost.usd, child.usage().own.cost.usd, parent.usage().cost.usd], ["0.3", "0.2", "0.1"]);
  });
});
