// A backend of a caller's own, with faults to switch on: `fail` (every write rejects with it), `delay`, `onCall`.
export function memoryBackend({ delay = 0, onCall = () => {} } = {}) {
  const map = new Map();
  const wait = () => new Promise((resolve) => (delay > 0 ? setTimeout(resolve, delay) : resolve()));
  const same = (a, b) => (a === null || b === null ? a === b : a.length === b.length && a.every((byte, i) => byte === b[i]));
  const backend = {
    name: "test",
    fail: null,
    map,
    keys: () => [...map.keys()].sort(),
    async get(key) {
      onCall("get");
      await wait();
      return map.get(key)?.slice() ?? null;
    },
    async list(start, end, { limit = Infinity, reverse = false, keysOnly = false } = {}) {
      onCall("list");
      await wait();
      const keys = [...map.keys()].filter((k) => k >= start && k < end).sort();
      if (reverse) keys.reverse();
      return keys.slice(0, limit).map((k) => [k, keysOnly ? new Uint8Array() : map.get(k).slice()]);
    },
    async transact({ checks = [], puts = [], deletes = [] }) {
      onCall("transact");
      await wait();
      if (backend.fail !== null) throw backend.fail;
      for (const { key, equals } of checks) {
        if (!same(map.get(key) ?? null, equals)) throw Object.assign(new Error("changed"), { code: "conflict" });
      }
      for (const [key, value] of puts) map.set(key, value.slice());
      for (const key of deletes) map.delete(key);
    },
  };
  return backend;
}
