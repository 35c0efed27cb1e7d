// Tasks that the host runs itself: the package's controller over the object's own storage, with keys from the environment.
import { ChatSessionController, VirtualFs, fileTools, type KeyValueBackend, type RunConfig, type Session, type SessionEventMap, type SessionStore } from "sessionlog";
import { optionalNumber, optionalText, textOf, type Json } from "./body.js";
import type { Env } from "./env.js";
import { Refusal } from "./refusal.js";

const APPROVALS = ["never", "policy", "always"] as const;
type Approval = (typeof APPROVALS)[number];
/** What a turn needs to be gone on with after the object slept. Keys are not in it. */
interface Kept { model: string; system?: string; maxSteps?: number; maxCostUsd?: string; approval: Approval }

const PROVIDERS: { readonly [name: string]: (env: Env) => { apiKey: string | undefined; baseUrl: string | undefined } } = {
  anthropic: (env) => ({ apiKey: env.ANTHROPIC_API_KEY, baseUrl: env.ANTHROPIC_BASE_URL }),
  gemini: (env) => ({ apiKey: env.GEMINI_API_KEY, baseUrl: env.GEMINI_BASE_URL }),
  "openai-compatible": (env) => ({ apiKey: env.OPENAI_API_KEY, baseUrl: env.OPENAI_BASE_URL }),
};

function isAllowed(model: string, list: string): boolean {
  return list.split(",").map((name) => name.trim()).some((name) => (name.endsWith("*") ? model.startsWith(name.slice(0, -1)) : model === name) && name !== "");
}

/** How a run ended, by the end of its turn. */
function endOf(reason: SessionEventMap["turn/end"]["reason"]): [status: string, error: string | null] {
  switch (reason.kind) {
    case "completed": case "empty": case "max-tokens": return ["completed", null];
    case "max-steps": case "budget-reached": return [reason.kind, null];
    case "cancelled": case "aborted": case "disposed": case "rejected": return ["cancelled", null];
    case "error": return ["failed", reason.message];
    case "interrupted": return ["failed", "the host was stopped while it ran the task"];
  }
}

/** A row of the database holds at most 2 MB, and so much is nobody's instruction. */
const MOST_SYSTEM = 1_000_000;

export interface Opened { store: SessionStore; session: Session }

export class Tasks {
  #env: Env;
  #sql: SqlStorage;
  #backend: KeyValueBackend;
  /** The object works on a session; tells when it has nothing to do any more. */
  readonly #onIdle: () => void;
  #files: Promise<VirtualFs> | null = null;
  #controller: ChatSessionController | null = null;
  #said: string[] = [];
  #running: Promise<unknown> | null = null;

  constructor(env: Env, sql: SqlStorage, backend: KeyValueBackend, onIdle: () => void) {
    this.#env = env;
    this.#sql = sql;
    this.#backend = backend;
    this.#onIdle = onIdle;
    sql.exec("CREATE TABLE IF NOT EXISTS task (one INTEGER PRIMARY KEY CHECK (one = 1), config TEXT NOT NULL)");
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }

