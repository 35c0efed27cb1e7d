// Delivery to listeners: in order, queued while one is running, each failure contained.

type Listener<A extends unknown[]> = (...args: A) => void;

/** A set of listeners; each `add` is one registration with an end of its own. */
export class Listeners<A extends unknown[]> {
  #active = new Set<{ call: Listener<A> }>();
  /** Those registered now, as a list that stays as it is; made anew when it is needed after a change. */
  #list: ReadonlyArray<{ call: Listener<A> }> | null = null;

  add(call: Listener<A>): () => void {
    const entry = { call };
    this.#active.add(entry);
    this.#list = null;
    return () => {
      this.#active.delete(entry);
      this.#list = null;
    };
  }

  get size(): number {
    return this.#active.size;
  }

  /** Calls those registered now; one that is removed meanwhile is not called any more. Failures go to `onError`. */
  emit(args: A, onError: (thrown: unknown) => void): void {
    if (this.#active.size === 0) return;
    for (const entry of (this.#list ??= [...this.#active])) {
      if (!this.#active.has(entry)) continue;
      try {
        const answer: unknown = entry.call(...args);
        if (answer instanceof Promise) answer.catch(onError);
      } catch (thrown) {
        onError(thrown);
      }
    }
  }

  /** Calls every listener and returns what they returned; a throw stops the rest (a veto). */
  collect(args: A): unknown[] {
    const answers: unknown[] = [];
    for (const entry of [...this.#active]) if (this.#active.has(entry)) answers.push(entry.call(...args));
    return answers;
  }

  /** Calls every listener; what one throws or rejects with is its own answer. */
  all(args: A): Promise<PromiseSettledResult<unknown>[]> {
    return Promise.allSettled([...this.#active].map(async (entry) => (entry.call as (...given: A) => unknown)(...args)));
  }

  clear(): void {
    this.#list = null;
    this.#active.clear();
  }
}

/** Runs deliveries one after another: one that is asked for inside another waits until that one is through. */
export class DeliveryQueue {
  #waiting: Array<() => void> = [];
  #running = false;

  get isIdle(): boolean {
    return !this.#running;
  }

  run(delivery: () => void): void {
    this.#waiting.push(delivery);
    if (this.#running) return;
    this.#running = true;
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) next();
    } finally {
      this.#running = false;
    }
  }

  /** Runs `work`; what it asks to be delivered comes after it. */
  hold(work: () => void): void {
    if (this.#running) return work();
    this.#running = true;
    try {
      work();
    } finally {
      this.#running = false;
      this.run(() => {});
    }
  }
}
