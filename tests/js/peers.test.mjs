// Stores that share sessions through a backend of their own: who follows misses nothing, whenever word comes and whatever breaks.
import assert from "node:assert/strict";
import { test } from "node:test";
import init, { SessionStore } from "sessionlog";
import { RemoteStore } from "sessionlog/remote";
import { memoryBackend } from "./memory-backend.mjs";

await init();

/** A backend that two stores share; what the second one lists is as old as `hold` says, and comes when it is let go. */
function shared() {
  const data = memoryBackend();
  const other = { gate: () => null, listed: 0, onLease: () => {}, lead: null, hear: null };
  const backend = {
    ...data,
    async list(...args) {
      const value = await data.list(...args);
      await other.gate(++other.listed);
      return value;
    },
    peers: {
      lease: async (_id, _wait, onLead) => {
        other.lead = onLead;
        other.onLease();
        return { held: false, release: () => {} };
      },
      tell: () => {},
      hear: (listener) => ((other.hear = listener), () => {}),
    },
  };
  /** Holds up the listing that comes after `skipped` others. */
  const hold = (skipped = 0) => {
    let release;
    const at = other.listed + skipped + 1;
    const gate = new Promise((resolve) => (release = resolve));
    other.gate = (count) => (count === at ? gate : null);
    return { release, reads: async () => { while (other.listed < at) await settle(); } };
  };
  return { data, other, backend, hold };
}
const opened = (backend) => SessionStore.open({ storage: { kind: "custom", backend } });
const texts = (session) => session.events.map(({ data }) => data.text);
/** Lets everything go on that waits for nothing but turns of the event loop. */
const settle = async () => { for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve)); };

async function pair() {
  const { data, other, backend, hold } = shared();
  const one = await opened(data);
  const writer = one.create("both");
  await writer.appendDurable("user/message", { text: "0" });
  const two = await opened(backend);
  return { one, two, writer, other, hold };
}

test("word of a session that comes while it is being read is heeded", async () => {
  const { two, writer, other, hold } = await pair();
  let reading;
  other.onLease = () => (reading = hold());
  const resuming = two.resume("both");
  while (reading === undefined) await settle();
  await reading.reads();
  await writer.appendDurable("user/message", { text: "1" });
  other.hear("both", { grown: 2 });
  reading.release();
  const follower = await resuming;
  await settle();
  assert.deepEqual(texts(follower), ["0", "1"]);
});

test("word that names no place, while a reading that began before it is under way, is heeded", async () => {
  const { two, writer, other, hold } = await pair();
  const follower = await two.resume("both");
  const before = other.listed;
  other.hear("both", { grown: 0 });
  await settle();
  // The last listing of a reading decides what it has seen.
  const reading = hold(other.listed - before - 1);
  other.hear("both", { grown: 0 });
  await reading.reads();
  await writer.appendDurable("user/message", { text: "1" });
  other.hear("both", { grown: 0 });
  reading.release();
  await settle();
  assert.deepEqual(texts(follower), ["0", "1"]);
});

test("a writer that goes while another store reads the session leaves it to that one", async () => {
  const { one, two, other, hold } = await pair();
  let reading;
  other.onLease = () => (reading = hold());
  const resuming = two.resume("both");
  while (reading === undefined) await settle();
  await one.dispose();
  other.lead();
  reading.release();
  const session = await resuming;
  for (let turn = 0; turn < 50 && session.readOnly; turn++) await settle();
  assert.equal(session.readOnly, false);
  assert.equal((await session.appendDurable("user/message", { text: "mine" })).seq, 1);
});

/** The other end of a WebSocket, in the test's hands. */
function sockets() {
  const made = [];
  class FakeSocket extends EventTarget {
    sent = [];
    constructor(address) {
      super();
      this.address = address;
      made.push(this);
    }
    send(text) { this.sent.push(text === "ping" ? text : JSON.parse(text)); }
    close() { this.closed = true; }
    open() { this.dispatchEvent(new Event("open")); }
    say(message) { this.dispatchEvent(Object.assign(new Event("message"), { data: message === "pong" ? message : JSON.stringify(message) })); }
    breaks() { this.dispatchEvent(Object.assign(new Event("close"), { code: 1006, reason: "" })); }
  }
  return { made, FakeSocket };
}

async function linked(t) {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const { made, FakeSocket } = sockets();
  const { peers } = new RemoteStore({ url: "http://host.test", token: "t", WebSocket: FakeSocket }).backend();
  const words = [];
  peers.hear((id, word) => words.push([id, word]));
  const asking = peers.lease("s", 0, () => {});
  await settle();
  made[0].open();
  made[0].say({ t: "lease", held: false });
  const lease = await asking;
  assert.equal(lease.held, false);
  return { made, peers, words };
}

test("over a link that broke: who follows looks again, and the last word is given again", async (t) => {
  const { made, peers, words } = await linked(t);
  made[0].say({ t: "word", word: { grown: 3 } });
  assert.deepEqual(words, [["s", { grown: 3 }]]);
  made[0].breaks();
  peers.tell("s", { grown: 4 });
  peers.tell("s", { grown: 5 });
  t.mock.timers.tick(100);
  await settle();
  assert.equal(made.length, 2);
  made[1].open();
  assert.deepEqual(made[1].sent, [{ t: "lease", holds: false, again: true }, { t: "tell", word: { grown: 5 } }]);
  made[1].say({ t: "lease", held: false });
  assert.deepEqual(words.slice(1), [["s", { grown: 0 }]]);
});

test("a link whose other end went away without a word is opened anew", async (t) => {
  const { made } = await linked(t);
  t.mock.timers.tick(20_000);
  assert.equal(made[0].sent.at(-1), "ping");
  made[0].say("pong");
  t.mock.timers.tick(20_000);
  assert.ok(!made[0].closed, "it answers");
  t.mock.timers.tick(20_000);
  assert.ok(made[0].closed, "it gave no answer to the last ping");
  t.mock.timers.tick(100);
  await settle();
  assert.equal(made.length, 2);
});
