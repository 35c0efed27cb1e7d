// Appends of one turn cross into the module together: whatever is asked in between must not tell.
import { test } from "node:test";
import assert from "node:assert/strict";
import init, { SessionStore } from "sessionlog";

await init();
SessionStore.declareEvent("appends/own", { ignorable: true });

const random = (seed) => () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) | 0;
  return (seed >>> 8) / 2 ** 24;
};
const shown = (events) => events.map(({ id, seq, type, data }) => ({ id, seq, type, data }));

test("events of all kinds, in one turn and with anything asked in between, are the ones that were given out", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const next = random(seed);
    const pick = (n) => Math.floor(next() * n);
    const store = await SessionStore.open({ storage: { kind: "memory" } });
    const session = store.create();
    const heard = [];
    session.on("event", (event) => heard.push(event));
    let stream = null;
    const given = [];
    const put = {
      message: () => given.push(session.append("user/message", { text: `m${given.length} é 😀 ${"x".repeat(pick(200))}` })),
      many: () => { for (let n = pick(150); n > 0; n--) given.push(session.append("user/message", { text: `n${given.length}` })); },
      own: () => given.push(session.append("appends/own", { n: given.length, lines: "a\nb\r\u2028" })),
      large: () => given.push(session.append("user/message", { text: "€".repeat(20_000) })),
      priced: () => given.push(session.append("step/end", { turn: 1, step: 1, status: "completed", usage: { inputTokens: 10, outputTokens: 5 }, model: "m" })),
      delta: () => {
        stream ??= session.openStream({ turn: 1, step: 1, part: 0, kind: "text" });
        given.push(...stream.push(`d${given.length}`));
      },
    };
    const ask = {
      events: () => assert.deepEqual(shown(session.events), shown(given)),
      last: () => given.length > 0 && assert.equal(session.event(given.length - 1).id, given.at(-1).id),
      messages: () => session.deriveMessages(),
      usage: () => session.usage(),
      verify: () => assert.equal(session.verify(), null),
      fork: () => assert.deepEqual(shown(store.fork(session.id, { allowOpenTurn: true }).slice(0, given.length)).map(({ id }) => id), given.map(({ id }) => id)),
      turn: () => new Promise((done) => setTimeout(done)),
      flush: () => session.flush(),
    };
    for (let step = 0; step < 40; step++) {
      const kinds = pick(3) < 2 ? put : ask;
      const names = Object.keys(kinds);
      await kinds[names[pick(names.length)]]();
      assert.equal(session.seq, given.length, `seed ${seed}`);
    }
    assert.deepEqual(shown(session.events), shown(given), `seed ${seed}`);
    assert.deepEqual(given.map(({ seq }) => seq), given.map((_, seq) => seq), `seed ${seed}`);
    assert.deepEqual(shown(heard), shown(given), `seed ${seed}`);
    await store.dispose();
  }
});

test("a random source that appends itself changes no order", async () => {
  let session = null;
  let inside = 0;
  const store = await SessionStore.open({
    storage: { kind: "memory" },
    random: (bytes) => {
      for (let i = 0; i < bytes.length; i++) bytes[i] = Math.random() * 256;
      if (session !== null && inside++ % 2 === 0) session.append("user/message", { text: `inside ${inside}` });
    },
  });
  const made = store.create();
  const heard = [];
  made.on("event", (event) => heard.push(event));
  session = made;
  const stream = made.openStream({ turn: 1, step: 1, part: 0, kind: "text" });
  for (let i = 0; i < 700; i++) {
    made.append("user/message", { text: `outside ${i}` });
    if (i % 7 === 0) stream.push(`delta ${i}`);
  }
  assert.ok(inside > 2, "the source was asked again");
  assert.deepEqual(shown(made.events), shown(heard));
  assert.deepEqual(heard.map(({ seq }) => seq), heard.map((_, seq) => seq));
  assert.equal(made.verify(), null);
  session = null;
  await store.dispose();
});

test("what was appended just before is in an export and in the store", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create("just");
  session.append("user/message", { text: "one" });
  const exported = store.exportSession("just");
  session.append("user/message", { text: "two" });
  assert.match(new TextDecoder().decode(await exported), /"one"/);
  session.append("user/message", { text: "three" });
  const id = session.id;
  await session.dispose();
  const again = await store.resume(id);
  assert.deepEqual(again.events.map((e) => e.data.text), ["one", "two", "three"]);
  await store.dispose();
});
