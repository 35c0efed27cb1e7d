// The published conformance suite: what any backend must do. The module has the same cases for its own tests
// (src/store/conformance.rs); here they are plain code of the shell, because compiled they would be a tenth of the module.
import type { KeyValueBackend } from "../types/index.js";
import { SessionLogError, toError } from "./errors.js";

type Make = () => Promise<KeyValueBackend> | KeyValueBackend;
type ListOptions = NonNullable<Parameters<KeyValueBackend["list"]>[2]>;
type Entries = Array<[string, Uint8Array]>;
interface Changes { checks?: Array<[string, Value]>; puts?: Array<[string, Value]>; deletes?: string[] }
/** Bytes, or the text whose UTF-8 they are; null is the absence of a value. */
type Value = Uint8Array | string | null;

const MIB = 1024 * 1024;
const DEFAULT_MAX_VALUE = 64 * MIB;
const DEFAULT_MAX_BATCH = 10_000;

const bytesOf = (value: Uint8Array | string): Uint8Array => (typeof value === "string" ? new TextEncoder().encode(value) : value.slice());

function same(a: Value, b: Value): boolean {
  if (a === null || b === null) return a === b;
  const [left, right] = [bytesOf(a), bytesOf(b)];
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}

function sameEntries(found: Entries, wanted: Array<[string, Value]>): boolean {
  return found.length === wanted.length && found.every(([key, value], index) => key === wanted[index]?.[0] && same(value, wanted[index][1]));
}

const show = (value: Value): string => (value === null ? "nothing" : `${bytesOf(value).length} bytes`);

/** What a case found; anything else that is thrown comes from the backend. */
class Finding extends Error {}

function ensure(holds: boolean, what: () => string): void {
  if (!holds) throw new Finding(what());
}

function said(thrown: unknown): string {
  if (thrown instanceof Finding) return thrown.message;
  const { code, message } = toError(thrown);
  return `${code}: ${message}`;
}

/** Waits until all are done, so that none works on while the next case has begun; then the first failure counts. */
async function together(works: Array<Promise<void>>): Promise<void> {
  for (const result of await Promise.allSettled(works)) {
    if (result.status === "rejected") throw result.reason;
  }
}

function checkShape(store: KeyValueBackend): void {
  for (const name of ["get", "list", "transact"] as const) {
    ensure(typeof (store as KeyValueBackend | null | undefined)?.[name] === "function", () => `the backend has no \`${name}\``);
  }
}

function checkValue(value: unknown): asserts value is Uint8Array {
  ensure(value instanceof Uint8Array, () => "the backend answered with something other than a Uint8Array");
}

function checkEntries(found: unknown, keysOnly: boolean): asserts found is Entries {
  ensure(Array.isArray(found), () => "the backend answered with a list that is no array");
  for (const pair of found as unknown[]) {
    ensure(Array.isArray(pair), () => "the backend answered with an entry that is no pair");
    const [key, value] = pair as unknown[];
    ensure(typeof key === "string", () => "the backend answered with a key that is no text");
    if (!keysOnly) checkValue(value);
  }
}

async function opened(make: Make, failure: string): Promise<KeyValueBackend> {
  try {
    const store = await make();
    checkShape(store);
    return store;
  } catch (thrown) {
    throw new Finding(`${failure}: ${said(thrown)}`);
  }
}

/** One case: the store, opened for it alone, and a prefix below which it may do as it likes. */
class Case {
  constructor(readonly make: Make, readonly store: KeyValueBackend, readonly prefix: string) {}

  get maxValueBytes(): number {
    return this.store.maxValueBytes ?? DEFAULT_MAX_VALUE;
  }

  get maxBatch(): number {
    return Math.max(1, this.store.maxBatch ?? DEFAULT_MAX_BATCH);
  }

  key(name: string): string {
    return this.prefix + name;
  }

  put(name: string, value: Value): Promise<void> {
    return this.transact({ puts: [[name, value]] });
  }

