// The file system that just-bash takes, over the files here. Nothing in it needs a global that its sandbox takes away.
import type { BashEncoding, BashFileSystem, BashStat } from "../types/index.js";
import type { FilesFace } from "./vfs.js";
import { decode, encode } from "./node-encoding.js";
import { Stats } from "./node-stats.js";
import { SessionLogError } from "./errors.js";

type Given = { encoding?: BashEncoding | null } | BashEncoding | undefined;

function encodingOf(given: Given): string {
  return (typeof given === "string" ? given : given?.encoding) ?? "utf8";
}

/** Messages of the form that just-bash reports and looks into: `ENOENT: no such file or directory, open '/x'`. */
async function plain<T>(work: () => T): Promise<T> {
  try {
    return work();
  } catch (thrown) {
    const errno = thrown instanceof SessionLogError ? thrown.details.errno : undefined;
    if (typeof errno !== "string") throw thrown;
    const error = new Error((thrown as SessionLogError).message);
    (error as { code?: string }).code = errno;
    throw error;
  }
}

function normalize(path: string): string {
  const out: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") out.pop();
    else if (part !== "" && part !== ".") out.push(part);
  }
  return `/${out.join("/")}`;
}

/** The user's or a run's files for `new Bash({ fs: toJustBash(runFs) })`: what scripts do is journaled like all else. */
export function toJustBash(files: object): BashFileSystem {
  const face = files as FilesFace;
  const stat = (path: string, follow: boolean): BashStat => {
    const found = new Stats(face.numbers(path, follow, follow ? "stat" : "lstat"));
    return {
      isFile: found.isFile(), isDirectory: found.isDirectory(), isSymbolicLink: found.isSymbolicLink(),
      mode: found.mode & 0o7777, size: found.size, mtime: found.mtime, dev: found.dev, ino: found.ino,
    };
  };
  const bytes = (content: string | Uint8Array, options: Given): string | Uint8Array =>
    typeof content !== "string" || encodingOf(options).startsWith("utf") ? content : encode(content, encodingOf(options));
  return {
    readFile: (path, options) => plain(() => decode(face.readFile(path), encodingOf(options))),
    readFileBuffer: (path) => plain(() => face.readFile(path)),
    writeFile: (path, content, options) => plain(() => {
      face.makeDir(normalize(`${path}/..`), true, 0o755);
      face.writeFile(path, bytes(content, options));
    }),
    appendFile: (path, content, options) => plain(() => {
      face.makeDir(normalize(`${path}/..`), true, 0o755);
      face.writeFile(path, bytes(content, options), { append: true });
    }),
    exists: async (path) => face.exists(path),
    stat: (path) => plain(() => stat(path, true)),
    lstat: (path) => plain(() => stat(path, false)),
    mkdir: (path, options) => plain(() => face.mkdir(path, options)),
    readdir: (path) => plain(() => face.readdir(path)),
    readdirWithFileTypes: (path) => plain(() => face.readdir(path).map((name) => {
      const { isFile, isDirectory, isSymbolicLink } = stat(normalize(`${path}/${name}`), false);
      return { name, isFile, isDirectory, isSymbolicLink };
    })),
    rm: (path, options) => plain(() => face.rm(path, options)),
    cp: (src, dest, options) => plain(() => face.copy(src, dest, options)),
    mv: (src, dest) => plain(() => face.rename(src, dest)),
    resolvePath: (base, path) => normalize(path.startsWith("/") ? path : `${base}/${path}`),
    getAllPaths: () => face.walk("/").map((entry) => entry.path),
    chmod: (path, mode) => plain(() => face.chmod(path, mode)),
    symlink: (target, linkPath) => plain(() => face.symlink(target, linkPath)),
    // There is one name per file here; a second one gets the same bytes.
    link: (existingPath, newPath) => plain(() => {
      if (face.exists(newPath)) throw new SessionLogError("already_exists", `EEXIST: file already exists, link '${existingPath}' -> '${newPath}'`, { errno: "EEXIST" });
      face.copy(existingPath, newPath);
    }),
    readlink: (path) => plain(() => face.readlink(path)),
    realpath: (path) => plain(() => face.realpath(path)),
    utimes: (path, _atime, mtime) => plain(() => face.utimes(path, mtime.getTime())),
  };
}
