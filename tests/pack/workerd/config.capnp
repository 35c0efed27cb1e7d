using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [
    (name = "worker.mjs", esModule = embed "worker.mjs"),
    (name = "sessionlog_bg.wasm", wasm = embed "sessionlog_bg.wasm"),
  ],
  compatibilityDate = "2026-04-01",
  compatibilityFlags = ["nodejs_compat"],
);
