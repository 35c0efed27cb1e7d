// CRC-32 (IEEE), for records on disk.
let table: Uint32Array | null = null;

function makeTable(): Uint32Array {
  return Uint32Array.from({ length: 256 }, (_, index) => {
    let value = index;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
    return value;
  });
}

export function crc32(bytes: Uint8Array): number {
  table ??= makeTable();
  let crc = 0xffffffff;
  for (let at = 0; at < bytes.length; at++) crc = (table[(crc ^ (bytes[at] as number)) & 0xff] as number) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
