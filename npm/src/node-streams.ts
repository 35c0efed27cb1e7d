// `fs.createReadStream` and `createWriteStream`, where Node's streams are at hand.
import { asBuffer } from "./node-encoding.js";

type Sync = { [name: string]: (...args: unknown[]) => unknown };
type Done = (error?: unknown) => void;
interface Given { flags?: string; encoding?: string; fd?: number | null; mode?: number; autoClose?: boolean; emitClose?: boolean; start?: number; end?: number; highWaterMark?: number }
interface Stream { push(chunk: Uint8Array | null): boolean; emit(event: string, ...args: unknown[]): boolean; [key: string]: unknown }
type Maker = new (options: { [name: string]: unknown }) => Stream;

// Captured when the module is loaded; other runtimes have no such calls, and then neither has the face.
const host = (globalThis as { process?: { getBuiltinModule?: (name: string) => unknown } }).process;
const streams = host?.getBuiltinModule?.("node:stream") as { Readable: Maker; Writable: Maker } | undefined;

function opening(sync: Sync, path: unknown, given: Given, flags: string) {
  const state = { fd: given.fd ?? -1 };
  return {
    state,
    construct(this: Stream, done: Done): void {
      try {
        if (state.fd < 0) state.fd = sync.open?.(path, given.flags ?? flags, given.mode ?? 0o666) as number;
      } catch (thrown) {
        return done(thrown);
      }
      this.fd = state.fd;
      done();
      this.emit("open", state.fd);
      this.emit("ready");
    },
    destroy(error: unknown, done: Done): void {
      try {
        if (state.fd >= 0 && given.autoClose !== false) sync.close?.(state.fd);
      } catch (thrown) {
        return done(error ?? thrown);
      }
      done(error);
    },
  };
}

/** The two calls, or nothing. */
export function makeStreams(sync: Sync): { [name: string]: unknown } {
  if (streams === undefined) return {};
  const { Readable, Writable } = streams;
  const options = (given?: Given | string): Given => (typeof given === "string" ? { encoding: given } : (given ?? {}));
  return {
    createReadStream(path: unknown, options_?: Given | string): Stream {
      const given = options(options_);
      const { state, construct, destroy } = opening(sync, path, given, "r");
      let at = given.start, left = (given.end ?? Infinity) - (given.start ?? 0) + 1;
      const stream = new Readable({
        highWaterMark: given.highWaterMark ?? 65_536, encoding: given.encoding, emitClose: given.emitClose ?? true, construct, destroy,
        read(this: Stream, size: number): void {
          const buffer = asBuffer(new Uint8Array(Math.max(0, Math.min(size, left))));
          let count: number;
          try {
            count = buffer.length === 0 ? 0 : (sync.read?.(state.fd, buffer, 0, buffer.length, at ?? null) as number);
          } catch (thrown) {
            return void (this.destroy as Done)(thrown);
          }
          left -= count;
          if (at !== undefined) at += count;
          stream.bytesRead = (stream.bytesRead as number) + count;
          this.push(count === 0 ? null : buffer.subarray(0, count));
        },
      });
      return Object.assign(stream, { path, bytesRead: 0 });
    },
    createWriteStream(path: unknown, options_?: Given | string): Stream {
      const given = options(options_);
      const { state, construct, destroy } = opening(sync, path, given, given.start === undefined ? "w" : "r+");
      let at = given.start;
      const stream = new Writable({
        highWaterMark: given.highWaterMark ?? 16_384, defaultEncoding: given.encoding ?? "utf8", emitClose: given.emitClose ?? true, construct, destroy,
        write(chunk: Uint8Array, _: unknown, done: Done): void {
          try {
            const count = sync.write?.(state.fd, chunk, 0, chunk.length, at ?? null) as number;
            if (at !== undefined) at += count;
            stream.bytesWritten = (stream.bytesWritten as number) + count;
          } catch (thrown) {
            return done(thrown);
          }
          done();
        },
      });
      return Object.assign(stream, { path, bytesWritten: 0 });
    },
  };
}
