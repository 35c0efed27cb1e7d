// A caller's clock, made one that can be asked anywhere.

/** The last moment that a Date can hold. */
const MAX_TIME = 8.64e15;

/** Times are for people: a clock that throws, or tells no time, stands still, and costs no event. */
export function steady(clock: () => number): () => number {
  let last = 0;
  return () => {
    try {
      const told = Math.floor(clock());
      if (Math.abs(told) <= MAX_TIME) last = told;
    } catch {
      // It stands still.
    }
    return last;
  };
}
