// What a store must not lose when ids are used again, records change side by side, forks run ahead, or a step in the middle fails.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import init, { SessionStore } from "sessionlog";
import { memoryBackend, syncBackend } from "./memory-backend.mjs";

before(() => init());

const open = (backend, options) => SessionStore.open({ storage: { kind: "custom", backend }, ...options });
const say = (session, text) => session.append("user/message", { text });
const texts = (events) => events.filter((e) => e.type === "user/message").map((e) => e.data.text);

test("a sweep with a limit that is none deletes nothing", async () => {
  const backend = memoryBackend();
  let store = await open(backend);
  for (const id of ["a", "b"]) say(store.create(id), "kept");
  await store.dispose();
  store = await open(backend);
  for (const bad of [-1, NaN, Infinity, "1", {}]) {
    await assert.rejects(store.sweep({ maxAgeDays: bad }), { code: "invalid_argument" });
    await assert.rejects(store.sweep({ maxSessions: bad }), { code: "invalid_argument" });
  }
  assert.deepEqual(await store.sweep({ maxAgeDays: null, maxSessions: null }), { deleted: [] }, "null stands for the default");
  assert.equal((await store.sessions()).length, 2);
  await store.dispose();
});

// ---------------------------------------------------------------- ids

const later = (turns = 20) => new Promise((resolve) => { const step = () => (turns-- > 0 ? setImmediate(step) : resolve()); step(); });

test("the id of a deleted session that its forks still read is not free, here or in the next store", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const source = store.create("s1");
  for (const text of ["old1", "old2"]) say(source, text);
  await store.flush();
  store.fork("s1", { id: "c1" });
  await store.flush();
  await store.delete("s1");
  assert.throws(() => store.create("s1"), { code: "already_exists" });
  await store.dispose();
  const again = await open(backend);
  assert.throws(() => again.create("s1"), { code: "already_exists" });
  await assert.rejects(again.resume("s1"), { code: "missing" });
  assert.deepEqual(texts((await again.resume("c1")).events), ["old1", "old2"]);
  // With the last fork it goes, and its id is free.
  await again.delete("c1");
  say(again.create("s1"), "new");
  await again.flush();
  assert.deepEqual(texts(await again.read("s1")), ["new"]);
  await again.dispose();
});

for (const [what, damage] of [
  ["cannot be read", (map) => map.set("r/s1", new TextEncoder().encode("{brok"))],
  ["is gone", (map) => map.delete("r/s1")],
]) {
  test(`the id of a session whose record ${what} is not free`, async () => {
    const backend = memoryBackend();
    const store = await open(backend);
    say(store.create("s1"), "old");
    await store.dispose();
    damage(backend.map);
    const again = await open(backend);
    assert.throws(() => again.create("s1"), { code: "already_exists" });
    assert.deepEqual(texts((await again.resume("s1")).events), ["old"]);
    await again.dispose();
  });
}

test("two stores that give one id at the same time keep one session: the other is told, and nothing of it comes into the log", async () => {
  for (const withEvents of [true, false]) {
    const backend = memoryBackend();
    const [one, two] = [await open(backend), await open(backend)];
    say(one.create("s1", { meta: { cwd: "/one" } }), "one");
    await one.flush();
    const other = two.create("s1", { meta: { cwd: "/two" } });
    if (withEvents) say(other, "two");
    for (let times = 0; times < 2; times++) await assert.rejects(two.flush(), { code: "already_exists" });
    await assert.rejects(other.appendDurable("user/message", { text: "more" }), { code: "already_exists" });
    assert.equal((await two.status()).lastError.code, "already_exists");
    await assert.rejects(two.dispose(), { code: "already_exists" });
    assert.deepEqual(texts(await one.read("s1")), ["one"]);
    await one.dispose();
  }
});

test("where the store comes first, an id that it has is refused at once", async () => {
  const backend = syncBackend();
  const [one, two] = [await open(backend), await open(backend)];
  say(one.create("s1"), "one");
  assert.throws(() => two.create("s1"), { code: "already_exists" });
  assert.deepEqual(texts(await one.read("s1")), ["one"]);
});

