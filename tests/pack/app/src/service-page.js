const registration = await navigator.serviceWorker.register("./service.js", { type: "module" });
const worker = await new Promise((ok) => {
  const tell = () => registration.active && ok(registration.active);
  (registration.installing ?? registration.waiting ?? registration.active).addEventListener("statechange", tell);
  tell();
});
const found = new Promise((ok) => navigator.serviceWorker.addEventListener("message", (event) => ok(event.data)));
navigator.serviceWorker.startMessages();
worker.postMessage("go");
globalThis.RESULT = { service: await found };
document.title = "done";