  async get(name: string): Promise<Uint8Array | null> {
    const found: unknown = await this.store.get(this.key(name));
    if (found === null) return null;
    checkValue(found);
    return found;
  }

  async expect(name: string, value: Value): Promise<void> {
    const found = await this.get(name);
    ensure(same(found, value), () => `${JSON.stringify(name)}: ${show(found)} instead of ${show(value)}`);
  }

  async transact({ checks = [], puts = [], deletes = [] }: Changes): Promise<void> {
    await this.store.transact({
      checks: checks.map(([name, value]) => ({ key: this.key(name), equals: value === null ? null : bytesOf(value) })),
      puts: puts.map(([name, value]) => [this.key(name), bytesOf(value ?? "")]),
      deletes: deletes.map((name) => this.key(name)),
    });
  }

  /** The batch must fail with `conflict`. */
  async refused(changes: Changes): Promise<void> {
    let code: string | null = null;
    try {
      await this.transact(changes);
    } catch (thrown) {
      code = toError(thrown).code;
    }
    ensure(code !== null, () => "the batch went through");
    ensure(code === "conflict", () => `code ${code} instead of conflict`);
  }

  private async range(start: string, end: string, options: ListOptions): Promise<Entries> {
    const found: unknown = await this.store.list(start, end, options);
    checkEntries(found, options.keysOnly === true);
    return found;
  }

  /** Lists below the case's prefix; names come back without it. */
  async list(start = "", end = "z", options: ListOptions = {}): Promise<Entries> {
    const found = await this.range(this.key(start), this.key(end), options);
    return found.map(([key, value]) => {
      ensure(key.startsWith(this.prefix), () => `${JSON.stringify(key)} is outside the range`);
      return [key.slice(this.prefix.length), value];
    });
  }

