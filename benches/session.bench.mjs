// What a caller pays per event: append, derive after one append, read back; beside plain JavaScript that only copies.
import init, { SessionStore } from "sessionlog";

const event = (i) => ({ text: `${i} `.padEnd(1000, "lorem ipsum dolor ") });

export default async function run(bench) {
  await init();
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const ops = 200;

  let plain = [];
  let session = store.create();
  await bench.compare("append of 1 KB", {
    "copy through JSON text": () => {
      for (let i = 0; i < ops; i++) plain.push(JSON.parse(JSON.stringify(event(i))));
    },
    "session.append": () => {
      for (let i = 0; i < ops; i++) session.append("user/message", event(i));
    },
  }, { ops });

  const logs = {};
  for (const size of [100, 10_000]) {
    const log = store.create();
    for (let i = 0; i < size; i++) log.append(i % 2 ? "assistant/message" : "user/message", i % 2 ? { parts: [{ type: "text", text: `${i}` }] } : { text: `${i}` });
    log.deriveMessages();
    logs[`log of ${size}`] = () => {
      log.append("user/message", { text: "one more" });
      log.deriveMessages();
    };
  }
  await bench.compare("append and derive", logs);
  await bench.measure("read one event", () => {
    for (let i = 0; i < ops; i++) session.event(i);
  }, { ops });
  await store.dispose();
}
