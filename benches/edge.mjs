// Appends a second to one object and to sixteen, one event a call and a hundred, beside a bare worker that stores the same
// bytes with sql.exec. Both run at once in workerd; they take turns, so that what else the machine does hits both.
//   node benches/edge.mjs [--memory] [--seconds N]     on disk, or where nothing waits for one
// Ends with an error when a case stays under 0.7 of the bare worker's rate (median over the rounds).
import { join } from "node:path";
import { readFileSync, rmSync } from "node:fs";
import { call, bundle, freshDisk, here, message, root, skip, startHost } from "../tests/edge/host.mjs";

const LEAST = 0.7;
const ROUNDS = 9;
const CONNECTIONS = 16;
const memory = process.argv.includes("--memory");
const at = process.argv.indexOf("--seconds");
const seconds = at < 0 ? 1 : Number(process.argv[at + 1]);

if (skip) {
  console.log(`edge: ${skip}`);
  process.exit(0);
}

const text = "An event of a usual length: what a person asks, or a part of what a model answers. ".repeat(4).slice(0, 300);
const cases = [
  { name: "1 object, 1 event a call", objects: 1, batch: 1 },
  { name: "16 objects, 1 event a call", objects: 16, batch: 1 },
  { name: "1 object, 100 events a call", objects: 1, batch: 100 },
  { name: "16 objects, 100 events a call", objects: 16, batch: 100 },
];

/** What the host's process used of the processor so far, in milliseconds; another load on the machine does not change it. */
function processor({ pid }) {
  const [, , ...fields] = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/\(.*\)/, "x").split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** A standing connection that the host closed in the moment of a call is no failure of either. */
async function persistent(work) {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (tries > 5) throw error;
    }
  }
}

/** Appends for a while over standing connections; events stored a second. */
async function load(host, ids, batch, forMs, key) {
  const end = performance.now() + forMs;
  const started = performance.now();
  let stored = 0;
  let calls = 0;
  await Promise.all(Array.from({ length: CONNECTIONS }, async (_, connection) => {
    for (let n = 0; performance.now() < end; n++) {
      const events = Array.from({ length: batch }, (_, i) => message(`${connection} ${n} ${i} ${text}`));
      const headers = { "idempotency-key": `${key}-${connection}-${n}` };
      const { status, text: said } = await persistent(() => call(host, "POST", `/v1/sessions/${ids[connection % ids.length]}/events`, { body: { events }, headers }));
      if (status !== 200) throw new Error(`${status} ${said}`);
      stored += batch;
      calls++;
    }
  }));
  return { rate: (stored * 1000) / (performance.now() - started), calls };
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const disks = [freshDisk({ memory }), freshDisk({ memory })];
const limits = { MAX_EVENTS_PER_SESSION: "100000000", MAX_BYTES_PER_SESSION: "100000000000" };
const ours = await startHost({ disk: disks[0], env: limits });
const bare = await startHost({ disk: disks[1], worker: await bundle(join(root, "tests/edge/bare-worker.mjs"), join(here, ".out/bare")) });
let failed = 0;
try {
  console.log(`edge, ${memory ? "in memory" : "on disk"}: events a second, median of ${ROUNDS} rounds of ${seconds} s, ${CONNECTIONS} connections`);
  for (const [index, { name, objects, batch }] of cases.entries()) {
    const ids = Array.from({ length: objects }, (_, n) => `load-${index}-${n}`);
    for (const id of ids) await call(ours, "POST", "/v1/sessions", { body: { id } });
    const rates = { ours: [], bare: [] };
    const spent = { ours: [], bare: [] };
    for (let round = -1; round < ROUNDS; round++) {
      for (const [which, host] of round % 2 === 0 ? [["ours", ours], ["bare", bare]] : [["bare", bare], ["ours", ours]]) {
        const before = processor(host);
        const { rate, calls } = await load(host, ids, batch, round < 0 ? 300 : seconds * 1000, `${index}-${round}`);
        if (round >= 0) rates[which].push(rate);
        if (round >= 0) spent[which].push((processor(host) - before) / calls);
      }
    }
    const [own, other] = [median(rates.ours), median(rates.bare)];
    // Of neighbours in time: what a disk or a machine does from one second to the next hits both.
    const ratio = median(rates.ours.map((rate, round) => rate / rates.bare[round]));
    if (ratio < LEAST) failed++;
    console.log(`  ${name.padEnd(32)} ${own.toFixed(0).padStart(7)}/s   bare ${other.toFixed(0).padStart(7)}/s   ratio ${ratio.toFixed(2)}   processor ${median(spent.ours).toFixed(2)} and ${median(spent.bare).toFixed(2)} ms a call${ratio < LEAST ? `  under ${LEAST}` : ""}`);
  }
} catch (error) {
  console.error(ours.said(), bare.said());
  throw error;
} finally {
  await ours.kill();
  await bare.kill();
  for (const disk of disks) rmSync(disk, { recursive: true, force: true });
}
if (failed > 0) process.exit(1);
