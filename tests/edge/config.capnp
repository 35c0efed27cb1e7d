using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "do-disk", disk = (path = "set on the command line", writable = true)),
    # Stands in for the internet: the providers of the tests are on this machine.
    (name = "internet", network = (allow = ["private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [
    (name = "worker.mjs", esModule = embed "worker.mjs"),
    (name = "sessionlog_bg.wasm", wasm = embed "sessionlog_bg.wasm"),
  ],
  compatibilityDate = "2026-04-01",
  durableObjectNamespaces = [
    (className = "SessionObject", uniqueKey = "sessions", enableSql = true),
    (className = "IndexObject", uniqueKey = "indexes", enableSql = true),
  ],
  durableObjectStorage = (localDisk = "do-disk"),
  bindings = [
    (name = "SESSIONS", durableObjectNamespace = "SessionObject"),
    (name = "INDEXES", durableObjectNamespace = "IndexObject"),
#BINDINGS
  ],
);