test("a session that is taken back after it was stored leaves nothing behind", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.prepare("s1");
  const detach = store.enter(session);
  store.announce(session);
  say(session, "x");
  await store.flush();
  detach();
  assert.throws(() => store.create("s1"), { code: "already_exists" }, "not before it is gone");
  await later();
  say(store.create("s1"), "y");
  await store.flush();
  assert.deepEqual(texts(await store.read("s1")), ["y"]);
  await store.dispose();
});

test("a veto leaves no fork and no import behind where the store comes first", async () => {
  const backend = syncBackend();
  const store = await open(backend);
  say(store.create("s1"), "a");
  const off = store.on("session/created", () => { throw new Error("veto"); });
  assert.throws(() => store.fork("s1", { id: "c1" }), /veto/);
  await assert.rejects(store.importSession('{"messages":[{"role":"user","content":"hi"}]}', { format: "openai-messages", id: "i1" }), /veto/);
  off();
  await later();
  assert.deepEqual([...backend.map.keys()].filter((key) => /(c1|i1)/.test(key)), []);
  store.fork("s1", { id: "c1" });
  await store.dispose();
});

test("a deletion that fails can be made again, and its id is not free before that", async () => {
  const backend = memoryBackend();
  let store = await open(backend);
  say(store.create("s1"), "precious");
  await store.dispose();
  store = await open(backend);
  const real = backend.transact;
  backend.transact = async (batch) => {
    if (batch.deletes?.includes("s/s1/h")) throw new Error("no");
    return real(batch);
  };
  await assert.rejects(store.delete("s1"));
  backend.transact = real;
  assert.throws(() => store.create("s1"), { code: "already_exists" });
  await store.delete("s1");
  say(store.create("s1"), "new");
  await store.flush();
  assert.deepEqual(texts(await store.read("s1")), ["new"]);
  await store.dispose();
});

// ---------------------------------------------------------------- records

test("changes of a record at the same time are all kept", async () => {
  for (const isLive of [true, false]) {
    const backend = memoryBackend();
    let store = await open(backend);
    say(store.create("s1"), "x");
    await store.flush();
    if (!isLive) {
      await store.dispose();
      store = await open(backend);
    }
    await Promise.all([store.updateRecord("s1", { thinking: "high" }), store.updateRecord("s1", { llm_context: "big" }), store.archive("s1")]);
    const { thinking, llm_context, archived } = await store.record("s1");
    assert.deepEqual([thinking, llm_context, archived], ["high", "big", true]);
    await store.dispose();
  }
});

test("what a session changes in its record while that is being changed stays", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.create("s1");
  await store.flush();
  const changing = store.updateRecord("s1", { thinking: "high" });
  session.setTitle("T");
  session.append("turn/start", { turn: 1, trigger: { kind: "message" } });
  await changing;
  let record = await store.record("s1");
  assert.deepEqual([record.thinking, record.title, record.status], ["high", "T", "running"]);
  const archiving = store.archive("s1");
  session.append("turn/end", { turn: 1, reason: { kind: "completed" } });
  await archiving;
  record = await store.record("s1");
  assert.deepEqual([record.archived, record.status], [true, "idle"]);
  await store.dispose();
});

test("a record that is changed while its session is deleted does not come back", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  await (say(store.create("s1"), "x"), store.get("s1").dispose());
  const real = backend.transact;
  let letGo;
  const held = new Promise((resolve) => (letGo = resolve));
  backend.transact = async (batch) => {
    if (batch.puts?.some(([key]) => key === "r/s1")) await held;
    return real(batch);
  };
  const archiving = store.archive("s1");
  await later();
  await store.delete("s1");
  letGo();
  await assert.rejects(archiving, { code: "not_found" });
  assert.deepEqual(backend.keys().filter((key) => key !== "m/format"), []);
  store.create("s1");
  await store.dispose();
});

