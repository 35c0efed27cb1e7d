import { smoke } from "./smoke.js";

const ready = smoke().catch((error) => `FAIL ${error?.code ?? ""} ${error?.message ?? error}`);
onconnect = (event) => {
  const [port] = event.ports;
  ready.then((found) => port.postMessage(found));
};
