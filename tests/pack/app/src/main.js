import { smoke } from "./smoke.js";

const failed = (error) => `FAIL ${error?.code ?? ""} ${error?.message ?? error}`;
const later = (ms) => new Promise((_, no) => setTimeout(() => no(new Error("no answer")), ms));

function answer(port) {
  return new Promise((ok, no) => {
    port.onmessage = (message) => ok(message.data);
    port.onerror = (error) => no(new Error(error.message || "worker error"));
  });
}
function dedicated() {
  return answer(new Worker(new URL("./dedicated.js", import.meta.url), { type: "module" }));
}
function shared() {
  const worker = new SharedWorker(new URL("./shared.js", import.meta.url), { type: "module" });
  worker.port.start();
  return answer(worker.port);
}

const result = {};
result.page = await smoke().catch(failed);
result.dedicated = await Promise.race([dedicated(), later(20_000)]).catch(failed);
result.shared = await Promise.race([shared(), later(20_000)]).catch(failed);
globalThis.RESULT = result;
document.title = "done";
