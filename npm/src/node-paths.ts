// Paths as Node's own JavaScript takes them apart, where that shows in what a call answers.
import type { SessionLogError } from "./errors.js";
import { fileError } from "./files-error.js";
import { ENOENT, nodeError } from "./node-error.js";
import { LINK } from "./node-stats.js";
import type { FilesFace } from "./vfs.js";

/** `path.posix.resolve` below the root. */
export function resolve(base: string, path: string): string {
  const out: string[] = [];
  for (const part of (path.startsWith("/") ? path : `${base}/${path}`).split("/")) {
    if (part === "..") out.pop();
    else if (part !== "" && part !== ".") out.push(part);
  }
  return `/${out.join("/")}`;
}

export function join(dir: string, name: string): string {
  return dir.endsWith("/") ? dir + name : `${dir}/${name}`;
}

export function dirname(path: string): string {
  const bare = path.replace(/\/+$/, "");
  const at = bare.lastIndexOf("/");
  return at < 0 ? "." : at === 0 ? "/" : bare.slice(0, at);
}

/**
 * `fs.realpath` as Node's JavaScript walks it: `..` goes by the text alone, and an error names the first part of the path
 * that could not be looked at. (`fs.realpath.native` and `promises.realpath` ask the system.)
 */
export function realpath(face: FilesFace, path: string): string {
  let rest = resolve("/", path).split("/").slice(1).filter((part) => part !== "");
  let at = "/";
  for (let hops = 0; rest.length > 0;) {
    const next = join(at, rest[0] ?? "");
    const [type] = face.numbers(next, false, "lstat");
    rest = rest.slice(1);
    if (type !== LINK) {
      at = next;
      continue;
    }
    if (++hops > 40) throw nodeError(ENOENT, "realpath", path);
    face.numbers(next, true, "stat");
    rest = resolve(at, face.readlink(next)).split("/").slice(1).filter((part) => part !== "").concat(rest);
    at = "/";
  }
  return at;
}

/** `mkdir -p`; what was made first is told as the part of the path that leads there. */
export function makeDirs(face: FilesFace, path: string, mode: number): string | undefined {
  try {
    const made = face.makeDir(path, true, mode);
    return made === undefined ? undefined : firstMade(face, path, made);
  } catch (thrown) {
    // Something stands there: what looking at it tells is what Node tells.
    const raw = face.core.live();
    const isThere = (thrown as SessionLogError).details?.errno === "EEXIST";
    throw isThere && raw.stat(path, true) === undefined ? fileError(raw.errno(), "mkdir", path) : thrown;
  }
}

function firstMade(face: FilesFace, path: string, made: string): string {
  // Node cuts at the last slash before the next part.
  for (const { index } of path.matchAll(/\/(?=[^/])|$/g)) {
    const prefix = path.slice(0, index);
    if (prefix === "") continue;
    try {
      if (face.realpath(prefix) === made) return prefix;
    } catch {
      // A part in the middle that leads nowhere by itself.
    }
  }
  return made;
}
