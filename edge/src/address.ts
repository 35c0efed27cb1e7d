// How the door and the objects tell an object who calls: in the address, which no caller writes, beside the headers, which are
// passed on as they came.

export interface Address {
  /** The name of the caller, and whether it may write. */
  readonly owner: string;
  readonly canWrite: boolean;
  /** The session; empty where an object of the caller itself is asked. */
  readonly id: string;
  /** What is asked of it, with arguments and query as the caller wrote them: `/events?from=3`, or nothing. */
  readonly rest: string;
}

/** `rest` comes from a parsed URL: it has no `..` that would lead out of what stands before it. */
export function addressOf({ owner, canWrite, id, rest }: Address): string {
  // A name may be "..", which would not last as a part of its own.
  return `https://object/~${owner}/${canWrite ? "w" : "r"}/~${id}${rest}`;
}

const ADDRESS = /^https:\/\/object\/~([^/]*)\/([rw])\/~([^/?]*)(.*)$/s;

export function readAddress(url: string): Address {
  const [, owner = "", access, id = "", rest = ""] = ADDRESS.exec(url) ?? [];
  return { owner, canWrite: access === "w", id, rest };
}
