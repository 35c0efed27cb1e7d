// Usage and cost: data goes in as one JSON text, figures come back as one short line.
import type { ApiShape, Cost, JsonValue, Usage, UsageRecord } from "../types/index.js";
import { SessionLogError } from "./errors.js";
import type { RawCostTotal, RawPriceTable } from "./glue.js";
import { call } from "./runtime.js";

interface UsageOptions {
  provider?: string;
  model?: string;
  toolCounts?: { [tool: string]: number };
  /** Where version 5 of the AI SDK keeps what was written to the cache. */
  providerMetadata?: JsonValue;
}

/** Data as JSON text; what JSON has no word for reads as `null`, which counts as absent. */
function textOf(value: unknown, code: "invalid_usage" | "invalid_price_table"): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (thrown) {
    throw new SessionLogError(code, "what was given is not plain data", {}, thrown);
  }
  return text ?? "null";
}

/** Normalises one raw usage object of a provider. */
export function normalizeUsage(apiShape: ApiShape, raw: JsonValue, options: UsageOptions = {}): { usage: Usage | null; flags: string[] } {
  const [rawText, optionsText] = [textOf(raw, "invalid_usage"), textOf(options, "invalid_usage")];
  return JSON.parse(call((m) => m.raw_normalize_usage(String(apiShape), rawText, optionsText))) as { usage: Usage | null; flags: string[] };
}

/** Finds the usage of one streamed answer in its payloads. */
export function usageOfStream(apiShape: ApiShape, payloads: JsonValue[], options: UsageOptions = {}): { usage: Usage | null; raw: JsonValue; flags: string[] } {
  const [payloadsText, optionsText] = [textOf(payloads, "invalid_usage"), textOf(options, "invalid_usage")];
  const found = call((m) => m.raw_usage_of_stream(String(apiShape), payloadsText, optionsText));
  return JSON.parse(found) as { usage: Usage | null; raw: JsonValue; flags: string[] };
}

/** `source|complete|picodollars|dollars|cents|flag,flag`, as the module packs a cost. */
function unpack(line: string): Cost {
  const [source, complete, picodollars, usd, cents, flags] = line.split("|") as [Cost["source"], string, string, string, string, string];
  const known = picodollars !== "";
  return {
    picodollars: known ? picodollars : null,
    usd: known ? usd : null,
    // The exact decimal: JavaScript reads it as the nearest double.
    cents: known ? +cents : null,
    source,
    complete: complete === "1",
    flags: flags === "" ? [] : flags.split(","),
  };
}

const raws = new WeakMap<PriceTable, RawPriceTable>();

/** The module's side of a price table. */
export function rawPrices(table: PriceTable): RawPriceTable {
  const raw = raws.get(table);
  if (raw === undefined) throw new SessionLogError("invalid_argument", "prices must be a PriceTable");
  return raw;
}

function wrap(raw: RawPriceTable): PriceTable {
  const table = Object.create(PriceTable.prototype) as PriceTable;
  raws.set(table, raw);
  return table;
}

/** What models cost, since when. Immutable. */
export class PriceTable {
  private constructor() {
    throw new SessionLogError("invalid_argument", "use PriceTable.builtin() or PriceTable.fromJson(…)");
  }

  static builtin(): PriceTable {
    return wrap(call((m) => m.RawPriceTable.builtin()));
  }

  static fromJson(table: JsonValue): PriceTable {
    const text = textOf(table, "invalid_price_table");
    return wrap(call((m) => m.RawPriceTable.from_json(text)));
  }

  with(over: PriceTable): PriceTable {
    const [lower, upper] = [rawPrices(this), rawPrices(over)];
    return wrap(call(() => lower.with(upper)));
  }

  get asOf(): string {
    const raw = rawPrices(this);
    return call(() => raw.as_of());
  }

  lookup(provider: string | undefined, model: string): { provider: string; model: string; flags: string[] } | null {
    const raw = rawPrices(this);
    const found = call(() => raw.lookup(provider ?? undefined, String(model)));
    return found === undefined ? null : (JSON.parse(found) as { provider: string; model: string; flags: string[] });
  }

  cost(record: UsageRecord): Cost {
    const raw = rawPrices(this);
    const text = textOf(record, "invalid_usage");
    return unpack(call(() => raw.cost(text, Date.now())));
  }
}

/** An exact running total of cents. */
export class CostTotal {
  readonly #raw: RawCostTotal = call((m) => new m.RawCostTotal());

  add(cents: number | string): void {
    // A number is the shortest decimal that reads as it: that is what String writes.
    const text = typeof cents === "number" && cents >= 0 ? String(cents) : cents;
    if (typeof text !== "string") throw new SessionLogError("invalid_usage", "an amount of cents is a number of at least 0");
    call(() => this.#raw.add(text));
  }

  get picodollars(): string {
    return call(() => this.#raw.picodollars());
  }

  get usd(): string {
    return call(() => this.#raw.usd());
  }

  get cents(): number {
    return call(() => this.#raw.cents());
  }
}
