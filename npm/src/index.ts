// The public surface. One line per part; start-up (`init`, `initSync`) comes from the entries.
export { SessionLogError } from "./errors.js";
export { isJsonValue, version } from "./values.js";
export { SessionStore } from "./store.js";
export { Session } from "./session.js";
export { CostTotal, PriceTable } from "./cost.js";
export { VirtualFs } from "./vfs.js";
export { UndoJournal } from "./journal.js";
export { toJustBash } from "./just-bash.js";
export { checkBackend } from "./check-backend.js";
export { encrypted } from "./encrypted.js";
export { ChatSessionController } from "./controller.js";
export { registerProvider } from "./adapters/index.js";
export { AuditLogger, RunStore } from "./runs.js";
export { ScrubStream } from "./scrub.js";
export { createLlmAdapter, fileTools, normalizeUsage, openBackend, scrubText, usageOfStream } from "./signatures.js";

import { guardAll } from "./signatures.js";

guardAll();
