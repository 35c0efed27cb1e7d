// Renderer and whole browser killed in the middle of writes, a persistent profile: what was acknowledged as durable is there
// after the next start, in order, once. `CRASH_ROUNDS` for more than the 20 of CI.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { serveDist } from "./dist-server.mjs";
import { until } from "./helper.mjs";

const ROUNDS = Number(process.env.CRASH_ROUNDS ?? 20);
/** Stores that promise something; localStorage promises a whole prefix at most. */
const DURABLE = ["indexeddb", "opfs"];
const KINDS = [...DURABLE, "localstorage"];
const FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0"];
const html = `<!doctype html><title>crash</title><link rel="icon" href="data:,"><script type="module" src="/crash-page.mjs"></script>`;

let server, told;
before(async () => {
  server = await serveDist({ extra: ["crash-page.mjs"], html, onPost: (path, body) => told?.(path, body) });
});
after(() => server?.close());

/** What a run of rounds knows: acknowledged texts per kind, and what the page of this round has told so far. */
function book() {
  const acked = Object.fromEntries(KINDS.map((kind) => [kind, []]));
  const state = { acked, round: null, acks: 0, killed: 0, thrownAway: 0, gone: 0 };
  told = (path, body) => {
    if (path === "/ack") { acked[body.kind].push(...body.texts); state.acks++; state.round.acks[body.kind]++; }
    // What was acknowledged up to here must be there.
    if (path === "/found") state.round.found[body.kind] = { ...body, acked: acked[body.kind].toSorted((a, b) => order(a) - order(b)) };
    // Chromium's own doing: it could not open what it had written when it was killed, and begins with nothing.
    if (path === "/thrown-away") { state.thrownAway++; state.gone += acked.indexeddb.splice(0).length; }
    if (path === "/ready") state.round.ready = true;
    if (path === "/fault") state.round.faults.push(`${body.kind ?? ""} ${body.message}`);
  };
  state.begin = () => (state.round = { found: {}, acks: Object.fromEntries(KINDS.map((k) => [k, 0])), faults: [], ready: false });
  return state;
}

/** Everything acknowledged so far stands there once, in the order of the acknowledgements; nothing is broken. */
function judge(state) {
  for (const kind of KINDS) {
    const { texts, acked, contiguous, broken, again, warnings, durable } = state.round.found[kind];
    const where = `${kind} after ${state.killed} kills`;
    assert.ok(contiguous && again, `${where}: seqs from 0 without gaps, and the same when read again`);
    assert.equal(broken, null, `${where}: the digest chain`);
    assert.deepEqual(warnings, [], where);
    assert.equal(new Set(texts).size, texts.length, `${where}: nothing stands twice`);
    assert.equal(durable, DURABLE.includes(kind));
    if (DURABLE.includes(kind)) {
      const places = new Map(texts.map((text, place) => [text, place]));
      const lost = acked.filter((text) => !places.has(text));
      assert.equal(lost.length, 0, `${where}: of ${acked.length} acknowledged, ${texts.length} found, lost ${brief(lost)}; ${everywhere(state)}`);
      assert.ok(acked.every((text, i) => i === 0 || places.get(acked[i - 1]) < places.get(text)), `${where}: in order`);
    } else {
      // Recent items may be gone; what is left is a prefix of what was written, and the next writes go on from there.
      const isPrefix = texts.every((text, place) => place === 0 || order(texts[place - 1]) < order(text));
      assert.ok(isPrefix, `${where}: a whole prefix`);
      state.acked[kind] = [...texts];
    }
  }
}
const brief = (texts) => `${texts.length} (${texts.slice(0, 5).map((text) => text.slice(0, 12))} … ${texts.slice(-5).map((text) => text.slice(0, 12))})`;
/** Whether the browser lost a profile, or we a session. */
const everywhere = ({ round, acked }) => Object.entries(round.found).map(([kind, { texts, present }]) => `${kind}: ${texts.length} of ${acked[kind].length} (${present})`).join("; ");
const order = (text) => [0, 1, 2].reduce((sum, at) => sum * 1e4 + Number(text.split(".")[at] || 0), 0);

