// What a page does while it is killed: it appends to one session per kind of storage and tells the server, over requests that
// outlive it, what was acknowledged. Opened again, it first says what it finds.
import init, { SessionStore } from "/web.js";

const KINDS = ["indexeddb", "opfs", "localstorage"];
const post = (path, body) => fetch(path, { method: "POST", body: JSON.stringify(body) });
/** A request that outlives its page; a small one. */
const tell = (path, body) => fetch(path, { method: "POST", keepalive: true, body: JSON.stringify(body) }).catch(() => {});

async function found(store, id) {
  const session = await store.resume(id).catch((error) => {
    if (error.code === "missing") return null;
    throw error;
  });
  const events = session?.events ?? [];
  return {
    session,
    state: {
      texts: events.map((event) => event.data.text),
      contiguous: events.every((event, i) => event.seq === i),
      broken: session?.verify() ?? null,
      again: JSON.stringify(events) === JSON.stringify(session === null ? [] : await store.read(id)),
    },
  };
}

/** Awaited singles and batches in turn, for ever; what is acknowledged is told at once. */
async function write(session, kind, round) {
  const say = (text) => session.append("user/message", { text });
  for (let n = 0; ; n++) {
    const texts = [`${round}.${n}`];
    if (n % 3 === 0) {
      await session.appendDurable("user/message", { text: texts[0] });
    } else {
      for (let i = 1; i <= n % 7; i++) texts.push(`${round}.${n}.${i}`.padEnd(n % 2 && kind !== "localstorage" ? 5_000 : 20, "."));
      texts.forEach(say);
      await session.flush();
    }
    void tell("/ack", { kind, texts });
    // A breath, so that the acknowledgements get out; localStorage would leave the others no time, and is small.
    if (kind === "localstorage") await new Promise((resolve) => setTimeout(resolve, 15));
    else if (n % 4 === 0) await new Promise((resolve) => setTimeout(resolve));
  }
}

try {
  await init();
  const round = new URLSearchParams(location.search).get("round");
  const sessions = {};
  // A browser that finds its database broken throws it away. It says so to whoever asks first, or with the upgrade of the new one.
  let isLost = false;
  const { open } = IDBFactory.prototype;
  IDBFactory.prototype.open = function (...args) {
    const request = open.apply(this, args);
    request.addEventListener("upgradeneeded", ({ dataLoss }) => (isLost ||= dataLoss === "total"));
    return request;
  };
  const present = await indexedDB.databases().then((all) => all.map(({ name }) => name).join(", ") || "no database", (error) => error.name);
  isLost ||= present === "UnknownError";
  for (const kind of KINDS) {
    const warnings = [];
    const store = await SessionStore.open({ storage: { kind }, onWarning: (w) => warnings.push(w) });
    const { session, state } = await found(store, "s1");
    const isOfBrowser = kind === "indexeddb" && isLost;
    if (isOfBrowser) await post("/thrown-away", {});
    state.warnings = warnings.filter(({ code, message }) => code === "corrupt" && !(isOfBrowser && /threw|thrown away/.test(message)));
    state.present = present;
    state.durable = (await store.status()).durable;
    await post("/found", { kind, ...state });
    sessions[kind] = session ?? store.create("s1");
  }
  await post("/ready", {});
  if (round !== "last") for (const kind of KINDS) write(sessions[kind], kind, round).catch((error) => tell("/fault", { kind, message: `${error.code} ${error.message}` }));
} catch (error) {
  await tell("/fault", { message: `${error.code} ${error.name}: ${error.message} ${error.stack}` });
}
