// Files beside memfs and ZenFS in one run: `node benches/files.mjs`. Prints microseconds, then milliseconds of a run, then bytes.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
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

/** How many entries a large directory has; ZenFS takes minutes to fill one of 10,000, so its lines are of 1,000. */
let entries = 10_000;

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
  "readdir of 10,000": (fs) => { fill(fs, "/bench/d", entries); return time(() => fs.readdirSync("/bench/d"), 5); },
  "readdir of 10,000, changed between": (fs) => {
    fill(fs, "/bench/d", entries);
    return time(() => { fs.writeFileSync("/bench/x", "1"); fs.readdirSync("/bench/d"); }, 5);
  },
  "rename in a directory of 10,000": (fs) => {
    fill(fs, "/bench/d", entries);
    return time((i) => { fs.renameSync("/bench/d/f7", "/bench/d/g"); fs.renameSync("/bench/d/g", "/bench/d/f7"); }, 20) / 2;
  },
  "rename a tree of 10,000": (fs) => {
    fill(fs, "/bench/d", entries);
    return time(() => { fs.renameSync("/bench/d", "/bench/e"); fs.renameSync("/bench/e", "/bench/d"); }, 3) / 2;
  },
  "remove a tree of 1,000": (fs) => {
    const found = [];
    for (let r = 0; r < 5; r++) {
      fill(fs, "/bench/d", 1_000);
      const start = performance.now();
      fs.rmSync("/bench/d", { recursive: true });
      found.push((performance.now() - start) * 1000);
    }
    return least(found);
  },
};

function fill(fs, dir, count) {
  fs.mkdirSync(dir, { recursive: true });
  for (let i = 0; i < count; i++) fs.writeFileSync(`${dir}/f${i}`, "x");
}

/**
 * Contenders take turns and keep their best round, for what else the machine does only ever adds. Reading is one copy of the
 * bytes for either side, so large reads stand close together; a call that changes a directory costs about 2 µs whatever the
 * directory holds, most of it for handing two paths to the module. Removing a tree frees all that it held within the call,
 * about 0.15 µs a file, where memfs drops one reference and leaves the rest to the collector, outside of what is measured.
 */
async function compareLines() {
  for (const [line, work] of Object.entries(LINES)) {
    const best = {};
    for (let turn = 0; turn < 3; turn++) {
      for (const [name, make] of Object.entries(makers)) {
        if (name === "zenfs" && turn > 0) continue;
        entries = name === "zenfs" ? 1_000 : 10_000;
        const fs = await make();
        fs.mkdirSync("/bench", { recursive: true });
        best[name] = Math.min(best[name] ?? Infinity, work(fs));
      }
    }
    const rounded = Object.entries(best).map(([name, us]) => [name === "zenfs" && line.includes("10,000") ? "zenfs of 1,000" : name, Number(us.toFixed(2))]);
    console.log(JSON.stringify({ line, ...Object.fromEntries(rounded), "of memfs": `${(best.memfs / best.sessionlog).toFixed(2)}x` }));
  }
}

// A run that touches 1,000 files of 4 KB beside copying their bytes once through the same calls.
async function measureRun() {
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

// Memory of 50,000 files of 100 bytes, each in a process of its own: what the process has grown by.
async function measureMemory(name) {
  const data = bytes(100), used = () => { gc(); gc(); return process.memoryUsage().rss; };
  const fs = await makers[name]();
  fs.mkdirSync("/d");
  for (let i = 0; i < 1_000; i++) fs.writeFileSync(`/d/warm-${i}`, data);
  const before = used();
  for (let i = 0; i < 50_000; i++) fs.writeFileSync(`/d/file-${i}`, data);
  console.log(`${name}: ${Math.round((used() - before) / 50_000)} bytes a file`);
  globalThis.keep = fs;
}

const one = process.argv[2];
if (one !== undefined) {
  await measureMemory(one);
} else {
  await compareLines();
  await measureRun();
  for (const name of ["sessionlog", "memfs"]) {
    process.stdout.write(execFileSync(process.execPath, ["--expose-gc", fileURLToPath(import.meta.url), name], { encoding: "utf8" }));
  }
}
