// What each public method takes, as far as it can be told before the call. What is not here checks for itself: the calls on
// files and streams, where a wrapper would be felt, hand their arguments straight to the module, which looks at them.
import * as adapters from "./adapters/index.js";
import { guard, guarded } from "./arguments.js";
import * as backends from "./backends.js";
import { ChatSessionController } from "./controller.js";
import * as cost from "./cost.js";
import { UndoJournal } from "./journal.js";
import { AuditLogger, RunStore } from "./runs.js";
import * as scrub from "./scrub.js";
import { Session } from "./session.js";
import { SessionStore } from "./store.js";
import * as tools from "./tools.js";
import { FilesFace, VirtualFs } from "./vfs.js";

export const normalizeUsage = guarded(cost.normalizeUsage, "apiShape text, raw any, options options?");
export const usageOfStream = guarded(cost.usageOfStream, "apiShape text, payloads object, options options?");
export const scrubText = guarded(scrub.scrubText, "text text, scrubber callable?");
export const openBackend = guarded(backends.openBackend, "async spec object");
export const fileTools = guarded(tools.fileTools, "options options?");
export const createLlmAdapter = guarded(adapters.createLlmAdapter, "provider text, model any, options options?");

/** Called once, when the package is loaded. */
export function guardAll(): void {
  guard(SessionStore, { open: "async options options?", declareEvent: "type text, options options?" });
  guard(SessionStore.prototype, {
    create: "id id?, options options?",
    prepare: "id id?, options options?",
    enter: "session object",
    announce: "session object",
    get: "id id",
    resume: "async id id, options options?",
    fork: "sourceId id, options options?",
    continueSession: "async id id, options options?",
    read: "async id id, fromSeq number?",
    sessions: "async options options?",
    resolveId: "async idOrPrefix id",
    record: "async id id",
    updateRecord: "async id id, change object",
    archive: "async id id",
    unarchive: "async id id",
    markStopped: "async id id",
    delete: "async id id",
    sweep: "async policy options?",
    registerScrubber: "scrubber callable",
    rescrub: "async scrubber callable",
    on: "event text, listener function",
    exportSession: "async id id, options options?",
    importSession: "async data data, options options?",
  });
  guard(Session.prototype, {
    openStream: "at object",
    event: "seq number",
    slice: "fromSeq number, toSeq number?",
    deriveMessages: "options options?",
    deriveRequest: "options object",
    assertLogInvariant: "outbound object",
    compact: "async summarize function, options options?",
    setTitle: "title text",
    getBlob: "async name text",
    on: "event text, listener function",
    subscribe: "listener function",
  });
  guard(VirtualFs, { open: "async options options?" });
  guard(VirtualFs.prototype, { beginRun: "runId id", setMaxBytes: "limit number?", setMaxImageBytes: "limit number?", journal: "runId text", preview: "options options?", rewind: "async runId text, options options?" });
  guard(FilesFace.prototype, {
    mkdir: "path path, options options?",
    copy: "from path, to path, options options?",
    rm: "path path, options options?",
    symlink: "target path, path path",
    chmod: "path path, mode number",
    utimes: "path path, mtimeMs number",
    walk: "path path?",
    undo: "async options options?",
    redo: "async options options?",
  });
  guard(UndoJournal.prototype, { restore: "async options options?" });
  guard(RunStore.prototype, { listRuns: "async options options?", showRun: "async runId text", undoPath: "runId text" });
  guard(AuditLogger.prototype, { record: "event object", addSink: "sink callable" });
  guard(cost.PriceTable.prototype, { with: "over object", lookup: "provider text?, model text", cost: "record object" });
  guard(ChatSessionController.prototype, {
    executeTask: "async task text, config object, options options?",
    resumeTurn: "async config object, options options?",
    steer: "text text",
    cancel: "reason text?",
    resolveApproval: "callId text, verdict text, reason text?",
    undoLastRun: "async options options?",
    rewind: "async toSeq number, options options?",
  });
}
