// Keys are ordered by UTF-16 code units; stores that compare bytes need bytes in that order. Each unit is written as UTF-8
// would write it, halves of pairs too (CESU-8): bytes then compare as the units do. ASCII stays as it is.
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const PAIR = /[\ud800-\udfff]/;

/** The key as bytes whose order is the order of keys. */
export function keyBytes(key: string): Uint8Array<ArrayBuffer> {
  if (!PAIR.test(key)) return encoder.encode(key);
  const out: number[] = [];
  for (let at = 0; at < key.length; at++) {
    const unit = key.charCodeAt(at);
    if (unit < 0x80) out.push(unit);
    else if (unit < 0x800) out.push(0xc0 | (unit >> 6), 0x80 | (unit & 0x3f));
    else out.push(0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f));
  }
  return Uint8Array.from(out);
}

/** The key that `keyBytes` made these bytes of. */
export function keyOf(bytes: Uint8Array): string {
  // A lead byte of ED followed by A0 or more is half of a pair, which no decoder takes.
  if (!bytes.some((byte, at) => byte === 0xed && (bytes[at + 1] ?? 0) >= 0xa0)) return decoder.decode(bytes);
  const units: number[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [a = 0, b = 0, c = 0] = bytes.subarray(at, at + 3);
    if (a < 0x80) units.push(a);
    else if (a < 0xe0) units.push(((a & 0x1f) << 6) | (b & 0x3f));
    else units.push(((a & 0x0f) << 12) | ((b & 0x3f) << 6) | (c & 0x3f));
    at += a < 0x80 ? 1 : a < 0xe0 ? 2 : 3;
  }
  return String.fromCharCode(...units);
}
