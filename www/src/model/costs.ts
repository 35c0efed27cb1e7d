// What each step cost, priced as the package prices it.
import { PriceTable, type Cost, type SessionEvent, type Usage, type UsageRecord, normalizeUsage } from "sessionlog";

export interface StepFigure {
  seq: number;
  turn: number;
  step: number;
  model: string;
  usage: Usage | null;
  cost: Cost | null;
  /** Dollars up to and with this step; what is unknown adds nothing. */
  sum: number;
}

let table: PriceTable | undefined;
const priced = new WeakMap<UsageRecord, Cost | null>();

export function stepCost(record: UsageRecord | undefined): Cost | null {
  if (!record) return null;
  const known = priced.get(record);
  if (known !== undefined) return known;
  let cost: Cost | null = null;
  try {
    cost = (table ??= PriceTable.builtin()).cost(record);
  } catch {
    // A record that cannot be read has no price; the session's own total says that it is incomplete.
  }
  priced.set(record, cost);
  return cost;
}

/** Steps in order; a later report of the same step takes the place of an earlier one. */
export function stepFigures(events: readonly SessionEvent[]): StepFigure[] {
  const steps = new Map<string, StepFigure>();
  for (const event of events) {
    if (event.type !== "step/end" && event.type !== "usage") continue;
    const { turn, step, usage } = event.data;
    steps.set(`${turn}:${step}`, {
      seq: event.seq, turn, step, model: usage?.model ?? "", usage: usage ? normalized(usage) : null, cost: stepCost(usage), sum: 0,
    });
  }
  let sum = 0;
  return [...steps.values()].map((figure) => ({ ...figure, sum: (sum += Number(figure.cost?.usd ?? 0)) }));
}

function normalized(record: UsageRecord): Usage | null {
  try {
    return normalizeUsage(record.apiShape, record.raw, { ...(record.provider ? { provider: record.provider } : {}), ...(record.model ? { model: record.model } : {}) }).usage;
  } catch {
    return null;
  }
}
