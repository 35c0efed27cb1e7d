// Errors of file calls: a SessionLogError whose message and `details.errno` name Node's code.
import type { ErrorCode } from "../types/index.js";
import { SessionLogError } from "./errors.js";
import { call } from "./runtime.js";

export interface Errno { number: number; name: string; text: string; code: ErrorCode }

let table: Map<number, Errno> | null = null;

/** The row of an error number; the module owns the table. */
export function errnoOf(number: number): Errno {
  table ??= new Map(
    (JSON.parse(call((m) => m.raw_errnos())) as Array<[number, string, string, ErrorCode]>)
      .map(([n, name, text, code]) => [n, { number: n, name, text, code }]),
  );
  return table.get(number) ?? { number, name: "EIO", text: "i/o error", code: "storage" };
}

/** Node's message: `ENOENT: no such file or directory, open '/x'`. */
export function describe(errno: Errno, syscall: string, path?: string, dest?: string): string {
  const at = path === undefined ? "" : ` '${path}'`;
  const to = dest === undefined ? "" : ` -> '${dest}'`;
  return `${errno.name}: ${errno.text}, ${syscall}${at}${to}`;
}

function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\ufffd");
}

export function fileError(number: number, syscall: string, path?: string, dest?: string): SessionLogError {
  const errno = errnoOf(number);
  // What no path can be made of is `invalid_path`, whatever POSIX calls it.
  const code = path === "" || (errno.name === "EINVAL" && path !== undefined && path.includes("\0")) ? "invalid_path" : errno.code;
  return new SessionLogError(code, describe(errno, syscall, path, dest), {
    errno: errno.name, syscall,
    ...(path === undefined ? {} : { path: wellFormed(path) }),
    ...(dest === undefined ? {} : { dest: wellFormed(dest) }),
  });
}

export const EINVAL = 22;
export const EBADF = 9;
export const EILSEQ = 84;