async function ready(state) {
  await until(() => state.round.ready || state.round.faults.length > 0, "the page", 60_000);
  assert.deepEqual(state.round.faults, []);
  judge(state);
}

async function writing(state, round) {
  await until(() => DURABLE.every((kind) => state.round.acks[kind] > 3) || state.round.faults.length > 0, () => `acknowledgements: ${JSON.stringify(state.round.acks)}`, 60_000);
  assert.deepEqual(state.round.faults, []);
  // Not always at the same place of a write.
  await new Promise((resolve) => setTimeout(resolve, (round * 37) % 160));
}

/** Starts Chromium with a profile; `kill` ends all of its processes at once, as a power switch for programs would. */
async function start(profile, url) {
  const child = spawn(process.env.CHROMIUM ?? "/usr/bin/chromium", [...FLAGS, `--user-data-dir=${profile}`, url], { detached: true, stdio: ["ignore", "ignore", "pipe"] });
  const endpoint = new Promise((resolve) => {
    let text = "";
    child.stderr.on("data", (data) => {
      text += data;
      const at = /DevTools listening on (ws:\S+)/.exec(text);
      if (at) resolve(at[1]);
    });
  });
  const kill = async () => {
    const gone = child.exitCode === null && child.signalCode === null ? once(child, "exit") : null;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {}
    await gone;
    await until(() => processesOf(profile).length === 0, "the browser's processes to go", 30_000);
  };
  return { child, endpoint, kill };
}

/** Processes that were started with this profile. */
function processesOf(profile) {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(profile) && !/^\d+ \([^)]*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
    } catch {
      return false;
    }
  });
}

async function withProfile(work) {
  const profile = mkdtempSync(join(tmpdir(), "sessionlog-crash-"));
  try {
    await work(profile);
  } finally {
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** What was found of what was acknowledged; how often the browser threw a database away, which nobody can keep it from, is said. */
function sum(t, state) {
  t.diagnostic(`acknowledged and found: ${DURABLE.map((kind) => `${kind} ${state.acked[kind].length}`).join(", ")}`);
  if (state.thrownAway > 0) t.diagnostic(`the browser found its own database broken and threw it away ${state.thrownAway} times, with ${state.gone} texts`);
  assert.ok(state.thrownAway <= Math.ceil(ROUNDS / 20), "that is rare: at most once in twenty kills");
  assert.ok(state.acked.opfs.length > ROUNDS * 4 && state.acked.indexeddb.length + state.gone > ROUNDS * 4);
}

test(`the whole browser is killed in the middle of writes, ${ROUNDS} times`, { timeout: 600_000 }, async (t) => {
  await withProfile(async (profile) => {
    const state = book();
    for (let round = 0; round <= ROUNDS; round++) {
      state.begin();
      const browser = await start(profile, `${server.url}?round=${round === ROUNDS ? "last" : round}`);
      try {
        await ready(state);
        if (round < ROUNDS) await writing(state, round);
      } finally {
        await browser.kill();
      }
      state.killed++;
    }
    sum(t, state);
  });
});

test(`the renderer is killed in the middle of writes, ${ROUNDS} times`, { timeout: 600_000 }, async (t) => {
  await withProfile(async (profile) => {
    const state = book();
    const browser = await start(profile, "about:blank");
    try {
      const client = await chromium.connectOverCDP(await browser.endpoint);
      const context = client.contexts()[0];
      for (let round = 0; round <= ROUNDS; round++) {
        state.begin();
        const page = await context.newPage();
        const crashed = new Promise((resolve) => page.once("crash", resolve));
        await page.goto(`${server.url}?round=${round === ROUNDS ? "last" : round}`);
        await ready(state);
        if (round < ROUNDS) {
          await writing(state, round);
          await crash(context, page);
          await crashed;
        }
        await page.close();
        state.killed++;
      }
      sum(t, state);
    } finally {
      await browser.kill();
    }
  });
});

/** Kills the process of a page; the command itself gets no answer. */
async function crash(context, page) {
  const session = await context.newCDPSession(page);
  void session.send("Page.crash").catch(() => {});
}
