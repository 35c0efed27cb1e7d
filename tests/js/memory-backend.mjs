// Backends of a caller's own, with faults to switch on: `fail` (every write throws it) and `onWrite`.
const same = (a, b) => (a === null || b === null ? a === b : a.length === b.length && a.every((byte, i) => byte === b[i]));

/** One that finishes before it returns. */
export function syncBackend() {
  const map = new Map();
  const backend = {
    name: "sync", sync: true, fail: null, onWrite: () => {}, map,
    keys: () => [...map.keys()].sort(),
    get: (key) => map.get(key)?.slice() ?? null,
    list(start, end, { limit = Infinity, reverse = false, keysOnly = false } = {}) {
      const keys = [...map.keys()].filter((k) => k >= start && k < end).sort();
      if (reverse) keys.reverse();
      return keys.slice(0, limit).map((k) => [k, keysOnly ? new Uint8Array() : map.get(k).slice()]);
    },
    transact({ checks = [], puts = [], deletes = [] }) {
      backend.onWrite({ checks, puts, deletes });
      if (backend.fail !== null) throw backend.fail;
      for (const { key, equals } of checks) if (!same(map.get(key) ?? null, equals)) throw Object.assign(new Error("changed"), { code: "conflict" });
      for (const [key, value] of puts) map.set(key, value.slice());
      for (const key of deletes) map.delete(key);
    },
  };
  return backend;
}

/** One that answers later: `delay` in milliseconds, `onCall` hears of every call first. */
export function memoryBackend({ delay = 0, onCall = () => {} } = {}) {
  const { map, keys, get, list, transact } = syncBackend();
  const backend = { name: "test", fail: null, map, keys };
  const later = (name, work) => async (...given) => {
    onCall(name);
    await new Promise((resolve) => (delay > 0 ? setTimeout(resolve, delay) : resolve()));
    if (name === "transact" && backend.fail !== null) throw backend.fail;
    return work(...given);
  };
  return Object.assign(backend, { get: later("get", get), list: later("list", list), transact: later("transact", transact) });
}
