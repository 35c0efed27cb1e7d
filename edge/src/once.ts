// A request with a key is carried out once: sent again it gets the same answer, also when it is under way still, and also when its
// answer was lost with the object. Its key is stored with the first event of what it did.
import type { SessionEvent } from "sessionlog";
import type { Json } from "./body.js";
import { usedForAnother, type Carried, type Requests } from "./requests.js";

/** A row of the database holds at most 2 MB. */
const MOST_KEPT = 500_000;

/** What an event says of the request that it belongs to: its answer, or where that is to be looked for; null for other events. */
export type Marks = (event: SessionEvent) => Json | null;

export class Once {
  readonly #requests: Requests;
  /** What became of the run whose turn begins there. */
  readonly #outcome: (turnAt: number) => Promise<Json>;
  readonly #underWay = new Map<string, { print: string; doing: Promise<Json> }>();
  /** Requests that were begun and whose first event is to come: with that they are carried out, whatever happens to their answer. */
  readonly #begun = new Set<{ key: string; print: string; marks: Marks }>();
  /** Go into the transaction that stores the events they belong to. */
  #unstored: Carried[] = [];

  constructor(requests: Requests, outcome: (turnAt: number) => Promise<Json>) {
    this.#requests = requests;
    this.#outcome = outcome;
  }

  /** The same key again gets the same answer. What is asked again while it is being carried out waits for it. */
  async carryOut(key: string | null, print: string, work: () => Promise<Json>): Promise<Json> {
    if (key === null) return work();
    const under = this.#underWay.get(key);
    if (under !== undefined && under.print !== print) throw usedForAnother();
    if (under !== undefined) return under.doing;
    const known = this.#requests.find(key, print);
    if (known !== null) return this.#known(JSON.parse(known) as Json);
    const doing = work().finally(() => {
      this.#underWay.delete(key);
      for (const begun of this.#begun) if (begun.key === key) this.#begun.delete(begun);
    });
    this.#underWay.set(key, { print, doing });
    const answer = await doing;
    const text = JSON.stringify(answer);
    // One that is too long to be kept is made from the log, like that of a run which was cut off.
    if (text.length <= MOST_KEPT) this.#requests.add({ key, print, answer: text });
    return answer;
  }

  /** A kept answer; of a run whose answer was lost only its first event is kept. */
  async #known(answer: Json): Promise<Json> {
    const first = answer["turnAt"];
    return typeof first === "number" ? this.#outcome(first) : answer;
  }

  /** Before the work: from the first event on that `marks` knows, the request is one that was carried out. */
  begin(key: string | null, print: string, marks: Marks): void {
    if (key !== null) this.#begun.add({ key, print, marks });
  }

  /** An event of a request that was begun may be its first. */
  mark(event: SessionEvent): void {
    for (const begun of this.#begun) {
      const answer = begun.marks(event);
      if (answer === null) continue;
      this.#begun.delete(begun);
      this.store({ key: begun.key, print: begun.print, answer: JSON.stringify(answer) });
    }
  }

  /** With the next events. */
  store(carried: Carried): void {
    this.#unstored.push(carried);
  }

  /** The answer to a key whose request was carried out, if only just now. */
  find(key: string, print: string): string | null {
    const found = this.#unstored.find((carried) => carried.key === key);
    if (found !== undefined && found.print !== print) throw usedForAnother();
    return found?.answer ?? this.#requests.find(key, print);
  }

  takeUnstored(): Carried[] {
    return this.#unstored.splice(0);
  }

  /** The write that they were taken for came to nothing: their events are written again, and they with those. */
  giveBack(requests: readonly Carried[]): void {
    this.#unstored.unshift(...requests);
  }

  forget(): void {
    this.#unstored = [];
    this.#begun.clear();
  }
}
