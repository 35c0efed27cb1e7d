// Money and sizes in words.
import type { Cost } from "sessionlog";

export function money(cost: Cost | null | undefined): string {
  if (!cost || cost.usd === null) return "cost unknown";
  const value = Number(cost.usd);
  const digits = value === 0 || value >= 1 ? 2 : Math.min(8, Math.max(2, 2 - Math.floor(Math.log10(value))));
  return `${cost.complete ? "" : "at least "}$${value.toFixed(digits)}`;
}

export function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = "B";
  for (const next of units) {
    if (value < 1000) break;
    value /= 1000;
    unit = next;
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
}
