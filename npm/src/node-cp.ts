// `fs.cp` in the steps of Node's own, so that what it refuses and how it copies links are the same.
import { fileError } from "./files-error.js";
import { EEXIST, ENOENT, nodeError } from "./node-error.js";
import { dirname, join, makeDirs, resolve } from "./node-paths.js";
import { Stats } from "./node-stats.js";
import { LEAF_ONLY, type FilesFace } from "./vfs.js";

export interface CopyOptions {
  recursive?: boolean; force?: boolean; errorOnExist?: boolean; dereference?: boolean; preserveTimestamps?: boolean; verbatimSymlinks?: boolean;
  filter?: (from: string, to: string) => boolean;
}

const EISDIR = 21, ENOTDIR = 20, EINVAL = 22;

function refuse(number: number, code: string, from: string, to?: string): never {
  throw Object.assign(nodeError(number, "cp", from, to), { code });
}

function isInside(outer: string, inner: string): boolean {
  return `${resolve("/", inner)}/`.startsWith(outer === "/" ? "/" : `${resolve("/", outer)}/`);
}

export function copyTree(face: FilesFace, from: string, to: string, options: CopyOptions): void {
  const { source } = check(face, from, to, options);
  const home = dirname(resolve("/", from));
  for (let above = dirname(resolve("/", to)); above !== home && above !== "/"; above = dirname(above)) {
    const there = lookAt(face, above, true);
    if (there === undefined) break;
    if (there.ino === source.ino) refuse(EINVAL, "ERR_FS_CP_EINVAL", to);
  }
  step(face, from, to, options, true);
}

function lookAt(face: FilesFace, path: string, follow: boolean): Stats | undefined {
  const raw = face.core.live(), numbers = raw.stat(path, follow);
  if (numbers !== undefined) return new Stats(numbers);
  if (raw.errno() !== ENOENT) throw fileError(raw.errno(), follow ? "stat" : "lstat", path);
  return undefined;
}

function check(face: FilesFace, from: string, to: string, options: CopyOptions): { source: Stats; target: Stats | undefined } {
  const follow = options.dereference === true;
  const source = new Stats(face.numbers(from, follow, follow ? "stat" : "lstat"));
  const target = lookAt(face, to, follow);
  if (target !== undefined) {
    if (target.ino === source.ino) refuse(EINVAL, "ERR_FS_CP_EINVAL", to);
    if (source.isDirectory() && !target.isDirectory()) refuse(EISDIR, "ERR_FS_CP_DIR_TO_NON_DIR", from, to);
    if (!source.isDirectory() && target.isDirectory()) refuse(ENOTDIR, "ERR_FS_CP_NON_DIR_TO_DIR", from, to);
  }
  if (source.isDirectory() && isInside(from, to)) refuse(EINVAL, "ERR_FS_CP_EINVAL", to);
  return { source, target };
}

function step(face: FilesFace, from: string, to: string, options: CopyOptions, isTop = false): void {
  if (options.filter !== undefined && !options.filter(from, to)) return;
  const { source, target } = check(face, from, to, options);
  if (isTop && !face.exists(dirname(to))) makeDirs(face, dirname(to), 0o755);
  if (source.isDirectory()) {
    if (options.recursive !== true) refuse(EISDIR, "ERR_FS_EISDIR", from);
    if (target === undefined) face.makeDir(to, false, 0o755);
    for (const name of face.readdir(from)) step(face, join(from, name), join(to, name), options);
    // As on a disk, where the mode is put on at the end.
    if (target === undefined) face.chmod(to, source.mode & 0o7777);
  } else if (source.isSymbolicLink()) {
    copyLink(face, from, to, target, options);
  } else {
    copyFile(face, from, to, source, target, options);
  }
}

function copyFile(face: FilesFace, from: string, to: string, source: Stats, target: Stats | undefined, options: CopyOptions): void {
  if (target !== undefined) {
    if (options.force === false) {
      if (options.errorOnExist === true) refuse(EEXIST, "ERR_FS_CP_EEXIST", to);
      return;
    }
    face.remove(to, LEAF_ONLY, "unlink");
  }
  face.copy(from, to);
  if (options.preserveTimestamps === true) face.setTime(to, source.mtimeMs, true, "utime");
}

/** A link is made absolute, unless it is to be copied letter by letter. */
function copyLink(face: FilesFace, from: string, to: string, target: Stats | undefined, options: CopyOptions): void {
  const leadsTo = (link: string): string => (options.verbatimSymlinks === true ? face.readlink(link) : resolve(dirname(link), face.readlink(link)));
  const goal = leadsTo(from);
  if (target !== undefined) {
    // What is no link stands in the way.
    if (!target.isSymbolicLink()) throw nodeError(EEXIST, "symlink", goal, to);
    const other = resolve(dirname(to), face.readlink(to));
    if (lookAt(face, from, true)?.isDirectory() === true && isInside(goal, other)) refuse(EINVAL, "ERR_FS_CP_EINVAL", from, to);
    if (lookAt(face, to, true)?.isDirectory() === true && isInside(other, goal)) refuse(EINVAL, "ERR_FS_CP_SYMLINK_TO_SUBDIRECTORY", from, to);
    face.remove(to, LEAF_ONLY, "unlink");
  }
  face.symlink(goal, to);
}