  /** Its configuration is kept from the start of a turn to its end: one that is there belongs to a turn that is open. */
  #kept(): Kept | null {
    const row = this.#sql.exec<{ config: string }>("SELECT config FROM task").toArray()[0];
    return row === undefined ? null : (JSON.parse(row.config) as Kept);
  }

  /** The log's last turn waits for a verdict and may go on when it comes. */
  waits(session: Session): boolean {
    for (let seq = session.seq - 1; seq >= 0; seq--) {
      const event = session.event(seq);
      if (event?.type === "approval/requested") return true;
      if (event?.type === "turn/start" || event?.type === "turn/end" || event?.type === "approval/resolved") return false;
    }
    return false;
  }

  /** A turn that was open when the object was last in memory is left open when it can be gone on with. */
  get recover(): "ask" | "close" {
    return this.#kept() === null ? "close" : "ask";
  }

  /** The turn that it was for cannot be gone on with. */
  forget(): void {
    this.#sql.exec("DELETE FROM task");
  }

  files(): Promise<VirtualFs> {
    return (this.#files ??= VirtualFs.open({ storage: { kind: "custom", backend: this.#backend } }).catch((thrown: unknown) => {
      this.#files = null;
      throw thrown;
    }));
  }

  async #control({ store, session }: Opened): Promise<ChatSessionController> {
    if (this.#controller?.session !== session) {
      this.#controller?.dispose();
      this.#controller = new ChatSessionController({ store, session, fs: await this.files(), outputFn: (text) => void this.#said.push(text) });
    }
    return this.#controller;
  }

  /** Lets go of session and files: somebody else writes them from now on. */
  async drop(): Promise<void> {
    this.#controller?.dispose();
    this.#controller = null;
    const files = this.#files;
    this.#files = null;
    await (await files?.catch(() => null))?.dispose();
  }

  #config({ model, system, maxSteps, maxCostUsd, approval }: Kept): RunConfig {
    const { MODELS = "" } = this.#env;
    if (!isAllowed(model, MODELS)) throw new Refusal(403, "forbidden", `this host runs no ${model.slice(0, 80)}: it is not in MODELS`);
    const provider = model.slice(0, Math.max(0, model.indexOf("/")));
    const { apiKey, baseUrl } = PROVIDERS[provider]?.(this.#env) ?? { apiKey: undefined, baseUrl: undefined };
    if (provider in PROVIDERS && (apiKey ?? "") === "") throw new Refusal(503, "unavailable", `this host has no key for ${provider}`);
    return {
      model, tools: fileTools({ approval }),
      ...(system === undefined ? {} : { system }), ...(maxSteps === undefined ? {} : { maxSteps }), ...(maxCostUsd === undefined ? {} : { maxCostUsd }),
      providerOptions: { ...(apiKey === undefined ? {} : { apiKey }), ...(baseUrl === undefined || baseUrl === "" ? {} : { baseUrl }) },
    };
  }

  /** Starts a task; its result is there when it ended. */
  async start(opened: Opened, json: Json): Promise<{ from: number; done: Promise<Json> }> {
    if (this.#running !== null) throw new Refusal(409, "busy", "a task is running in this session");
    const task = textOf(json, "task");
    const approval = (optionalText(json, "approval") ?? "policy") as Approval;
    if (!APPROVALS.includes(approval)) throw new Refusal(400, "invalid_argument", "approval must be never, policy or always");
    const [system, maxSteps, maxCostUsd] = [optionalText(json, "system"), optionalNumber(json, "maxSteps"), optionalText(json, "maxCostUsd")];
    if (system !== undefined && system.length > MOST_SYSTEM) throw new Refusal(413, "quota", `system has at most ${MOST_SYSTEM} characters`);
    const kept: Kept = {
      model: textOf(json, "model"), approval,
      ...(system === undefined ? {} : { system }), ...(maxSteps === undefined ? {} : { maxSteps }), ...(maxCostUsd === undefined ? {} : { maxCostUsd }),
    };
    const config = this.#config(kept);
    const controller = await this.#control(opened);
    const from = opened.session.seq;
    const done = this.#drive(opened.session, kept, () => controller.executeTask(task, config));
    return { from, done };
  }

  /** What became of the turn that begins at `first`, for a run whose answer was lost with the host that ran it; one that goes on is waited for. */
  async outcome(session: Session, first: number): Promise<Json> {
    const known = this.#outcome(session, first);
    if (known["status"] !== "suspended" || this.#running === null) return known;
    await this.#running;
    return this.#outcome(session, first);
  }

  #outcome(session: Session, first: number): Json {
    let [steps, answer, status, error]: [number, string | null, string, string | null] = [0, null, "suspended", null];
    for (let seq = first + 1; seq < session.seq && status === "suspended"; seq++) {
      const event = session.event(seq);
      if (event?.type === "turn/start") break;
      if (event?.type === "step/end") steps++;
      if (event?.type === "assistant/message") answer = event.data.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
      if (event?.type === "turn/end") [status, error] = endOf(event.data.reason);
    }
    return { runId: null, status, answer: status === "completed" ? answer : null, error, steps, costUsd: null, seq: session.seq, warnings: ["the answer was lost with the host that ran it: this is what the log says"] };
  }

  #drive(session: Session, kept: Kept, work: () => ReturnType<ChatSessionController["executeTask"]>): Promise<Json> {
    this.#sql.exec("INSERT INTO task (one, config) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET config = excluded.config", JSON.stringify(kept));
    const done = work().then(({ runResult, warnings }): Json => {
      const { runId, status, finalAnswer, errorMessage, steps, cost } = runResult;
      return { runId, status, answer: finalAnswer?.content ?? null, error: errorMessage, steps, costUsd: cost.usd, seq: session.seq, warnings };
    });
    const running = done.catch(() => {}).finally(() => {
      this.#running = null;
      this.#sql.exec("DELETE FROM task");
      this.#said = [];
      this.#onIdle();
    });
    this.#running = running;
    return done;
  }

  /** Settles a question, also one that was asked before the object slept: the turn then goes on. */
  async resolve(opened: Opened, callId: string, verdict: "approved" | "denied", reason: string | undefined): Promise<void> {
    const controller = await this.#control(opened);
    controller.resolveApproval(callId, verdict, reason);
    await opened.session.flush();
    const kept = this.#kept();
    if (this.#running === null && kept !== null && !opened.session.readOnly) {
      const config = this.#config(kept);
      this.#drive(opened.session, kept, () => controller.resumeTurn(config)).catch((thrown: unknown) => console.error(thrown));
    }
  }

  async steer(opened: Opened, text: string): Promise<void> {
    (await this.#control(opened)).steer(text);
    await opened.session.flush();
  }

  async cancel(opened: Opened, reason: string | undefined): Promise<boolean> {
    const wasRunning = this.#running !== null;
    (await this.#control(opened)).cancel(reason);
    await this.#running;
    return wasRunning;
  }

  async back(opened: Opened, what: "undo" | "redo", json: Json): Promise<Json> {
    const controller = await this.#control(opened);
    this.#said = [];
    const ok = what === "undo" ? await controller.undoLastRun({ force: json["force"] === true, skip: json["skip"] === true }) : await controller.redoLastUndo();
    await opened.session.flush();
    return { ok, messages: this.#said.splice(0) };
  }
}
