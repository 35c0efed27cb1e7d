// Node's errors: a code, a negative number, the call and its paths.
import { describe, errnoOf } from "./files-error.js";

export interface NodeError extends Error { code: string; errno: number; syscall: string; path?: string; dest?: string }

export function nodeError(number: number, syscall: string, path?: string, dest?: string): NodeError {
  const errno = errnoOf(number);
  const error = new Error(describe(errno, syscall, path, dest)) as NodeError;
  error.errno = -number;
  error.code = errno.name;
  error.syscall = syscall;
  if (path !== undefined) error.path = path;
  if (dest !== undefined) error.dest = dest;
  return error;
}

export function argumentError(code: string, message: string): TypeError {
  const error = new TypeError(message);
  Object.assign(error, { code });
  return error;
}

export const ENOENT = 2, EPERM = 1, EBADF = 9, EACCES = 13, EEXIST = 17, ENOTDIR = 20, EISDIR = 21, EINVAL = 22;
