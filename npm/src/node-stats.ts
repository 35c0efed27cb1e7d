// What Node's fs hands out: Stats, Dirent, Dir, constants.
export const constants = {
  F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1,
  COPYFILE_EXCL: 1, COPYFILE_FICLONE: 2, COPYFILE_FICLONE_FORCE: 4,
  O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 0o100, O_EXCL: 0o200, O_NOCTTY: 0o400, O_TRUNC: 0o1000, O_APPEND: 0o2000,
  O_DIRECTORY: 0o200000, O_NOFOLLOW: 0o400000, O_SYNC: 0o4010000, O_DSYNC: 0o10000, O_NONBLOCK: 0o4000,
  S_IFMT: 0o170000, S_IFREG: 0o100000, S_IFDIR: 0o040000, S_IFLNK: 0o120000, S_IFCHR: 0o020000, S_IFBLK: 0o060000,
  S_IFIFO: 0o010000, S_IFSOCK: 0o140000,
  S_IRWXU: 0o700, S_IRUSR: 0o400, S_IWUSR: 0o200, S_IXUSR: 0o100, S_IRWXG: 0o070, S_IRGRP: 0o040, S_IWGRP: 0o020, S_IXGRP: 0o010,
  S_IRWXO: 0o007, S_IROTH: 0o004, S_IWOTH: 0o002, S_IXOTH: 0o001,
  UV_FS_SYMLINK_DIR: 1, UV_FS_SYMLINK_JUNCTION: 2, UV_DIRENT_UNKNOWN: 0, UV_DIRENT_FILE: 1, UV_DIRENT_DIR: 2, UV_DIRENT_LINK: 3,
  UV_FS_O_FILEMAP: 0, UV_FS_COPYFILE_EXCL: 1, UV_FS_COPYFILE_FICLONE: 2, UV_FS_COPYFILE_FICLONE_FORCE: 4, EXTENSIONLESS_FORMAT_JAVASCRIPT: 0,
} as const;

const KINDS = [0, constants.S_IFREG, constants.S_IFDIR, constants.S_IFLNK];
export const FILE = 1, DIRECTORY = 2, LINK = 3;

export class Stats {
  readonly dev = 1;
  readonly nlink = 1;
  readonly uid = 0;
  readonly gid = 0;
  readonly rdev = 0;
  readonly blksize = 4096;
  readonly ino: number;
  readonly mode: number;
  readonly size: number;
  readonly blocks: number;
  readonly atimeMs: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly birthtimeMs: number;

  /** Takes what the module's `stat` answers: type, size, mode, mtime, ctime, inode number. */
  constructor(numbers: Float64Array) {
    const [type = 0, size = 0, mode = 0, mtime = 0, ctime = 0, ino = 0] = numbers;
    this.ino = ino;
    this.mode = (KINDS[type] ?? 0) | mode;
    this.size = size;
    this.blocks = Math.ceil(size / 512);
    this.atimeMs = this.mtimeMs = mtime;
    this.ctimeMs = this.birthtimeMs = ctime;
  }

  get atime(): Date { return new Date(this.atimeMs); }
  get mtime(): Date { return new Date(this.mtimeMs); }
  get ctime(): Date { return new Date(this.ctimeMs); }
  get birthtime(): Date { return new Date(this.birthtimeMs); }
  isFile(): boolean { return (this.mode & constants.S_IFMT) === constants.S_IFREG; }
  isDirectory(): boolean { return (this.mode & constants.S_IFMT) === constants.S_IFDIR; }
  isSymbolicLink(): boolean { return (this.mode & constants.S_IFMT) === constants.S_IFLNK; }
  isBlockDevice(): boolean { return false; }
  isCharacterDevice(): boolean { return false; }
  isFIFO(): boolean { return false; }
  isSocket(): boolean { return false; }
}

/** The same in whole numbers without a limit, for `{bigint: true}`. */
export function bigStats(stats: Stats): object {
  const out: { [key: string]: unknown } = Object.create(Stats.prototype) as { [key: string]: unknown };
  for (const [key, value] of Object.entries(stats)) {
    Object.defineProperty(out, key, { value: BigInt(Math.trunc(value as number)), enumerable: true });
  }
  for (const name of ["atime", "mtime", "ctime", "birthtime"] as const) {
    const ms = stats[`${name}Ms`];
    Object.defineProperty(out, `${name}Ns`, { value: BigInt(Math.trunc(ms)) * 1_000_000n, enumerable: true });
    Object.defineProperty(out, name, { value: new Date(ms), enumerable: true });
  }
  for (const test of ["isFile", "isDirectory", "isSymbolicLink"] as const) {
    const answer = stats[test]();
    Object.defineProperty(out, test, { value: () => answer });
  }
  return out;
}

export class Dirent {
  readonly name: string | Uint8Array;
  readonly parentPath: string;
  readonly #type: number;
  constructor(name: string | Uint8Array, type: number, parentPath: string) {
    this.name = name;
    this.parentPath = parentPath;
    this.#type = type;
  }
  get path(): string { return this.parentPath; }
  isFile(): boolean { return this.#type === FILE; }
  isDirectory(): boolean { return this.#type === DIRECTORY; }
  isSymbolicLink(): boolean { return this.#type === LINK; }
  isBlockDevice(): boolean { return false; }
  isCharacterDevice(): boolean { return false; }
  isFIFO(): boolean { return false; }
  isSocket(): boolean { return false; }
}

export class Dir {
  readonly path: string;
  #entries: Dirent[];
  #open = true;
  constructor(path: string, entries: Dirent[]) {
    this.path = path;
    this.#entries = entries;
  }
  #live(): void {
    if (!this.#open) throw Object.assign(new Error("Directory handle was closed"), { code: "ERR_DIR_CLOSED" });
  }
  readSync(): Dirent | null {
    this.#live();
    return this.#entries.shift() ?? null;
  }
  read(callback?: (error: unknown, entry?: Dirent | null) => void): Promise<Dirent | null> | void {
    const answer = Promise.resolve().then(() => this.readSync());
    if (callback === undefined) return answer;
    answer.then((entry) => callback(null, entry), (error: unknown) => callback(error));
  }
  closeSync(): void {
    this.#live();
    this.#open = false;
  }
  close(callback?: (error: unknown) => void): Promise<void> | void {
    const answer = Promise.resolve().then(() => this.closeSync());
    if (callback === undefined) return answer;
    answer.then(() => callback(null), callback);
  }
  async *entries(): AsyncGenerator<Dirent, void> {
    try {
      for (let entry = this.readSync(); entry !== null; entry = this.readSync()) yield entry;
    } finally {
      if (this.#open) this.closeSync();
    }
  }
  [Symbol.asyncIterator](): AsyncGenerator<Dirent, void> {
    return this.entries();
  }
}
