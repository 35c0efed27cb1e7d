// The facade that an application drives: one call per task, honest results, nothing lost when it stops.
import type {
  Cost, ControllerOptions, ExecutionResult, JsonValue, LlmAdapter, Message, RunConfig, RunFs, RunResult, SessionEvent, SessionState,
  ToolDefinition, UndoJournal, UndoReport, VirtualFs,
} from "../types/index.js";
import { createLlmAdapter, type AdapterInside } from "./adapters/index.js";
import { Driver, type CallScope, type Finished } from "./driver.js";
import { SessionLogError, toError } from "./errors.js";
import { RawRun } from "./glue.js";
import { insideSession, insideStore, type SessionInside, type StoreInside } from "./internal.js";
import { addCents, showCost, sumCost } from "./money.js";
import type { RunFs as RunFiles, VirtualFs as Files } from "./vfs.js";
import { Queue, type Draft } from "./queue.js";
import { Rewinder } from "./rewind.js";
import { call } from "./runtime.js";
import { AuditLogger, RunStore, type KeptRun } from "./runs.js";
import { localSummary, modelSummary } from "./summary.js";
import { checkTools, fileTools } from "./tools.js";
import { hearVerdicts, sendVerdict, type Verdict } from "./verdicts.js";

type Session = ControllerOptions["session"] & object;
type Status = "idle" | "running" | "waiting-approval" | "stopping";

interface TaskOptions {
  adapter?: LlmAdapter;
  audit?: AuditLogger;
  undoJournal?: UndoJournal;
  initialObservations?: JsonValue[];
  resumedFrom?: string;
}

/** A run while it lasts. */
interface Live {
  driver: Driver | null;
  done: Promise<unknown>;
  stopping: boolean;
  waiting: boolean;
  /** Stops listening to other tabs. */
  deafen: (() => void) | null;
  /** A stop that came before the driver stood. */
  cancelled: { reason?: string; disposed?: boolean } | null;
}

/** One run per session, whoever drives it. */
const running = new WeakMap<object, Live>();

export class ChatSessionController {
  readonly session: Session;
  readonly sessionState: SessionState;
  #options: ControllerOptions;
  #session: SessionInside;
  #store: StoreInside;
  #runs: RunStore;
  #queue: Queue;
  #endings: Array<() => void> = [];
  #hidden = new WeakSet<LlmAdapter>();

  constructor(options: ControllerOptions) {
    const { store, fs, outputFn, sessionState, onEvent, root } = (options ?? {}) as ControllerOptions;
    if (typeof outputFn !== "function" || fs === undefined || store === undefined) throw invalid("a controller needs a store, files and outputFn");
    this.#options = options;
    const cwd = root === undefined ? {} : { meta: { cwd: root } };
    this.session = options.session ?? store.create(undefined, cwd);
    this.sessionState = sessionState ?? { sessionCostCents: 0, observations: [], compactionCount: 0, targetedFiles: new Set() };
    this.#session = insideSession(this.session);
    this.#store = insideStore(store);
    this.#runs = store.runs as RunStore;
    this.#queue = new Queue(this.session, () => this.#store.newId());
    if (onEvent !== undefined) this.#endings.push(this.session.on("event", onEvent));
    const teardown = () => this.#disposed();
    this.#session.teardown.add(teardown);
    this.#endings.push(() => this.#session.teardown.delete(teardown), () => this.#queue.dispose());
  }

  get status(): Status {
    const live = running.get(this.session);
    if (live === undefined) return "idle";
    return live.stopping ? "stopping" : live.waiting ? "waiting-approval" : "running";
  }

  // -------------------------------------------------------------------- runs

  async executeTask(task: string, config: RunConfig, options: TaskOptions = {}): Promise<ExecutionResult> {
    if (typeof task !== "string") throw invalid("a task is text");
    return this.#execute({ task, config, options, resume: false });
  }

  /** Goes on with a turn that was left open, or with what the last turn left undone. */
  async resumeTurn(config: RunConfig, options: { adapter?: LlmAdapter } = {}): Promise<ExecutionResult> {
    return this.#execute({ task: this.#lastTask(), config, options, resume: true });
  }