test("what another store changes in the record of a session that is written here stays, and what is changed here too", async () => {
  for (const backend of [memoryBackend(), syncBackend()]) {
    const [one, two] = [await open(backend), await open(backend)];
    const session = one.create("s1");
    say(session, "x");
    await one.flush();
    await two.updateRecord("s1", { thinking: "high", title: "theirs" });
    await two.archive("s1");
    session.setTitle("ours");
    session.append("turn/start", { turn: 1, trigger: { kind: "message" } });
    await one.flush();
    await two.updateRecord("s1", { llm_context: "big" });
    await one.updateRecord("s1", { mode: "plan" });
    const record = await two.record("s1");
    const { thinking, llm_context, archived, title, status, mode } = record;
    assert.deepEqual({ thinking, llm_context, archived, title, status, mode }, { thinking: "high", llm_context: "big", archived: true, title: "ours", status: "running", mode: "plan" });
    assert.deepEqual(texts(session.events), ["x"]);
    await Promise.all([one.dispose(), two.dispose()]);
  }
});

test("an answer about a record that got lost brings no older value back", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.create("s1");
  await store.flush();
  const real = backend.transact;
  backend.transact = async (batch) => {
    await real(batch);
    if (batch.puts?.some(([key]) => key === "r/s1")) {
      backend.transact = real;
      throw new Error("the connection went away");
    }
  };
  session.append("turn/start", { turn: 1, trigger: { kind: "message" } });
  await later(3);
  session.append("turn/end", { turn: 1, reason: { kind: "completed" } });
  await session.flush();
  assert.equal((await (await open(backend)).record("s1")).status, "idle");
  await store.dispose();
});

// ---------------------------------------------------------------- forks

/** The store as it was at this moment, without what was to come. */
function crashed(backend) {
  const left = memoryBackend();
  for (const [key, value] of backend.map) left.map.set(key, value);
  return left;
}
/** Refuses what is put below a prefix until it is called. */
function refuse(backend, prefix) {
  const real = backend.transact;
  backend.transact = async (batch) => {
    if (batch.puts?.some(([key]) => key.startsWith(prefix))) throw Object.assign(new Error("full"), { code: "quota" });
    return real(batch);
  };
  return () => void (backend.transact = real);
}

test("a fork that is stored stands on nothing that is not", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const source = store.create("s1");
  say(source, "a");
  await store.flush();
  const goOn = refuse(backend, "s/s1/");
  say(source, "b");
  const child = store.fork("s1", { id: "c1" });
  say(child, "c");
  const grandchild = store.fork("c1", { id: "g1" });
  await child.flush();
  await grandchild.flush();
  const left = await open(crashed(backend));
  const other = await left.resume("s1");
  say(other, "another future");
  await other.flush();
  for (const id of ["c1", "g1"]) {
    const forked = await left.resume(id);
    assert.deepEqual(texts(forked.events), ["a", "b", "c"]);
    assert.equal(forked.verify(), null);
  }
  await left.dispose();
  goOn();
  await store.dispose();
});

test("a fork of events that come to stand behind those of another writer keeps its own", async () => {
  const backend = memoryBackend();
  const own = { ...backend, transact: (batch) => backend.transact(batch) };
  const [one, two] = [await open(own), await open(backend)];
  const source = one.create("s1");
  say(source, "a");
  await one.flush();
  const goOn = refuse(own, "s/s1/");
  say(source, "b");
  const child = one.fork("s1", { id: "c1" });
  const other = await two.resume("s1");
  say(other, "theirs");
  await other.flush();
  goOn();
  await one.flush();
  assert.deepEqual(texts(source.events), ["a", "theirs", "b"]);
  assert.deepEqual(texts(child.events), ["a", "b"]);
  assert.deepEqual(texts(await one.read("c1")), ["a", "b"]);
  await Promise.all([one.dispose(), two.dispose()]);
});

test("a source that is deleted before its fork is stored stays for it, and goes with it", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  for (const text of ["a", "b"]) say(store.get("s1") ?? store.create("s1"), text);
  await store.flush();
  const goOn = refuse(backend, "s/c1/");
  const child = store.fork("s1", { id: "c1" });
  await store.delete("s1");
  goOn();
  await child.flush();
  await store.dispose();
  const again = await open(backend);
  assert.deepEqual(texts((await again.resume("c1")).events), ["a", "b"]);
  await again.delete("c1");
  assert.deepEqual(backend.keys().filter((key) => key !== "m/format"), []);
  await again.dispose();
});

// ---------------------------------------------------------------- hand-over

