// Megabytes per second through the JavaScript boundary: 10 MB of made-up tool output in strings of 8 KB, next to the same
// prefixes as JavaScript regular expressions in the same run; streams; texts made to be slow. CPU time where there is a clock for it (Node).
import init, { ScrubStream, scrubText, SessionStore } from "sessionlog";

let seed = 7;
const random = (n) => ((seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) >>> 8) % n;
const pick = (list) => list[random(list.length)];
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const run = (alphabet, n) => Array.from({ length: n }, () => pick([...alphabet])).join("");
const WORDS = "the request handler returned status token user session cache value build output error module import const function return async await result number string path file test".split(" ");
const words = (n) => Array.from({ length: n }, () => pick(WORDS)).join(" ");

const KINDS = [
  () => `2026-07-${10 + random(20)}T${10 + random(14)}:11:29.272Z INFO  [worker-${random(9)}] ${words(6)} id=${run("0123456789abcdef", 16)} in ${random(900)}ms\n`,
  () => `  const ${pick(WORDS)}_${pick(WORDS)} = await ${pick(WORDS)}.${pick(WORDS)}({ ${pick(WORDS)}: ${random(99)}, key: "${pick(WORDS)}" });\n`,
  () => `{"id":"${run("0123456789abcdef", 24)}","type":"${pick(WORDS)}","count":${random(9999)},"items":[1,2,3],"note":"${words(5)}"}\n`,
  () => `${run(`${letters}+/`, 76)}\n`,
  () => `${words(14)}.\n`,
];
const WEIGHTS = [0, 0, 0, 1, 1, 2, 2, 3, 4, 4];
function output() {
  let text = "";
  const parts = [];
  while (parts.length * 8_192 < 10e6) {
    while (text.length < 8_192) text += KINDS[pick(WEIGHTS)]();
    parts.push(text.slice(0, 8_192));
    text = text.slice(8_192);
  }
  for (let n = 0; n < 100; n++) {
    const at = random(parts.length);
    parts[at] = `${parts[at].slice(0, 4_000)} ${["gh", "p_"].join("")}${run(letters, 36)} ${parts[at].slice(4_000)}`;
  }
  return parts;
}

