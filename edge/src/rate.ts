// How many calls a second: a bucket that fills steadily and holds twice as much.
import { Refusal } from "./refusal.js";

export class Bucket {
  #level: number;
  #at = Date.now();
  constructor(readonly perSecond: number) {
    this.#level = 2 * perSecond;
  }

  /** Takes some out; false when there is not that much. */
  take(count = 1): boolean {
    const now = Date.now();
    this.#level = Math.min(2 * this.perSecond, this.#level + ((now - this.#at) / 1000) * this.perSecond);
    this.#at = now;
    if (this.#level < count) return false;
    this.#level -= count;
    return true;
  }

  /** Nobody took anything for a while. */
  get isFull(): boolean {
    return Date.now() - this.#at > 2_000;
  }
}

const MANY = 10_000;

/** A bucket per name. In one isolate: a caller who reaches several of them gets as many times the rate. */
export class Buckets {
  readonly #buckets = new Map<string, Bucket>();

  take(name: string, perSecond: number): void {
    let bucket = this.#buckets.get(name);
    if (bucket === undefined || bucket.perSecond !== perSecond) {
      if (this.#buckets.size >= MANY) for (const [other, idle] of this.#buckets) if (idle.isFull) this.#buckets.delete(other);
      this.#buckets.set(name, (bucket = new Bucket(perSecond)));
    }
    if (!bucket.take()) throw tooMany();
  }
}

export function tooMany(): Refusal {
  return new Refusal(429, "too_many", "too many calls: wait a second", { "retry-after": "1" });
}
