// Scrubbing once more what is stored already: every session, its record, and the audit trails, in place of what stood there.
import type { KeyValueBackend, Scrubber } from "../types/index.js";
import type { Log } from "./log.js";
import { SessionLogError } from "./errors.js";
import { call } from "./runtime.js";
import { Chain } from "./scrub.js";
import { joinBytes, keys, MAX_BATCH, replaceSegment, segmentPuts } from "./segments.js";
import { decode, encode, type Header } from "./stored.js";

/** One session, live or not, as a rescrub needs it. */
export interface Rescrubbed {
  readonly id: string;
  readonly log: Pick<Log, "raw">;
  readonly header: Header;
  /** Appends the event that says so, and stores all that is in memory. */
  announce(scrubber: string, events: number): Promise<void>;
  /** The fence to write under. */
  fence(): Promise<Uint8Array>;
}

export function nameOf(scrubber: Scrubber): string {
  if (typeof scrubber === "function") return scrubber.name || "function";
  const { name, builtin } = scrubber as { name?: unknown; builtin?: unknown };
  return typeof name === "string" ? name : typeof builtin === "string" ? builtin : "scrubber";
}

/** A segment that is in pieces has more than one key. */
const isPiece = (key: string): boolean => !/\/e\/\d+$/.test(key);

/** How many of these keys are those of whole segments, at most `most`, but the first segment in any case. */
function countOfWhole(stored: readonly string[], most: number): number {
  const isEnd = (at: number): boolean => at >= stored.length || !isPiece(stored[at] as string);
  let count = Math.min(most, stored.length);
  while (count > 0 && !isEnd(count)) count--;
  if (count === 0) while (count < stored.length && (count === 0 || !isEnd(count))) count++;
  return count;
}

export class Rescrub {
  readonly chain = new Chain();
  readonly name: string;
  events = 0;
  #backend: KeyValueBackend;

  constructor(backend: KeyValueBackend, scrubber: Scrubber) {
    this.#backend = backend;
    this.name = nameOf(scrubber);
    this.chain.add(scrubber);
  }

  /** Rewrites one session. Its old segments go in the batch that brings the new one. */
  async session(session: Rescrubbed): Promise<void> {
    const { id, log } = session;
    const count = call(() => log.raw.rescrub(this.chain.raw));
    const damaged = decode(call(() => log.raw.damaged_bytes()));
    const scrubbed = this.chain.text(damaged);
    if (count === 0 && scrubbed === damaged) return;
    this.events += count;
    await this.#replaceSegments(session, encode(scrubbed));
    await session.announce(this.name, count);
    if (call(() => log.raw.rescrub(this.chain.raw)) !== 0) {
      throw new SessionLogError("scrubber_contract", `the scrubber ${this.name} is not idempotent: it finds something in what it wrote`, { scrubber: this.name, id });
    }
  }

  /**
   * One batch takes so many old segments and no more: then there are several new ones, each in the place of some. The rest stands as it
   * did whenever that is cut off, and the next scrub finds what is left in it.
   */
  async #replaceSegments(session: Rescrubbed, damaged: Uint8Array): Promise<void> {
    const { id, log, header } = session;
    const first = header.base?.count ?? 0;
    const checks = [{ key: keys.fence(id), equals: await session.fence() }];
    const most = this.#backend.maxBatch ?? MAX_BATCH;
    for (let from: number | null = first; from !== null; ) {
      const start: number = from;
      let late: string[] = [];
      await replaceSegment(this.#backend, checks, async () => {
        const stored = (await this.#backend.list(...keys.segments(id, start === first ? 0 : start), { keysOnly: true })).map(([key]) => key);
        const old = stored.slice(0, countOfWhole(stored, Math.max(1, most - 1)));
        const end = stored[old.length];
        from = end === undefined ? null : Number(end.slice(end.lastIndexOf("/") + 1));
        // Only now, and nothing is awaited from here on: what was stored meanwhile is among the segments that go.
        const lines = call(() => log.raw.lines(start, from ?? log.raw.len()));
        // What is damaged goes first, so that it is never nowhere.
        const puts = segmentPuts(this.#backend, id, start, start === first ? joinBytes([lines, damaged]) : lines);
        const kept = new Set(puts.map(([key]) => key));
        const deletes = old.filter((key) => !kept.has(key));
        // Only pieces of a single segment can be more: nobody reads those any more once the new first one stands.
        late = deletes.splice(most - 1);
        return { puts, deletes };
      });
      for (let at = 0; at < late.length; at += most) await this.#backend.transact({ checks, deletes: late.slice(at, at + most) });
    }
  }

  /** A JSON text, every string of it as under a content key; null when nothing changes. */
  json(text: string): string | null {
    let out: string;
    try {
      out = call(() => this.chain.raw.stored_form(text)) ?? text;
    } catch (thrown) {
      if (!(thrown instanceof SessionLogError) || thrown.code !== "not_json") throw thrown;
      out = this.chain.text(text);
    }
    return out === text ? null : out;
  }

  /** Rewrites the values below a prefix that hold JSON, or lines of it. */
  async values(start: string, end: string): Promise<void> {
    for (const [key, value] of await this.#backend.list(start, end)) {
      const text = decode(value);
      const out = text.split("\n").map((line) => (line === "" ? line : this.json(line) ?? line)).join("\n");
      if (out !== text) await this.#backend.transact({ checks: [{ key, equals: value }], puts: [[key, encode(out)]] });
    }
  }
}
