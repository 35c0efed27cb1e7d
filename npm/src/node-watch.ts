// `fs.watch`: changes made through this file system only; a link is not followed.
import type { FilesFace } from "./vfs.js";

type Listener = (event: "rename" | "change", name: string) => void;
interface WatchOptions { recursive?: boolean }

export class FsWatcher {
  readonly #listeners = new Map<string, Set<(...args: unknown[]) => void>>();
  #stop: () => void;
  constructor(stop: () => void) {
    this.#stop = stop;
  }
  on(event: string, listener: (...args: unknown[]) => void): this {
    const all = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, all.add(listener));
    return this;
  }
  off(event: string, listener: (...args: unknown[]) => void): this {
    this.#listeners.get(event)?.delete(listener);
    return this;
  }
  emit(event: string, ...args: unknown[]): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) listener(...args);
  }
  close(): void {
    this.#stop();
    this.#stop = () => {};
    this.emit("close");
  }
  ref(): this { return this; }
  unref(): this { return this; }
}

export function watchFiles(face: FilesFace): (path: string, options?: WatchOptions | Listener, listener?: Listener) => FsWatcher {
  return (path, options, listener) => {
    const given = typeof options === "function" ? {} : (options ?? {});
    const tell = typeof options === "function" ? options : listener;
    const top = face.realpath(path);
    const prefix = top === "/" ? "/" : `${top}/`;
    const heard = (kind: "rename" | "change", where: string): void => {
      const full = where.startsWith("/") ? where : `/${where}`;
      const name = full === top ? (top.split("/").pop() ?? "") : full.startsWith(prefix) ? full.slice(prefix.length) : null;
      if (name === null || (given.recursive !== true && name.includes("/"))) return;
      // Listeners never run inside the call that made the change.
      void Promise.resolve().then(() => { watcher.emit("change", kind, name); });
    };
    face.core.watchers.add(heard);
    const watcher = new FsWatcher(() => face.core.watchers.delete(heard));
    if (tell !== undefined) watcher.on("change", tell as (...args: unknown[]) => void);
    return watcher;
  };
}
