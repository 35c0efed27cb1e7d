// Node's text encodings over plain bytes, for places that have no Buffer.
interface BufferLike { from(data: ArrayBufferLike | string, a?: number | string, b?: number): Uint8Array & { toString(encoding?: string): string } }

// Captured when the module is loaded.
const NodeBuffer = (globalThis as { Buffer?: BufferLike }).Buffer;
const encoder = new TextEncoder();
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** The same bytes as a Buffer where there is one: Node's clients call `toString("utf8")` on what they read. */
export function asBuffer(bytes: Uint8Array): Uint8Array {
  return NodeBuffer === undefined ? bytes : NodeBuffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function fromBinary(text: string): Uint8Array {
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

function toBinary(bytes: Uint8Array, mask = 0xff): string {
  let out = "";
  for (const byte of bytes) out += String.fromCharCode(byte & mask);
  return out;
}

const decoders: { [encoding: string]: (bytes: Uint8Array) => string } = {
  utf8: (bytes) => utf8.decode(bytes),
  // Half a unit at the end is left out.
  utf16le: (bytes) => new TextDecoder("utf-16le", { ignoreBOM: true }).decode(bytes.subarray(0, bytes.length & ~1)),
  latin1: (bytes) => toBinary(bytes),
  ascii: (bytes) => toBinary(bytes, 0x7f),
  hex: (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""),
  base64: (bytes) => btoa(toBinary(bytes)),
  base64url: (bytes) => btoa(toBinary(bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, ""),
};

const encoders: { [encoding: string]: (text: string) => Uint8Array } = {
  utf8: (text) => encoder.encode(text),
  utf16le: (text) => {
    const out = new Uint8Array(text.length * 2);
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      out[2 * i] = unit & 0xff;
      out[2 * i + 1] = unit >> 8;
    }
    return out;
  },
  latin1: fromBinary,
  ascii: fromBinary,
  hex: (text) => Uint8Array.from(text.match(/[0-9a-f]{2}/gi) ?? [], (digits) => parseInt(digits, 16)),
  base64: (text) => fromBinary(atob(text.replace(/-/g, "+").replace(/_/g, "/").replace(/[^A-Za-z0-9+/]/g, ""))),
  base64url: (text) => (encoders.base64 as (text: string) => Uint8Array)(text),
};

const aliases: { [name: string]: string } = { "utf-8": "utf8", ucs2: "utf16le", "ucs-2": "utf16le", "utf-16le": "utf16le", binary: "latin1" };

function nameOf(encoding: string): string {
  const lower = encoding.toLowerCase();
  const name = aliases[lower] ?? lower;
  if (Object.hasOwn(decoders, name)) return name;
  throw Object.assign(new TypeError(`Unknown encoding: ${encoding}`), { code: "ERR_UNKNOWN_ENCODING" });
}

export function isEncoding(encoding: unknown): boolean {
  const lower = String(encoding).toLowerCase();
  return Object.hasOwn(decoders, aliases[lower] ?? lower);
}

export function decode(bytes: Uint8Array, encoding: string): string {
  return (decoders[nameOf(encoding)] as (bytes: Uint8Array) => string)(bytes);
}

export function encode(text: string, encoding: string): Uint8Array {
  return (encoders[nameOf(encoding)] as (text: string) => Uint8Array)(text);
}
