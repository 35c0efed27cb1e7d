import { smoke } from "./smoke.js";

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("message", (event) => {
  smoke().then((found) => event.source.postMessage(found), (error) => event.source.postMessage(`FAIL ${error?.message ?? error}`));
});
