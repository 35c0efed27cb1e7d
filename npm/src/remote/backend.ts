// The store of a host as a backend. A batch has a key of its own: sent again after a lost answer, it is carried out once.
import type { JsonValue, KeyValueBackend, StorePeers } from "../../types/index.js";
import { SessionLogError, toError } from "../errors.js";
import { decodeFrame, encodeFrame } from "./frame.js";
import { requestKey, type Http } from "./http.js";

type Entry = [string, Uint8Array];
const KIB = 1024;
const MAX_VALUE = 512 * KIB;
const MAX_BATCH = 64;
/** What a request may have until the host has said it with an answer: a store is read before it is written. */
const REQUEST_BYTES = 4096 * KIB;
/** One request carries a whole batch. Its values have so much of it; the rest is for keys, checks and what is not cut. */
const SHARE_OF_VALUES = 3 / 4;

export function remoteBackend(http: Http, path: string, peers: StorePeers | undefined, onClose: () => void = () => {}): KeyValueBackend {
  let isOpen = true;
  let batchBytes = REQUEST_BYTES * SHARE_OF_VALUES;
  const ask = async (head: { [member: string]: JsonValue }, values: Uint8Array[] = []): Promise<ReturnType<typeof decodeFrame>> => {
    if (!isOpen) throw new SessionLogError("disposed", "the storage was closed");
    const answer = await http.send("POST", path, encodeFrame(head, values));
    try {
      const frame = decodeFrame(answer);
      const { takes } = frame.head;
      if (typeof takes === "number") batchBytes = Math.floor(takes * SHARE_OF_VALUES);
      return frame;
    } catch (thrown) {
      throw toError(thrown, "unavailable");
    }
  };
  return {
    name: "remote",
    get maxValueBytes() {
      return Math.min(MAX_VALUE, batchBytes);
    },
    maxBatch: MAX_BATCH,
    get maxBatchBytes() {
      return batchBytes;
    },
    ...(peers === undefined ? {} : { peers }),
    async get(key) {
      const { values } = await ask({ op: "get", key });
      return values[0] ?? null;
    },
    async list(start, end, { limit, reverse = false, keysOnly = false } = {}) {
      const out: Entry[] = [];
      let [from, to] = [start, end];
      for (;;) {
        const left = limit === undefined ? null : limit - out.length;
        const { head, values } = await ask({ op: "list", start: from, end: to, limit: left, reverse, keysOnly });
        const keys = head["keys"] as string[];
        keys.forEach((key, at) => out.push([key, values[at] ?? new Uint8Array()]));
        const last = keys[keys.length - 1];
        // A host cuts what would be too much for one answer.
        if (head["more"] !== true || last === undefined) return out;
        if (reverse) to = last;
        else from = `${last}\0`;
      }
    },
    async transact({ checks = [], puts = [], deletes = [] }) {
      const head = {
        op: "transact", request: requestKey(), puts: puts.map(([key]) => key), deletes,
        checks: checks.map(({ key, equals }) => ({ key, absent: equals === null })),
      };
      await ask(head, [...checks.flatMap(({ equals }) => (equals === null ? [] : [equals])), ...puts.map(([, value]) => value)]);
    },
    close() {
      if (!isOpen) return;
      isOpen = false;
      onClose();
    },
  };
}
