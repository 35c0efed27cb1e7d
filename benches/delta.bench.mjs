// What one streamed delta costs: adapter to loop to scrubber to log to listeners, 20 bytes at a time. `cargo xtask bench`.
import init, { ChatSessionController, SessionStore, VirtualFs } from "sessionlog";

const DELTAS = 2_000;
const PIECE = "twenty bytes, words ";

const bare = {
  provider: "bench", model: "bare", target: "openai-chat",
  async *stream() {
    for (let n = 0; n < DELTAS; n++) yield { type: "text", text: PIECE };
    yield { type: "finish", reason: "stop" };
  },
};

async function pushes() {
  const log = [];
  let text = "";
  for await (const chunk of bare.stream()) {
    log.push({ seq: log.length, at: Date.now(), ...chunk });
    if (chunk.type === "text") text += chunk.text;
  }
  return text.length;
}

async function controllerWith(scrubbers) {
  const store = await SessionStore.open({ scrubbers });
  const fs = await VirtualFs.open();
  return () => {
    const controller = new ChatSessionController({ store, fs, outputFn: () => {} });
    return controller.executeTask("go", { model: "bench/bare", tools: [] }, { adapter: bare }).then(() => controller.session.dispose());
  };
}

export default async function (bench) {
  await init();
  const scrubbed = await controllerWith([{ builtin: "secrets" }]);
  const plain = await controllerWith([]);
  return bench.compare(`one delta of ${PIECE.length} bytes (limit 25 µs)`, { "plain array pushes": pushes, "controller, log": plain, "controller, log and scrubber": scrubbed }, { ops: DELTAS, rounds: 9, warmup: 2 });
}