const SAME = [
  /\bgh[pousr]_[A-Za-z0-9]{36,}/g, /\bgithub_pat_\w{60,}/g, /\bgl(?:pat|dt|rt|cbt|ft|imt|soat)-[\w.-]{20,}/g, /\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b/g, /\bAIza[\w-]{35}\b/g,
  /\bsk-(?:proj|svcacct|admin|ant)-[\w-]{40,}/g, /\bsk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}/g, /\bhf_[A-Za-z0-9]{34}/g, /\bgsk_[A-Za-z0-9]{48,}/g, /\bxox[abeoprs]-[\w-]{20,}/g,
  /\b[sr]k_(?:live|test)_[A-Za-z0-9]{20,}/g, /\bwhsec_[\w+/=]{24,}/g, /\bnpm_[A-Za-z0-9]{36}/g, /\bpypi-AgE[\w-]{50,}/g, /\bSG\.[\w-]{22}\.[\w-]{43}/g, /\bkey-[0-9a-f]{32}\b/g,
  /\bdo[oprt]_v1_[0-9a-f]{64}/g, /\bdapi[0-9a-f]{32}/g, /\bshp(?:at|ss|ca|pa)_[0-9a-f]{32}/g, /\bhvs\.[\w-]{24,}/g, /\beyJ[\w-]{10,}\.[\w-]+\.[\w-]*/g, /\b[\w-]{14}\.atlasv1\.[\w-]{50,}/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?-----END [A-Z ]*-----/g, /\b[A-Za-z0-9_~.]{3}\dQ~[\w~.-]{31,34}/g, /\b\d{8,10}:AA[\w-]{33}/g, /\b[MNO][A-Za-z\d]{23,25}\.[\w-]{6}\.[\w-]{27,38}/g,
  /\b[0-9a-f]{32}-us\d{1,2}\b/g, /(?<=[a-z][a-z0-9+.-]*:\/\/[^\s:/?#@]*:)[^\s/?#@]+(?=@)/gi, /(?<=authorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+)[\w.~+/=-]{8,}/gi,
  /(?<=(?:password|passwd|pwd|passphrase)["']?\s*[:=]\s*["']?)[^\s"']{6,}/gi, /(?<=(?:secret|token|api_?key|access_?key)["']?\s*[:=]\s*["']?)[\w+/=-]{16,}/gi,
];

/** Microseconds of work done so far. */
const clock = typeof process === "object" ? () => { const { user, system } = process.cpuUsage(); return user + system; } : () => performance.now() * 1000;

const LEAST_MICROS = 30_000;

/** Bytes per microsecond. */
function once(work, size) {
  const start = clock();
  // Clocks tick in steps of milliseconds: what is over sooner is done again.
  let times = 0;
  do work(); while (++times, clock() - start < LEAST_MICROS);
  return (size * times) / (clock() - start);
}

/** The best of some rounds: neighbours on the machine only ever slow it down. */
function speed(work, size, rounds = 5) {
  let best = 0;
  for (let round = 0; round < rounds; round++) best = Math.max(best, once(work, size));
  return best;
}

/** Both in turn, so that what slows the machine down for a while slows both. */
function speeds(one, two, size, rounds = 9) {
  const best = [0, 0];
  for (let round = 0; round < rounds; round++) {
    best[0] = Math.max(best[0], once(one, size));
    best[1] = Math.max(best[1], once(two, 2 * size));
  }
  return best;
}

export default async ({ print }) => {
  await init();
  let found = 0;
  const parts = output();
  const bytes = parts.reduce((n, part) => n + part.length, 0);
  const ours = speed(() => { for (const part of parts) found += scrubText(part).text.length; }, bytes);
  const some = parts.slice(0, 200);
  const theirs = speed(() => { for (const part of some) for (const re of SAME) found += part.replace(re, "#").length; }, bytes * some.length / parts.length);
  print(`8 KB strings, ${(bytes / 1e6).toFixed(1)} MB: ours ${ours.toFixed(1)} MB/s, ${SAME.length} regular expressions ${theirs.toFixed(1)} MB/s, ×${(ours / theirs).toFixed(1)}`);

  const store = await SessionStore.open({ storage: { kind: "memory" }, scrubbers: [{ builtin: "secrets" }] });
  const plain = await SessionStore.open({ storage: { kind: "memory" } });
  const append = (into) => speed(() => { const session = into.create(); for (const part of parts) session.append("user/message", { text: part }); void session.dispose(); }, bytes);
  print(`appended to a log: ${append(store).toFixed(1)} MB/s scrubbed, ${append(plain).toFixed(1)} MB/s not`);

  // What is held is what has been pushed and not come out: texts without a secret, so that in and out are the same length.
  const clean = parts.slice(0, 200).filter((part) => scrubText(part).matches.length === 0);
  let held = 0, pushes = 0;
  const rate = speed(() => {
    for (const part of clean) {
      const stream = new ScrubStream();
      let open = 0;
      for (let at = 0; at < part.length; at += 20) {
        const piece = part.slice(at, at + 20);
        open += piece.length - stream.push(piece).length;
        held += open;
        pushes++;
      }
      stream.end();
    }
  }, clean.length * 8_192);
  print(`deltas of 20: ${rate.toFixed(1)} MB/s, ${(held / pushes).toFixed(1)} units held on average`);

  const single = (n) => speed(() => {
    const stream = new ScrubStream();
    for (let at = 0; at < n; at++) stream.push("word = 12 "[at % 10]);
    stream.end();
  }, n, 2);
  const [half, whole] = [single(500_000), single(1_000_000)];
  print(`1 MB in pieces of one unit: ${(1 / whole).toFixed(2)} s, ×${((2 * half) / whole).toFixed(2)} of half of it`);

  // A page's heap gives long strings pages of their own; collecting those would be measured, not the scan.
  const length = typeof process === "object" ? 500_000 : 60_000;
  let worst = Infinity, worstUnit = "";
  for (const unit of ["A", "a.", "A_", "password=", "password='", "token: ", ["sk-", "ant-"].join(""), ["gh", "p_"].join(""), ["ey", "J"].join(""), "-----BEGIN PRIVATE KEY-----\n", "Bearer ", "Cookie: a=b; ", "://", "a://b:", "api-key-", "\\\"", "12345678:AA", "xoxb-1-", "--password ", "<password>"]) {
    const small = unit.repeat(Math.ceil(length / unit.length)), large = small + small;
    const [one, two] = speeds(() => scrubText(small), () => scrubText(large), small.length);
    if (two < 20) print(`  slow: ${JSON.stringify(unit)} ${two.toFixed(1)} MB/s`);
    if (two < worst) [worst, worstUnit] = [two, unit];
    if (2 * one / two > 2.5) print(`  not linear: ${JSON.stringify(unit)} ×${(2 * one / two).toFixed(2)}`);
  }
  print(`hostile texts: slowest ${worst.toFixed(1)} MB/s (${JSON.stringify(worstUnit)})`);
};
