// Files beside memfs and ZenFS in one run: `node --expose-gc benches/files.mjs`. Prints microseconds.
import { Volume } from "memfs";
import { InMemory, configure, fs as zenfs } from "@zenfs/core";
import init, { VirtualFs } from "sessionlog";

await init();
await configure({ mounts: { "/": InMemory } });

const bytes = (n) => new Uint8Array(n).fill(97);
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
// The least disturbed round: whatever else the machine does only ever adds.
const least = (list) => Math.min(...list);
/** Median time of one `work`, in microseconds, over rounds of `inner` calls each. */
function time(work, inner = 200, rounds = 9) {
  for (let i = 0; i < inner; i++) work(i);
  const found = [];
  for (let r = 0; r < rounds; r++) {
    const start = performance.now();
    for (let i = 0; i < inner; i++) work(i);
    found.push(((performance.now() - start) * 1000) / inner);
  }
  return least(found);
}

const makers = {
  sessionlog: async () => (await VirtualFs.open()).node,
  memfs: async () => new Volume(),
  zenfs: async () => {
    zenfs.rmSync("/bench", { recursive: true, force: true });
    return zenfs;
  },
};

const LINES = {
  "write 1 KB": (fs) => { const data = bytes(1_000); return time((i) => fs.writeFileSync(`/bench/f${i % 100}`, data)); },
  "write 100 KB": (fs) => { const data = bytes(100_000); return time((i) => fs.writeFileSync(`/bench/f${i % 20}`, data), 60); },
  "write 1 MB": (fs) => { const data = bytes(1_000_000); return time((i) => fs.writeFileSync(`/bench/f${i % 5}`, data), 15); },
  "read 1 KB": (fs) => { fs.writeFileSync("/bench/r", bytes(1_000)); return time(() => fs.readFileSync("/bench/r")); },
  "read 100 KB": (fs) => { fs.writeFileSync("/bench/r", bytes(100_000)); return time(() => fs.readFileSync("/bench/r"), 60); },
  "read 1 MB": (fs) => { fs.writeFileSync("/bench/r", bytes(1_000_000)); return time(() => fs.readFileSync("/bench/r"), 15); },
  "readdir of 10,000": (fs) => { fill(fs, "/bench/d", 10_000); return time(() => fs.readdirSync("/bench/d"), 5); },
  "readdir of 10,000, changed between": (fs) => {
    fill(fs, "/bench/d", 10_000);
    return time(() => { fs.writeFileSync("/bench/x", "1"); fs.readdirSync("/bench/d"); }, 5);
  },
  "rename in a directory of 10,000": (fs) => {
    fill(fs, "/bench/d", 10_000);
    return time((i) => { fs.renameSync("/bench/d/f7", "/bench/d/g"); fs.renameSync("/bench/d/g", "/bench/d/f7"); }, 20) / 2;
  },
  "rename a tree of 10,000": (fs) => {
    fill(fs, "/bench/d", 10_000);
    return time(() => { fs.renameSync("/bench/d", "/bench/e"); fs.renameSync("/bench/e", "/bench/d"); }, 3) / 2;
  },
  "remove a tree of 1,000": (fs) => {
    const found = [];
    for (let r = 0; r < 7; r++) {
      fill(fs, "/bench/d", 1_000);
      const start = performance.now();
      fs.rmSync("/bench/d", { recursive: true });
      found.push((performance.now() - start) * 1000);
    }
    return median(found);
  },
};

function fill(fs, dir, count) {
  fs.mkdirSync(dir, { recursive: true });
  for (let i = 0; i < count; i++) fs.writeFileSync(`${dir}/f${i}`, "x");
}

for (const [line, work] of Object.entries(LINES)) {
  const row = { line };
  for (const [name, make] of Object.entries(makers)) {
    // Filling a large directory takes ZenFS minutes.
    if (name === "zenfs" && line.includes("000")) continue;
    const fs = await make();
    fs.mkdirSync("/bench", { recursive: true });
    row[name] = Number(work(fs).toFixed(2));
  }
  row["of memfs"] = `${(row.memfs / row.sessionlog).toFixed(2)}x`;
  console.log(JSON.stringify(row));
}

// A run that touches 1,000 files of 4 KB beside copying their bytes once through the same calls.
{
  const data = bytes(4_000);
  const found = { copy: [], run: [], undo: [], plain: [], journaled: [] };
  for (let r = 0; r < 9; r++) {
    const fs = await VirtualFs.open();
    for (let i = 0; i < 1_000; i++) fs.writeFile(`/f${i}`, data);
    const clock = (name, work) => { const start = performance.now(); const out = work(); found[name].push(performance.now() - start); return out; };
    clock("copy", () => { for (let i = 0; i < 1_000; i++) fs.writeFile(`/c${i}`, fs.readFile(`/f${i}`)); });
    clock("plain", () => { for (let i = 0; i < 1_000; i++) fs.writeFile(`/f${i}`, data); });
    let run;
    clock("run", () => { run = fs.beginRun("r"); for (let i = 0; i < 1_000; i++) run.writeFile(`/f${i}`, data); });
    clock("journaled", () => { for (let i = 0; i < 1_000; i++) run.writeFile(`/f${i}`, data); });
    await run.end();
    const start = performance.now();
    await fs.undo();
    found.undo.push(performance.now() - start);
    await fs.dispose();
  }
  const ms = Object.fromEntries(Object.entries(found).map(([name, list]) => [name, Number(median(list).toFixed(3))]));
  console.table([{ ...ms, "begin + journal + undo of copy": `${((ms.run + ms.undo) / ms.copy).toFixed(2)}x`, "first write journaled": `+${Math.round((ms.run / ms.plain - 1) * 100)} %`, "later writes": `+${Math.round((ms.journaled / ms.plain - 1) * 100)} %` }]);
}

// Memory of 50,000 files of 100 bytes.
if (globalThis.gc) {
  const data = bytes(100);
  const used = () => { gc(); gc(); const m = process.memoryUsage(); return m.heapUsed + m.external + m.arrayBuffers; };
  for (const name of ["sessionlog", "memfs"]) {
    const before = used();
    const rss = process.memoryUsage().rss;
    const fs = await makers[name]();
    fs.mkdirSync("/d");
    for (let i = 0; i < 50_000; i++) fs.writeFileSync(`/d/file-${i}`, data);
    const grown = Math.max(used() - before, name === "sessionlog" ? process.memoryUsage().rss - rss : 0);
    console.log(`${name}: ${Math.round(grown / 50_000)} bytes a file`);
    globalThis.keep = [...(globalThis.keep ?? []), fs];
  }
}
