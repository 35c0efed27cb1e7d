// Calls that come while others are under way are carried out together, in their order: one write for all of them costs hardly
// more than one for each.

/** What became of one of them: an answer, or what it was refused with. */
export type Outcome<Answer> = { answer: Answer } | { thrown: unknown };

export function outcome<Answer>(work: () => Answer): Outcome<Answer> {
  try {
    return { answer: work() };
  } catch (thrown) {
    return { thrown };
  }
}

export function answerIn<Answer>(what: Outcome<Answer>): Answer {
  if ("thrown" in what) throw what.thrown;
  return what.answer;
}

export class Together<Asked, Answer> {
  readonly #carryOut: (all: readonly Asked[]) => Promise<ReadonlyArray<Outcome<Answer>>>;
  readonly #serial: (work: () => Promise<void>) => Promise<void>;
  #waiting: Array<{ asked: Asked; settle: (outcome: Outcome<Answer>) => void }> = [];
  #underWay = 0;

  /** `carryOut` gives an outcome for each, in their order, or fails for all; it is called within `serial`. */
  constructor(serial: (work: () => Promise<void>) => Promise<void>, carryOut: (all: readonly Asked[]) => Promise<ReadonlyArray<Outcome<Answer>>>) {
    this.#serial = serial;
    this.#carryOut = carryOut;
  }

  /** Reads what is asked and carries it out; from the reading on it is one of those that others may wait for. */
  async ask(read: () => Promise<Asked>): Promise<Answer> {
    this.#underWay++;
    try {
      const asked = await read();
      return await new Promise<Answer>((resolve, reject) => {
        this.#waiting.push({ asked, settle: (outcome) => ("answer" in outcome ? resolve(outcome.answer) : reject(outcome.thrown)) });
        if (this.#waiting.length === 1) void this.#next();
      });
    } finally {
      this.#underWay--;
    }
  }

  async #next(): Promise<void> {
    // A turn of the event loop: whoever has come by then goes along. One who is alone waits for nobody.
    if (this.#underWay > 1) await scheduler.wait(0);
    await this.#serial(async () => {
      const all = this.#waiting.splice(0);
      const outcomes = await this.#carryOut(all.map(({ asked }) => asked)).catch((thrown: unknown) => all.map(() => ({ thrown })));
      for (const [at, { settle }] of all.entries()) settle(outcomes[at] as Outcome<Answer>);
    });
  }
}