  async expectNames(start: string, end: string, options: ListOptions, wanted: string[]): Promise<void> {
    const found = (await this.list(start, end, options)).map(([name]) => name);
    const right = found.length === wanted.length && found.every((name, index) => name === wanted[index]);
    ensure(right, () => `${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
  }

  all(options: ListOptions = {}): Promise<Entries> {
    return this.range(this.prefix, endOf(this.prefix), options);
  }

  async clear(): Promise<void> {
    const keys = (await this.all({ keysOnly: true })).map(([key]) => key);
    for (let at = 0; at < keys.length; at += this.maxBatch) {
      await this.store.transact({ checks: [], puts: [], deletes: keys.slice(at, at + this.maxBatch) });
    }
  }

  /** Three keys to look at. */
  three(): Promise<void> {
    return this.transact({ puts: [["a", "1"], ["b", "2"], ["c", "3"]] });
  }
}

/** The end of the range of everything below a prefix that ends in a slash: "0" follows "/". */
const endOf = (prefix: string): string => `${prefix.slice(0, -1)}0`;

// U+FFFD stands behind U+10000, whose first code unit is D800.
const ORDERED = ["", "\u0001", "!", "-", "0", "A", "B", "_", "a", "a\u0001", "\u00e9", "\u{10000}", "\ufffd"];
const ODD = [
  "%", "%2F", "\\", "//", "..", "'", '"', "a b", "\u0000", "\n", "\u007f", "\u{1f525}", "__proto__", "constructor", "length",
  "e\u0301", "\u00e9", "x".repeat(400),
];
const REOPENING = "batches are whole after reopening";

async function absent(c: Case): Promise<void> {
  await c.expect("nothing", null);
}

async function emptyValue(c: Case): Promise<void> {
  await c.put("k", "");
  await c.expect("k", "");
  const found = await c.list();
  ensure(sameEntries(found, [["k", ""]]), () => "the listing lacks it");
  await c.refused({ checks: [["k", null]], puts: [["k", "x"]] });
}

async function everyByte(c: Case): Promise<void> {
  const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
  const text = '\u00e9\u{10000}\u0000\n"\\';
  const zeros = new Uint8Array(3);
  await c.transact({ puts: [["a", bytes], ["b", text], ["c", zeros]] });
  await c.expect("a", bytes);
  await c.expect("b", text);
  await c.expect("c", zeros);
}

async function replaceAndDelete(c: Case): Promise<void> {
  await c.put("k", "1");
  await c.put("k", "22");
  await c.expect("k", "22");
  await c.transact({ deletes: ["k", "never"] });
  await c.expect("k", null);
}

async function lastPutWins(c: Case): Promise<void> {
  await c.transact({ puts: [["k", "1"], ["k", "2"]] });
  await c.expect("k", "2");
}

async function emptyBatch(c: Case): Promise<void> {
  await c.transact({});
  await c.transact({ checks: [["k", null]] });
  await c.refused({ checks: [["k", "x"]] });
}

async function order(c: Case): Promise<void> {
  const reversed = [...ORDERED].reverse();
  for (const name of [...reversed.slice(5), ...reversed.slice(0, 5)]) await c.put(name, name);
  const found = await c.all();
  const wanted = ORDERED.map((name): [string, Value] => [c.key(name), name]);
  ensure(sameEntries(found, wanted), () => JSON.stringify(found.map(([key]) => key)));
}

async function halfOpen(c: Case): Promise<void> {
  await c.three();
  await c.expectNames("a", "c", {}, ["a", "b"]);
  await c.expectNames("a\u0000", "c\u0000", {}, ["b", "c"]);
  await c.expectNames("bb", "z", {}, ["c"]);
}

async function noRange(c: Case): Promise<void> {
  await c.three();
  for (const [start, end] of [["b", "b"], ["c", "a"], ["x", "y"]] as const) {
    for (const reverse of [false, true]) await c.expectNames(start, end, { reverse }, []);
  }
}

async function listOptions(c: Case): Promise<void> {
  await c.three();
  await c.expectNames("a", "z", { limit: 2 }, ["a", "b"]);
  await c.expectNames("a", "z", { limit: 2, reverse: true }, ["c", "b"]);
  await c.expectNames("a", "z", { reverse: true, keysOnly: true }, ["c", "b", "a"]);
  await c.expectNames("a", "z", { limit: 9, keysOnly: true }, ["a", "b", "c"]);
  await c.expectNames("a", "z", { limit: 1, reverse: true, keysOnly: true }, ["c"]);
  const backwards = await c.list("a", "c", { reverse: true });
  ensure(sameEntries(backwards, [["b", "2"], ["a", "1"]]), () => "values got mixed up");
}

async function oddKeys(c: Case): Promise<void> {
  for (const name of ODD) await c.put(name, name);
  for (const name of ODD) await c.expect(name, name);
  const found = await c.all();
  ensure(found.length === ODD.length, () => `${found.length} keys instead of ${ODD.length}`);
  ensure(found.every(([key], index) => index === 0 || (found[index - 1]?.[0] ?? "") < key), () => "not in order");
}

async function failedCheck(c: Case): Promise<void> {
  await c.put("held", "1");
  await c.put("old", "stays");
  const wrong: Array<[string, Value]> = [["held", "2"], ["held", null], ["absent", ""], ["held", "1 "]];
  for (const check of wrong) await c.refused({ checks: [check], puts: [["new", "x"], ["held", "x"]], deletes: ["old"] });
  await c.expect("new", null);
  await c.expect("held", "1");
  await c.expect("old", "stays");
}

async function checks(c: Case): Promise<void> {
  await c.transact({ checks: [["k", null]], puts: [["k", "1"]] });
  await c.refused({ checks: [["k", null]], puts: [["k", "2"]] });
  await c.transact({ checks: [["k", "1"]], puts: [["k", "2"]] });
  await c.refused({ checks: [["k", "1"]], puts: [["k", "3"]] });
  await c.transact({ checks: [["k", "2"]], deletes: ["k"] });
  await c.transact({ checks: [["k", null], ["l", null]], puts: [["l", "x"], ["k", "y"]] });
  await c.expect("k", "y");
}

async function oneOfSeveral(c: Case): Promise<void> {
  await c.three();
  const good: Array<[string, Value]> = [["a", "1"], ["x", null], ["c", "3"]];
  // The wrong one stands at every place: a store may look at the first or the last only.
  for (const bad of good.keys()) {
    const checks = good.map(([name, value], index): [string, Value] => [name, index === bad ? "wrong" : value]);
    await c.refused({ checks, puts: [["x", "x"]], deletes: ["a"] });
  }
  await c.expect("x", null);
  await c.transact({ checks: good, puts: [["x", "x"]], deletes: ["a"] });
  await c.expect("a", null);
}

async function allTogether(c: Case): Promise<void> {
  await c.three();
  await c.transact({ checks: [["b", "2"]], puts: [["d", "4"], ["b", "5"]], deletes: ["a", "c"] });
  const found = await c.list();
  ensure(sameEntries(found, [["b", "5"], ["d", "4"]]), () => JSON.stringify(found.map(([key, value]) => [key, show(value)])));
}

async function largeValue(c: Case): Promise<void> {
  const bytes = new Uint8Array(Math.min(c.maxValueBytes, MIB)).map((_, index) => (index * 31) % 251);
  await c.put("big", bytes);
  await c.put("small", "s");
  await c.expect("big", bytes);
  const [first] = await c.list("", "z", { limit: 1 });
  ensure(first !== undefined && same(first[1], bytes), () => "the listing differs");
}

async function manyKeys(c: Case): Promise<void> {
  const count = 600;
  const name = (n: number): string => String(n).padStart(4, "0");
  const puts = Array.from({ length: count }, (_, n): [string, Value] => [name((n * 7) % count), name((n * 7) % count)]);
  const size = Math.min(c.maxBatch, 100);
  for (let at = 0; at < count; at += size) await c.transact({ puts: puts.slice(at, at + size) });
  const found = await c.list();
  const wanted = Array.from({ length: count }, (_, n): [string, Value] => [name(n), name(n)]);
  ensure(sameEntries(found, wanted), () => `${found.length} keys, or in disorder`);
  await c.expectNames("0300", "0310", { limit: 3 }, ["0300", "0301", "0302"]);
}

async function concurrentUpdates(c: Case): Promise<void> {
  const [writers, rounds] = [6, 4];
  await c.put("n", "0");
  await together(Array.from({ length: writers }, () => countUp(c, rounds)));
  await c.expect("n", String(writers * rounds));
}

async function countUp(c: Case, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    // Somebody gets through in every round; a store where nobody does must not hold the suite up for ever.
    for (let tries = 1; !(await raised(c)); tries += 1) ensure(tries < 1000, () => "no conditional update goes through");
  }
}

/** Adds one to the number, unless somebody else did in between. */
async function raised(c: Case): Promise<boolean> {
  const old = (await c.get("n")) ?? new Uint8Array();
  const text = new TextDecoder().decode(old);
  ensure(/^[0-9]+$/.test(text), () => "a torn value");
  try {
    await c.transact({ checks: [["n", old]], puts: [["n", String(Number(text) + 1)]] });
    return true;
  } catch (thrown) {
    if (toError(thrown).code !== "conflict") throw thrown;
    return false;
  }
}

async function isolation(c: Case): Promise<void> {
  const write = async (): Promise<void> => {
    for (let round = 0; round < 8; round += 1) {
      const value = Uint8Array.of(round);
      await c.transact({ puts: [["a", value], ["b", value], ["c", value]] });
    }
  };
  const read = async (): Promise<void> => {
    for (let round = 0; round < 8; round += 1) {
      const found = await c.list();
      const whole = found.length === 0 || (found.length === 3 && found.every(([, value]) => same(value, found[0]?.[1] ?? null)));
      ensure(whole, () => "half a batch was seen");
    }
  };
  await together([write(), read()]);
}

async function reopen(c: Case): Promise<void> {
  await c.transact({ puts: [["a", "1"], ["b", "2"], ["gone", "3"]] });
  await c.transact({ deletes: ["gone"] });
  await c.store.close?.();
  const again = new Case(c.make, await opened(c.make, "could not be opened again"), c.prefix);
  const found = await again.list();
  // A store in memory begins anew; anything in between is a torn one.
  ensure(found.length === 0 || sameEntries(found, [["a", "1"], ["b", "2"]]), () => JSON.stringify(found.map(([key, value]) => [key, show(value)])));
  await again.clear();
  await again.store.close?.();
}

async function neighbours(c: Case): Promise<void> {
  const ids = ["s1", "s10", "S1", "s1__p2", "s1-", "s0"];
  for (const id of ids) {
    await c.put(`${id}/e/1`, id);
    await c.put(`${id}/f`, "");
  }
  const own = ["s1/e/1", "s1/f"];
  await c.expectNames("s1/", endOf("s1/"), {}, own);
  await c.transact({ deletes: own });
  ensure((await c.all()).length === 2 * (ids.length - 1), () => "a neighbour went with it");
}

/** Whoever appends to such a store is told that it is stored before the call ends. */
async function answersAtOnce(c: Case): Promise<void> {
  const { store } = c;
  if (store.sync !== true) return;
  const key = c.key("k");
  const answers: unknown[] = [store.transact({ puts: [[key, bytesOf("v")]] }), store.get(key), store.list(key, `${key}z`)];
  const late = answers.filter((answer) => typeof (answer as { then?: unknown } | null | undefined)?.then === "function");
  await Promise.allSettled(late);
  ensure(late.length === 0, () => "the backend says that it is `sync`, and answers with promises");
}

/** Every case by name. */
const CASES: Array<[name: string, run: (c: Case) => Promise<void>]> = [
  ["an absent key has no value", absent],
  ["an empty value is a value", emptyValue],
  ["every byte survives", everyByte],
  ["a later put replaces, a delete removes", replaceAndDelete],
  ["in one batch the last put of a key counts", lastPutWins],
  ["an empty batch does nothing", emptyBatch],
  ["keys are listed by code units", order],
  ["ranges are half open", halfOpen],
  ["empty and inverted ranges are empty", noRange],
  ["limit, reverse and keysOnly", listOptions],
  ["keys may hold any character", oddKeys],
  ["a failed check writes nothing", failedCheck],
  ["checks for absent and present values", checks],
  ["one failed check of several fails all", oneOfSeveral],
  ["checks, puts and deletes go together", allTogether],
  ["a large value comes back whole", largeValue],
  ["many keys", manyKeys],
  ["conditional updates at once lose nothing", concurrentUpdates],
  ["readers see whole batches", isolation],
  [REOPENING, reopen],
  ["deleting one session leaves its neighbours", neighbours],
  ["a store that is `sync` answers at once", answersAtOnce],
];

async function runCase(make: Make, index: number, name: string, run: (c: Case) => Promise<void>): Promise<void> {
  const store = await opened(make, "could not be opened");
  const c = new Case(make, store, `check/${String(index).padStart(2, "0")}/`);
  await c.clear();
  const [verdict] = await Promise.allSettled([run(c)]);
  const [cleared] = await Promise.allSettled([c.clear()]);
  const [closed] = await Promise.allSettled([(async () => store.close?.())()]);
  // The case that reopens has closed this store itself.
  for (const result of name === REOPENING ? [verdict] : [verdict, cleared, closed]) {
    if (result.status === "rejected") throw result.reason;
  }
}

/**
 * Runs the conformance suite that the built-in backends pass against any backend. `make` opens it, several times over; the
 * suite works below the prefix `check/` and leaves nothing there.
 */
export async function checkBackend(make: Make): Promise<{ passed: number; failed: Array<{ name: string; message: string }> }> {
  if (typeof make !== "function") throw new SessionLogError("invalid_argument", "checkBackend takes a function that opens the backend");
  const report = { passed: 0, failed: [] as Array<{ name: string; message: string }> };
  for (const [index, [name, run]] of CASES.entries()) {
    try {
      await runCase(make, index, name, run);
      report.passed += 1;
    } catch (thrown) {
      report.failed.push({ name, message: said(thrown) });
    }
  }
  return report;
}
