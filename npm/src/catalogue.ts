// Lists of sessions: order, pages, and what a sweep takes.
import type { SessionSummary } from "../types/index.js";
import { shown } from "./arguments.js";
import { SessionLogError } from "./errors.js";
import { reading, type Entry } from "./records.js";

export interface SessionsOptions { sort?: string; order?: string; includeArchived?: boolean; projectRoot?: string; limit?: number; offset?: number }
export interface SweepPolicy { maxAgeDays?: number | null; maxSessions?: number | null }

const DAY_MS = 86_400_000;

/** Sorted and cut to a page; a sort or order that is none falls back to the newest first. */
export function arrange(rows: SessionSummary[], options: SessionsOptions): SessionSummary[] {
  const sort = options.sort === "createdAt" ? "createdAt" : "updatedAt";
  const sign = options.order === "asc" && (options.sort === undefined || options.sort === sort) ? 1 : -1;
  const time = (row: SessionSummary) => (Number.isFinite(row[sort]) ? row[sort] : 0);
  rows.sort((a, b) => sign * (time(a) - time(b)) || (a.id < b.id ? -1 : 1));
  const offset = Math.max(0, options.offset ?? 0);
  return rows.slice(offset, options.limit === undefined ? undefined : offset + Math.max(0, options.limit));
}

/** A limit of a sweep; what is no limit at all would delete everything. */
function limitOf(name: string, given: unknown, otherwise: number): number {
  const limit = given ?? otherwise;
  if (typeof limit === "number" && limit >= 0 && limit < Infinity) return limit;
  throw new SessionLogError("invalid_argument", `${name} must be a number from 0 on, not ${shown(given)}`, { path: name });
}

/** Which sessions a sweep deletes: those that are too old, then, while there are too many, scratch and empty ones first, the oldest first. */
export function sweepPlan(rows: Array<[string, Entry]>, live: number, policy: SweepPolicy, now: number): string[] {
  const maxAgeDays = limitOf("maxAgeDays", policy.maxAgeDays, 14);
  const maxSessions = limitOf("maxSessions", policy.maxSessions, 500);
  const known = rows.map(([id, entry]) => {
    const record = reading(entry);
    const updated = Date.parse(record.updatedAt);
    const age = Math.max(Number.isFinite(updated) ? updated : 0, entry.unarchivedAt ?? 0);
    return { id, age, cheap: record["scratch"] === true || entry.events === 0 };
  });
  const old = maxAgeDays === 0 ? [] : known.filter((row) => now - row.age > maxAgeDays * DAY_MS);
  const rest = known.filter((row) => !old.includes(row));
  const excess = maxSessions === 0 ? 0 : Math.max(0, rest.length + live - maxSessions);
  rest.sort((a, b) => Number(b.cheap) - Number(a.cheap) || a.age - b.age || (a.id < b.id ? -1 : 1));
  return [...old, ...rest.slice(0, excess)].map((row) => row.id);
}
