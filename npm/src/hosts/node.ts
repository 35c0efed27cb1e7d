// Storage on servers.
export { openFileBackend, type FileBackendOptions } from "./files.js";
export { openSqliteBackend, type SqliteOptions } from "./sqlite.js";
