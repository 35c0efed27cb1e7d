// How keys and values travel: a head of JSON, then the values as they are. Four bytes say how long the head is.
import type { JsonValue } from "../../types/index.js";
import { SessionLogError } from "../errors.js";

type Head = { [member: string]: JsonValue };
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });
const PREFIX = 4;

/** `values` go behind the head, in order; the head's `sizes` says where each ends. */
export function encodeFrame(head: Head, values: readonly Uint8Array[] = []): Uint8Array<ArrayBuffer> {
  const text = encoder.encode(JSON.stringify({ ...head, sizes: values.map((value) => value.length) }));
  const out = new Uint8Array(PREFIX + text.length + values.reduce((sum, value) => sum + value.length, 0));
  new DataView(out.buffer).setUint32(0, text.length);
  out.set(text, PREFIX);
  let at = PREFIX + text.length;
  for (const value of values) {
    out.set(value, at);
    at += value.length;
  }
  return out;
}

function broken(): SessionLogError {
  return new SessionLogError("invalid_argument", "the frame cannot be read");
}

/** The head of a frame and copies of its values. */
export function decodeFrame(frame: Uint8Array): { head: Head; values: Uint8Array<ArrayBuffer>[] } {
  if (frame.length < PREFIX) throw broken();
  const length = new DataView(frame.buffer, frame.byteOffset, frame.length).getUint32(0);
  if (PREFIX + length > frame.length) throw broken();
  let head: Head;
  try {
    head = JSON.parse(decoder.decode(frame.subarray(PREFIX, PREFIX + length))) as Head;
  } catch {
    throw broken();
  }
  const sizes: unknown = head?.["sizes"];
  if (!Array.isArray(sizes)) throw broken();
  const values: Uint8Array<ArrayBuffer>[] = [];
  let at = PREFIX + length;
  for (const size of sizes as unknown[]) {
    if (typeof size !== "number" || !Number.isInteger(size) || size < 0 || at + size > frame.length) throw broken();
    values.push(frame.slice(at, at + size) as Uint8Array<ArrayBuffer>);
    at += size;
  }
  if (at !== frame.length) throw broken();
  return { head, values };
}
