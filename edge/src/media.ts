// Media of all sessions of a caller lie in the caller's index, by content: stored once, whoever attaches them and wherever they
// are read. A session's own store reaches them through this.
import type { KeyValueBackend } from "sessionlog";
import type { MediaAnswer } from "./index-object.js";
import { isMedia } from "./keys.js";
import type { KvRequest } from "./kv.js";

type Ask = (request: KvRequest) => Promise<MediaAnswer>;
type Listed = Array<[string, Uint8Array]>;

/** `own` for everything but media. */
export function withMedia(own: KeyValueBackend, index: Ask): KeyValueBackend {
  const ask = async (request: KvRequest): Promise<MediaAnswer> => {
    const answer = await index(request);
    // The package knows errors of backends by their codes.
    if (answer.error !== undefined) throw Object.assign(new Error(answer.error.message), { code: answer.error.code });
    return answer;
  };
  return {
    ...own,
    get: (key) => (isMedia(key) ? ask({ op: "get", key }).then(({ value }) => value ?? null) : own.get(key)),
    list: (start, end, { limit, reverse = false, keysOnly = false } = {}) => {
      if (!isMedia(start)) return own.list(start, end, { ...(limit === undefined ? {} : { limit }), reverse, keysOnly });
      return ask({ op: "list", start, end, limit: limit ?? null, reverse, keysOnly }).then(({ entries }): Listed => entries ?? []);
    },
    transact: (batch) => {
      const { checks = [], puts = [], deletes = [] } = batch;
      if (![...checks.map(({ key }) => key), ...puts.map(([key]) => key), ...deletes].some(isMedia)) return own.transact(batch);
      const request = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
      return ask({ op: "transact", request, batch: { checks, puts, deletes } }).then(() => {});
    },
  };
}