/** A backend with peers of which this one follows until it is told to lead. */
function followed(data) {
  const told = { lead: null };
  return { told, backend: {
    ...data,
    transact: (batch) => data.transact(batch),
    peers: { lease: async (_id, _wait, onLead) => ((told.lead = onLead), { held: false, release: () => {} }), tell: () => {}, hear: () => () => {} },
  } };
}

test("a take-over that fails is made again until the store lets it, and shown until then", async () => {
  const data = memoryBackend();
  const one = await open(data);
  say(one.create("s1"), "x");
  await one.dispose();
  const { told, backend } = followed(data);
  const two = await open(backend);
  const session = await two.resume("s1");
  assert.equal(session.readOnly, true);
  data.fail = Object.assign(new Error("full"), { code: "quota" });
  told.lead();
  while ((await two.status()).lastError === undefined) await later();
  assert.equal((await two.status()).lastError.code, "quota");
  assert.equal(session.readOnly, true);
  data.fail = null;
  while (session.readOnly) await new Promise((resolve) => setTimeout(resolve, 5));
  say(session, "y");
  await session.flush();
  assert.equal((await two.status()).lastError, undefined);
  await two.dispose();
});

test("who follows a session does not write its record", async () => {
  const data = memoryBackend();
  const one = await open(data);
  const writer = one.create("s1");
  say(writer, "x");
  await one.flush();
  const { backend } = followed(data);
  const two = await open(backend);
  const follower = await two.resume("s1");
  writer.setTitle("new");
  await one.updateRecord("s1", { thinking: "high" });
  await follower.follow?.();
  const before = data.map.get("r/s1");
  await follower.flush();
  assert.deepEqual(data.map.get("r/s1"), before);
  await one.delete("s1");
  await follower.flush();
  assert.deepEqual(data.keys().filter((key) => key !== "m/format"), []);
  await Promise.all([one.dispose(), two.dispose()]);
});

// ---------------------------------------------------------------- steps of which one fails

test("a session is continued once, however many ask at the same time", async () => {
  const store = await open(memoryBackend());
  say(store.create("s1"), "x");
  const [first, second] = await Promise.allSettled([store.continueSession("s1"), store.continueSession("s1")]);
  assert.equal(first.status, "fulfilled");
  assert.equal(second.reason.code, "already_exists");
  assert.equal(second.reason.details.next, first.value.id);
  await store.dispose();
});

test("a session that could not be continued is as before, and can be continued", async () => {
  for (const isLive of [true, false]) {
    for (let failAt = 1; failAt < 10; failAt++) {
      const backend = memoryBackend();
      let store = await open(backend);
      const session = store.create("s1");
      say(session, "x");
      session.setTitle("T");
      await store.flush();
      if (!isLive) {
        await store.dispose();
        store = await open(backend);
      }
      const real = backend.transact;
      let calls = 0;
      backend.transact = async (batch) => {
        if (++calls >= failAt) throw new Error("down");
        return real(batch);
      };
      const done = await store.continueSession("s1", { recap: "r" }).then(() => true, () => false);
      backend.transact = real;
      if (done) {
        await store.dispose();
        continue;
      }
      assert.equal((await store.record("s1")).archived, false, `${failAt}`);
      await store.continueSession("s1", { recap: "r" });
      assert.deepEqual((await store.sessions()).map(({ title }) => title), ["T"], `${failAt}`);
      assert.equal((await store.sessions({ includeArchived: true })).length, 2, `${failAt}`);
      await store.dispose();
    }
  }
});

test("a session of a program whose directories are relative can be continued", async () => {
  const store = await open(memoryBackend());
  const old = { metadata_version: 3, id: "d1", mode: "m", model_name: "x", working_directory: "rel/dir", created_at: "t", updated_at: "t", messages: [] };
  await store.importSession(JSON.stringify(old), { format: "samagotchi", id: "d1" });
  const next = await store.continueSession("d1");
  assert.equal((await store.record(next.id)).working_directory, "rel/dir");
  assert.equal(next.header.cwd, undefined);
  await store.dispose();
});