  #execute(work: Work): Promise<ExecutionResult> {
    if (running.has(this.session)) return Promise.reject(new SessionLogError("busy", "a task is already running in this session", { id: this.session.id }));
    let over: () => void = () => {};
    // It stands before anything happens: a listener may dispose of the session at the first event.
    const done = new Promise<void>((resolve) => (over = resolve));
    const live: Live = { driver: null, done, stopping: false, waiting: false, deafen: null, cancelled: null };
    running.set(this.session, live);
    return this.#guarded(work, live).finally(() => {
      running.delete(this.session);
      over();
    });
  }

  async #guarded(work: Work, live: Live): Promise<ExecutionResult> {
    const { config, options } = work;
    const tools = config.tools ?? fileTools();
    checkTools(tools);
    const whole = this.#session.whole();
    if (whole !== null) await whole;
    const turn = this.#turnOf(work);
    const runId = this.#store.newId();
    const warnings: string[] = [];
    const warn = (message: string) => void warnings.push(message);

    const audit = options.audit ?? this.#runs.auditOf(runId);
    const files = filesOf(options.undoJournal, this.#options.fs, runId);
    if (options.undoJournal === undefined) audit.addSink(files.journal);
    let adapter: LlmAdapter;
    try {
      adapter = options.adapter ?? adapterOf(config);
      call(() => new RawRun(this.#configText(work, turn, adapter, tools)).free());
    } catch (thrown) {
      await files.end().catch(() => {});
      throw toError(thrown, "invalid_argument");
    }
    const before = this.#spent();
    const run: KeptRun = {
      runId, sessionId: this.session.id, task: work.task, status: "running", costCents: 0, startedAt: this.#store.now(), endedAt: null,
      hasUndo: false, fromSeq: this.session.seq, ...(options.resumedFrom === undefined ? {} : { resumedFrom: options.resumedFrom }),
    };
    const finished = await this.#drive(work, { live, turn, adapter, tools, files, audit, warn, before });
    const cost = this.#costSince(before);
    const result: RunResult = {
      runId, status: finished.status as RunResult["status"], finalAnswer: finished.answer === null ? null : { content: finished.answer },
      errorMessage: finished.error?.message ?? null, cost, costCents: cost.cents ?? 0, steps: finished.steps,
    };
    await this.#persist({ ...run, status: result.status, costCents: result.costCents }, audit, options.undoJournal ?? files.journal, files, warn);
    this.#output(result.finalAnswer?.content ?? result.errorMessage ?? `[${result.status}]`, warn);
    this.sessionState.sessionCostCents = addCents(this.sessionState.sessionCostCents, result.costCents);
    this.sessionState.observations.push({ task: work.task, result, costCents: result.costCents });
    return { runResult: result, costCents: result.costCents, observationsUpdated: true, warnings };
  }

  async #drive(work: Work, run: RunParts): Promise<Finished> {
    const { live, turn, adapter, tools, files, audit, warn, before } = run;
    const { config } = work;
    const unregister = this.#hideSecrets(adapter, work.options.adapter !== undefined);
    const stop = () => this.cancel(typeof config.signal?.reason === "string" ? config.signal.reason : undefined);
    const flushFiles = () => this.#options.fs.flush();
    this.#session.companions.add(flushFiles);
    try {
      audit.record({ type: "run/started", data: { task: work.task, ...(work.options.resumedFrom === undefined ? {} : { resumedFrom: work.options.resumedFrom }) } });
      const text = this.#configText(work, turn, adapter, tools);
      const raw = call(() => new RawRun(text));
      const first = turn.events === null ? undefined : call(() => raw.recover(turn.events as string));
      let steps = this.session.usage().steps;
      const driver = new Driver(
        {
          session: this.session, adapter, config, tools, fs: files as unknown as RunFs, audit: (event) => audit.record(event), warn,
          append: (type, data) => this.#session.append(type, data, { repair: true }),
          checkpoint: () => this.#session.checkpoint(),
          storedForm: (value) => this.#options.store.storedForm(value),
          openCall: (callId) => openCall(files, callId),
          resolve: (callId, verdict, reason) => this.resolveApproval(callId, verdict, reason),
          waiting: (any) => this.#waits(live, any),
          spent: () => {
            const now = this.session.usage();
            const lastStep = now.steps > steps ? now.promptTokens - before.promptTokens : 0;
            steps = now.steps;
            before.promptTokens = now.promptTokens;
            // A provider that does not say how long the prompt was: estimated from what is known.
            const promptTokens = lastStep > 0 ? lastStep : call(() => this.#session.log.raw.tokens());
            return { spent: (BigInt(now.cost.picodollars ?? "0") - before.pico).toString(), promptTokens };
          },
          loadBlobs: () => this.#session.loadBlobs(),
          summarize: async (messages, signal) => {
            const summarize = config.compaction?.summarize ?? localSummary;
            if (summarize !== "model") return summarize(messages);
            const { summary, usage } = await modelSummary(adapter, messages, signal);
            // No step of the turn, but it has its price: counted under a number that no step has.
            if (usage !== null) this.#session.append("usage", { turn: turn.number, step: -this.session.seq, usage: { provider: adapter.provider, model: adapter.model, ...usage } });
            const { steps: counted, promptTokens } = this.session.usage();
            steps = counted;
            before.promptTokens = promptTokens;
            return summary;
          },
        },
        raw,
      );
      live.driver = driver;
      if (live.cancelled !== null) driver.post({ type: "cancel", ...live.cancelled });
      config.signal?.addEventListener("abort", stop, { once: true });
      if (config.signal?.aborted === true) stop();
      const finished = await driver.run(first);
      await this.session.flush().catch((thrown: unknown) => warn(`the end of the run is not stored yet: ${toError(thrown).message}`));
      return this.#scrubbed(finished);
    } catch (thrown) {
      const { code, message } = toError(thrown, "unavailable");
      return this.#scrubbed({ status: "failed", answer: null, error: { code, message }, steps: 0 });
    } finally {
      live.driver = null;
      this.#waits(live, false);
      config.signal?.removeEventListener("abort", stop);
      this.#session.companions.delete(flushFiles);
      unregister();
    }
  }

  /** What is told is what stands in the log; done while the adapter's keys are still known. */
  #scrubbed(finished: Finished): Finished {
    const scrub = (text: string) => this.#options.store.storedForm(text) as string;
    const { answer, error } = finished;
    return { ...finished, answer: answer === null ? null : scrub(answer), error: error === null ? null : { ...error, message: scrub(error.message) } };
  }

  /** Keys are found by the scrubbers for as long as the adapter lives: a caller's own as long as this controller, ours for one run. */
  #hideSecrets(adapter: LlmAdapter, given: boolean): () => void {
    const values = ((adapter as LlmAdapter & AdapterInside).secrets?.() ?? []).filter((value) => value.length >= 8);
    if (values.length === 0 || this.#hidden.has(adapter)) return () => {};
    const end = this.#options.store.registerScrubber({ values, name: "provider-key" });
    if (!given) return end;
    this.#hidden.add(adapter);
    this.#endings.push(end);
    return () => {};
  }

  /** A store that fails costs a warning, never the result. */
  async #persist(run: KeptRun, audit: AuditLogger, journal: UndoJournal, files: RunFiles, warn: (message: string) => void): Promise<void> {
    const attempt = async (what: string, work: () => Promise<unknown>) => {
      try {
        await work();
      } catch (thrown) {
        warn(`${what} could not be stored: ${toError(thrown).message}`);
      }
    };
    audit.record({ type: "run/ended", data: { status: run.status, costCents: run.costCents } });
    const changed = journal.hasEntries || files.journal.hasEntries;
    const { barriers } = files.journal;
    if (barriers.length > 0) warn(`what these held before was over the limit; undo cannot take it back: ${barriers.slice(0, 10).join(", ")}${barriers.length > 10 ? " …" : ""}`);
    await attempt("the journal of the run", () => files.end());
    if (changed) await attempt("the files of the run", () => this.#options.fs.flush());
    await attempt("the audit of the run", () => this.#runs.save({ ...run, endedAt: this.#store.now(), hasUndo: changed }, audit));
  }

  #output(text: string, warn: (message: string) => void): void {
    try {
      this.#options.outputFn(text);
    } catch (thrown) {
      warn(`outputFn failed: ${toError(thrown).message}`);
    }
  }

  #configText({ task, config, options, resume }: Work, turn: TurnPlace, adapter: LlmAdapter, tools: readonly ToolDefinition[]): string {
    const { compaction } = config;
    return JSON.stringify({
      turn: turn.number,
      trigger: { kind: resume ? "continuation" : "message" },
      context: (options.initialObservations ?? []).map((seen) => ({ text: typeof seen === "string" ? seen : JSON.stringify(seen), source: "observation" })),
      ...(resume ? {} : { user: { text: task } }),
      provider: adapter.provider, model: adapter.model, api: adapter.target,
      ...(config.maxSteps === undefined ? {} : { maxSteps: config.maxSteps }),
      ...(config.maxCostUsd === undefined ? {} : { budget: String(config.maxCostUsd) }),
      tools: tools.map(({ name, parallel, mutating, idempotent, approval }) => ({ name, parallel, mutating, idempotent, approval })),
      patterns: turn.patterns,
      ...(compaction?.promptTokens === undefined ? {} : { compactAt: compaction.promptTokens }),
    });
  }

  // ------------------------------------------------------------- where turns stand

  #turnOf({ resume }: Work): TurnPlace {
    let number = 0;
    let open: number | null = null;
    let unfinished = false;
    let patterns: string[] = [];
    for (const event of this.#session.eventsOf("turn/start", "turn/end", "policy/updated")) {
      switch (event.type) {
        case "turn/start": number = Math.max(number, event.data.turn); open = event.seq; break;
        case "turn/end": open = null; unfinished = !["completed", "empty"].includes(event.data.reason.kind); break;
        case "policy/updated": patterns = event.data.patterns; break;
      }
    }
    if (open !== null && resume) return { number, events: JSON.stringify(this.session.slice(open)), patterns };
    if (open !== null) throw new SessionLogError("open_turn", "the last turn is still open: resumeTurn goes on with it", { turn: number });
    if (resume && !unfinished) throw invalid("there is no turn to go on with");
    return { number: number + 1, events: null, patterns };
  }

  #lastTask(): string {
    for (let seq = this.session.seq - 1; seq >= 0; seq--) {
      const event = this.session.event(seq);
      if (event?.type === "user/message") return event.data.text ?? "";
    }
    return "";
  }

  // ----------------------------------------------------------------- from outside

  /** Steers the running turn, or is kept as a draft while idle. */
  steer(text: string): void {
    if (typeof text !== "string" || text.trim() === "") throw invalid("what is said must not be blank");
    const driver = running.get(this.session)?.driver;
    if (driver === undefined || driver === null) this.#queue.add(text);
    else driver.post({ type: "steer", id: this.#store.newId(), text });
  }

  /** What was said and never taken up, the oldest first. They are never sent by themselves. */
  drafts(): Draft[] {
    return this.#queue.drafts();
  }

  dropDraft(id: string): void {
    this.#queue.drop(id);
  }

  cancel(reason?: string): void {
    this.#cancel(reason === undefined ? {} : { reason });
  }

  #cancel(how: { reason?: string; disposed?: boolean }): void {
    const live = running.get(this.session);
    if (live === undefined || live.stopping) return;
    live.stopping = true;
    if (live.driver === null) live.cancelled = how;
    else live.driver.post({ type: "cancel", ...how });
  }

  /** While a verdict is awaited, those of tabs that follow this session count too. */
  #waits(live: Live, any: boolean): void {
    if (live.waiting === any) return;
    live.waiting = any;
    live.deafen?.();
    live.deafen = any ? hearVerdicts(this.#store, this.session.id, (verdict) => this.#hear(verdict)) : null;
  }

  #hear({ callId, verdict, reason }: Verdict): void {
    try {
      this.resolveApproval(callId, verdict, reason);
    } catch {
      // Another tab may speak of what is settled long since.
    }
  }

  resolveApproval(callId: string, verdict: "approved" | "denied", reason?: string): void {
    if (verdict !== "approved" && verdict !== "denied") throw invalid("a verdict is approved or denied");
    let asked = false;
    for (let seq = this.session.seq - 1; seq >= 0; seq--) {
      const event = this.session.event(seq);
      if (event?.type === "turn/start" || event?.type === "turn/end") break;
      // One verdict settles it; a second one has nothing to settle.
      if (event?.type === "approval/resolved" && event.data.callId === callId) return;
      asked = event?.type === "approval/requested" && event.data.callId === callId;
      if (asked) break;
    }
    if (!asked) throw new SessionLogError("not_found", "no call of that id waits for a verdict", { callId: String(callId).slice(0, 80) });
    if (this.session.readOnly) {
      const sent = sendVerdict(this.#store, this.session.id, { callId, verdict, ...(reason === undefined ? {} : { reason }) });
      if (sent) return;
    }
    this.#session.append("approval/resolved", { callId, verdict, ...(reason === undefined ? {} : { reason }) });
  }

  // ------------------------------------------------------------------------ undo

  async undoLastRun(options: { force?: boolean; skip?: boolean } = {}): Promise<boolean> {
    return this.#reported("undo", () => this.#rewinder().undo(options));
  }

  async redoLastUndo(): Promise<boolean> {
    return this.#reported("redo", () => this.#rewinder().redo());
  }

  async rewind(toSeq: number, options: { files?: boolean; conversation?: boolean; force?: boolean; preview?: boolean } = {}): Promise<UndoReport> {
    if (options.preview !== true) this.#checkIdle();
    return this.#rewinder().rewind(toSeq, options);
  }

  #rewinder(): Rewinder {
    const append = (type: string, data: unknown) => void this.#session.append(type, data);
    return new Rewinder(this.session, this.#options.fs as unknown as Files, this.#runs, append, (message) => this.#store.warn("undo", message));
  }

  #checkIdle(): void {
    if (running.has(this.session)) throw new SessionLogError("busy", "a task is running: stop it first", { id: this.session.id });
  }

  /** Every way this can fail is a message and `false`. */
  async #reported(what: string, work: () => Promise<UndoReport | null>): Promise<boolean> {
    const say = (text: string) => this.#output(text, (message) => this.#store.warn("output", message));
    try {
      this.#checkIdle();
      const report = await work();
      if (report === null) {
        say(`There is nothing to ${what}.`);
        return false;
      }
      if (report.ok) {
        say(`${what === "undo" ? "Undone" : "Redone"}: ${report.restored.length} restored, ${report.deleted.length} deleted.`);
        return true;
      }
      for (const { path, reason } of report.conflicts) say(`Cannot ${what} ${path}: ${reason}`);
      for (const { path, message } of report.errors) say(`Cannot ${what}${path ? ` ${path}` : ""}: ${message}`);
      return false;
    } catch (thrown) {
      say(`Cannot ${what}: ${toError(thrown).message}`);
      return false;
    }
  }

  // ------------------------------------------------------------------------ cost

  getSessionCost(): Cost {
    return this.session.usage().cost;
  }

  getSessionCostDisplay(): string {
    return showCost(this.getSessionCost());
  }

  #spent(): Spent {
    const { cost, promptTokens, unpricedSteps } = this.session.usage();
    return { pico: BigInt(cost.picodollars ?? "0"), promptTokens, unpriced: unpricedSteps };
  }

  #costSince(before: Spent): Cost {
    const now = this.#spent();
    const grown = now.pico - before.pico;
    return sumCost(grown < 0n ? 0n : grown, now.unpriced === before.unpriced);
  }

  // ------------------------------------------------------------------------- end

  /** The session goes: stop, and wait until the turn has ended. */
  async #disposed(): Promise<void> {
    const live = running.get(this.session);
    this.#cancel({ disposed: true });
    await live?.done;
    this.dispose();
  }

  /** Lets go of the session; it goes on without this controller. */
  dispose(): void {
    for (const end of this.#endings.splice(0)) end();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

interface Work { task: string; config: RunConfig; options: TaskOptions; resume: boolean }
interface TurnPlace { number: number; events: string | null; patterns: string[] }
interface Spent { pico: bigint; promptTokens: number; unpriced: number }
interface RunParts {
  live: Live; turn: TurnPlace; adapter: LlmAdapter; tools: readonly ToolDefinition[]; files: RunFiles; audit: AuditLogger;
  warn: (message: string) => void; before: Spent;
}

function adapterOf({ model, providerOptions }: RunConfig): LlmAdapter {
  const at = typeof model === "string" ? model.indexOf("/") : -1;
  if (at < 1) throw invalid('config.model is "provider/model"');
  const name = model.slice(at + 1);
  return createLlmAdapter(model.slice(0, at), name === "" ? null : name, providerOptions ?? {});
}

/** The file calls of one tool call: a failed one is taken back. */
function openCall(files: RunFiles, callId: string): CallScope {
  return { fs: files.beginCall(callId) as unknown as RunFs, commit: () => files.commitCall(callId), rollback: () => void files.rollbackCall(callId) };
}

/** The run's files: those of a journal that the caller opened, else the run's own. */
function filesOf(given: UndoJournal | undefined, fs: VirtualFs, runId: string): RunFiles {
  const opened = (given as { fs?: RunFiles | null } | undefined)?.fs;
  return opened ?? (fs.beginRun(runId) as unknown as RunFiles);
}

function invalid(message: string): SessionLogError {
  return new SessionLogError("invalid_argument", message);
}

export type { Message, SessionEvent };
