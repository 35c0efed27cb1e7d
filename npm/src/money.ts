// Amounts on this side of the module: exact picodollars as BigInt, floats only to show.
import type { Cost } from "../types/index.js";

const PICO_PER_DOLLAR = 1_000_000_000_000n;
const PICO_PER_CENT = 10_000_000_000;

/** Dollars without rounding, exponent or trailing zeros. */
export function usdOf(pico: bigint): string {
  const fraction = (pico % PICO_PER_DOLLAR).toString().padStart(12, "0").replace(/0+$/, "");
  return `${pico / PICO_PER_DOLLAR}${fraction === "" ? "" : `.${fraction}`}`;
}

/** The double nearest to an exact amount, in cents: the parser of decimal text rounds right. */
export function centsOf(pico: bigint): number {
  return Number(`${pico}e-10`);
}

/** Adds cents exactly where they are amounts of whole picodollars (all that this module makes are). */
export function addCents(a: number, b: number): number {
  const pico = (cents: number) => Math.round(cents * PICO_PER_CENT);
  const [x, y] = [pico(a), pico(b)];
  return Number.isSafeInteger(x) && Number.isSafeInteger(y) ? centsOf(BigInt(x) + BigInt(y)) : a + b;
}

/** What a run has cost. */
export function sumCost(pico: bigint, complete: boolean): Cost {
  return { picodollars: pico.toString(), usd: usdOf(pico), cents: centsOf(pico), source: "sum", complete, flags: [] };
}

/** For people: dollars with as many digits as it takes to see something. */
export function showCost(cost: Cost): string {
  const pico = BigInt(cost.picodollars ?? "0");
  const usd = centsOf(pico) / 100;
  const digits = usd === 0 || usd >= 1 ? 2 : usd >= 0.01 ? 4 : 6;
  return `${cost.complete ? "" : "at least "}$${usd.toFixed(digits)}`;
}