test("a flush writes and asks every listener, whatever one of them does", async () => {
  const store = await open(memoryBackend());
  const session = store.create("s1");
  await store.flush();
  let asked = 0;
  const off = store.on("session/flush", () => { throw new TypeError("no"); });
  store.on("session/flush", async () => {
    await later();
    session.append("assistant/chunk", { turn: 1, step: 1, kind: "text", text: `${++asked}` });
  });
  await assert.rejects(store.flush(), { name: "SessionLogError", message: "no" });
  assert.deepEqual([asked, session.durableSeq], [1, 1]);
  await assert.rejects(session.flush(), { name: "SessionLogError" });
  assert.deepEqual([asked, session.durableSeq], [2, 2]);
  off();
  await session.flush();
  assert.deepEqual([asked, session.durableSeq], [3, 3], "what a listener appends is stored too");
});

test("who disposes of a store asks its flush listeners first", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.create("s1");
  store.on("session/flush", () => void say(session, "last"));
  await store.dispose();
  assert.deepEqual(texts(await (await open(backend)).read("s1")), ["last"]);
});

test("a resumption that fails leaves no session with an open turn", async () => {
  const backend = memoryBackend();
  let store = await open(backend);
  store.create("s1").append("turn/start", { turn: 1, trigger: { kind: "message" } });
  await store.dispose();
  let isBroken = true;
  store = await open(backend, { scrubbers: [(text) => { if (isBroken) throw new Error("no"); return text; }] });
  await assert.rejects(store.resume("s1"));
  assert.deepEqual(store.list(), []);
  isBroken = false;
  assert.equal((await store.resume("s1")).events.at(-1).type, "turn/end");
  await store.dispose();
});

test("a session that is resumed while it is disposed of is a new one", async () => {
  const store = await open(memoryBackend({ delay: 1 }));
  const old = store.create("s1");
  say(old, "x");
  const ending = old.dispose();
  const session = await store.resume("s1");
  await ending;
  assert.notEqual(session, old);
  say(session, "y");
  await session.flush();
  assert.deepEqual(texts(await store.read("s1")), ["x", "y"]);
  const closing = store.dispose();
  await assert.rejects(store.resume("s1"), { code: "disposed" });
  assert.throws(() => store.create(), { code: "disposed" });
  await closing;
});

test("an import that could not be stored can be made again", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const text = '{"messages":[{"role":"user","content":"hi"}]}';
  const goOn = refuse(backend, "s/i1/");
  await assert.rejects(store.importSession(text, { format: "openai-messages", id: "i1" }));
  assert.deepEqual(store.list(), []);
  goOn();
  const { session } = await store.importSession(text, { format: "openai-messages", id: "i1" });
  assert.equal(session.durableSeq, session.seq);
  await store.dispose();
});

test("a session that comes in with events is listed by what they say: a seed, a prepared one, a fork, an import", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.create("s1");
  for (const text of ["hello there", "and now"]) say(session, text);
  session.setTitle("T");
  store.create("seeded", { seed: session.events });
  const prepared = store.prepare("prepared");
  say(prepared, "hello there");
  prepared.setTitle("T");
  store.enter(prepared);
  store.announce(prepared);
  store.fork("s1", { id: "forked" });
  const [head, ...rest] = new TextDecoder().decode(await store.exportSession("s1")).split("\n");
  const { record: _record, entry: _entry, ...header } = JSON.parse(head);
  await store.importSession([JSON.stringify(header), ...rest].join("\n"), { id: "imported" });
  await store.dispose();
  const rows = await (await open(backend)).sessions();
  assert.equal(rows.length, 5);
  for (const { id, title, preview } of rows) assert.deepEqual([title, preview], ["T", "hello there"], id);
});

test("a record that the store does not give out at the moment is not made anew", async () => {
  const backend = memoryBackend();
  let store = await open(backend);
  say(store.create("s1"), "x");
  await store.updateRecord("s1", { thinking: "high" });
  await store.dispose();
  store = await open(backend);
  const real = backend.get;
  backend.get = async (key) => {
    if (key === "r/s1") throw new Error("the connection went away");
    return real(key);
  };
  await assert.rejects(store.resume("s1"), { code: "storage" });
  backend.get = real;
  (await store.resume("s1")).setTitle("T");
  await store.dispose();
  assert.equal((await (await open(backend)).record("s1")).thinking, "high");
});
