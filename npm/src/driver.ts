// Carries out what the agent loop (src/core/run) decides: appends, checkpoints, requests, tools, questions. It decides
// nothing itself; whatever happens goes back into the loop as an input, one at a time and in order.
import type {
  ContentPart, DerivedRequest, EventStream, JsonValue, LlmAdapter, LlmChunk, Message, RunConfig, RunFs, Session, SessionEvent, ToolDefinition,
} from "../types/index.js";
import { reasonOf } from "./adapters/failure.js";
import type { StreamContext } from "./adapters/index.js";
import { SessionLogError, toError } from "./errors.js";
import type { RawRun } from "./glue.js";
import { call } from "./runtime.js";
import { argumentFault } from "./schema.js";
import { contentOf } from "./tools.js";

interface Ready { id: string; name: string; args: { [key: string]: JsonValue } }
interface Fault { code: string; message: string }

type Effect =
  | { type: "append"; event: string; data: unknown }
  | { type: "checkpoint" | "compact" | "settle" | "abort" }
  | { type: "derive" | "send"; step: number }
  | { type: "validate" | "run"; calls: Ready[] }
  | { type: "ask"; call: Ready; asked: boolean }
  | ({ type: "finish" } & Finished);

export interface Finished { status: string; answer: string | null; error: Fault | null; steps: number }

type Input =
  | { type: "start" | "checkpoint-done" | "derived" | "stream-ended" }
  | ({ type: "checkpoint-failed" | "derive-failed" } & Fault)
  | ({ type: "append-failed"; lost: Array<{ event: string; id?: string }> } & Fault)
  | ({ type: "stream-failed"; overflow: boolean } & Fault)
  | { type: "compacted"; done: boolean }
  | { type: "validated"; faults: Array<{ callId: string; message: string }> }
  | { type: "verdict"; callId: string; approved: boolean; reason?: string }
  | { type: "tool-done"; callId: string; content: string | ContentPart[]; error?: Fault; synthetic?: boolean }
  | { type: "settled"; spent: string; promptTokens: number }
  | { type: "steer"; id: string; text: string }
  | { type: "cancel"; reason?: string; disposed?: boolean };

/** The file calls of one tool call, which can be taken back when it fails. */
export interface CallScope { fs: RunFs; commit(): void; rollback(): void }

/** What a turn is driven with. */
export interface Turn {
  session: Session;
  adapter: LlmAdapter;
  config: RunConfig;
  tools: readonly ToolDefinition[];
  append(type: string, data: unknown): SessionEvent;
  checkpoint(): Promise<void>;
  /** The value as it would stand in the log. */
  storedForm(value: JsonValue): JsonValue;
  fs: RunFs;
  openCall(callId: string): CallScope;
  audit(event: { type: string; callId?: string; tool?: string; data?: JsonValue }): void;
  warn(message: string): void;
  /** Puts a verdict into the log. */
  resolve(callId: string, verdict: "approved" | "denied", reason?: string): void;
  waiting(any: boolean): void;
  /** What the run has cost so far, in picodollars, and the prompt tokens of the last step. */
  spent(): { spent: string; promptTokens: number };
  /** Brings media that the log names by blob; null when there is nothing to wait for. */
  loadBlobs(): Promise<void> | null;
  summarize(messages: Message[], signal: AbortSignal): Promise<string | null> | string | null;
}

/** How long a tool that was told to stop may take to do so. */
const GRACE_MS = 250;

const MARKER = /\[REDACTED:[^\]\s]{1,64}\]/g;

export class Driver {
  #turn: Turn;
  #raw: RawRun;
  #tools = new Map<string, ToolDefinition>();
  #inputs: Input[] = [];
  #wake: (() => void) | null = null;
  #abort = new AbortController();
  #finished: Finished | null = null;
  #request: DerivedRequest | null = null;
  #live: LiveAnswer | null = null;
  #waiting = new Map<string, Ready>();
  #unlisten: (() => void) | null = null;

  constructor(turn: Turn, raw: RawRun) {
    this.#turn = turn;
    this.#raw = raw;
    for (const tool of turn.tools) this.#tools.set(tool.name, tool);
  }

  /** Something has happened. */
  post(input: Input): void {
    this.#inputs.push(input);
    this.#wake?.();
  }

  /** Drives the turn to its end. `first` are the effects of a recovered turn. */
  async run(first?: string): Promise<Finished> {
    this.#unlisten = this.#turn.session.on("event", (event) => this.#see(event));
    try {
      if (first === undefined) this.#inputs.unshift({ type: "start" });
      else this.#perform(JSON.parse(first) as Effect[]);
      for (;;) {
        for (let input = this.#inputs.shift(); input !== undefined && this.#finished === null; input = this.#inputs.shift()) {
          const text = JSON.stringify(input);
          this.#live?.sync();
          this.#perform(JSON.parse(call(() => this.#raw.handle(text))) as Effect[]);
        }
        if (this.#finished !== null) return this.#finished;
        await new Promise<void>((resolve) => (this.#wake = resolve));
        this.#wake = null;
      }
    } finally {
      this.#unlisten();
      if (!this.#abort.signal.aborted && this.#live !== null) this.#abort.abort();
      call(() => this.#raw.free());
    }
  }

  #perform(effects: Effect[]): void {
    for (const [at, effect] of effects.entries()) {
      if (effect.type !== "append") {
        this.#start(effect);
        continue;
      }
      try {
        this.#append(effect.event, effect.data);
      } catch (thrown) {
        // What comes after it in this answer of the loop rests on it.
        this.#inputs.unshift({ type: "append-failed", ...faultOf(thrown), lost: lostOf(effects.slice(at)) });
        return;
      }
    }
  }

  #append(type: string, data: unknown): void {
    // A question is withdrawn unless its verdict came first: that one stands.
    if (type === "approval/resolved" && !this.#waiting.has((data as { callId: string }).callId)) return;
    try {
      this.#turn.append(type, data);
    } catch (thrown) {
      if (type !== "tool/result") throw thrown;
      // A result that cannot be stored costs its content, not the conversation.
      const { code, message } = faultOf(thrown);
      const { turn, step, id } = data as { turn: number; step: number; id: string };
      const content = "The tool's result could not be stored.";
      this.#turn.append(type, { turn, step, id, content, isError: true, error: { code, message } });
    }
  }

  #start(effect: Exclude<Effect, { type: "append" }>): void {
    switch (effect.type) {
      case "checkpoint": return this.#answer(this.#turn.checkpoint(), () => ({ type: "checkpoint-done" }), (fault) => ({ type: "checkpoint-failed", ...fault }));
      case "derive": {
        const loading = this.#turn.loadBlobs();
        return loading === null ? this.#derive() : void loading.then(() => this.#derive());
      }
      case "send": return void this.#send();
      case "validate": return this.post({ type: "validated", faults: this.#faults(effect.calls) });
      case "ask": return this.#ask(effect.call, effect.asked);
      case "run": return effect.calls.forEach((ready) => void this.#run(ready));
      case "compact": return this.#compact();
      case "settle": return this.post({ type: "settled", ...this.#turn.spent() });
      case "abort": return this.#stop();
      case "finish": this.#finished = effect;
    }
  }

  #answer<T>(work: Promise<T>, done: (value: T) => Input, failed: (fault: Fault) => Input): void {
    work.then(
      (value) => this.post(done(value)),
      (thrown: unknown) => this.post(failed(faultOf(thrown))),
    );
  }

  // ---------------------------------------------------------------- request

  #derive(): void {
    const { session, adapter, config } = this.#turn;
    try {
      const { target, provider, model } = adapter;
      this.#request = session.deriveRequest({ target, provider, model, ...(config.system === undefined ? {} : { system: config.system }) });
      session.assertLogInvariant(this.#request);
      this.post({ type: "derived" });
    } catch (thrown) {
      this.post({ type: "derive-failed", ...faultOf(thrown) });
    }
  }

  async #send(): Promise<void> {
    const { adapter, session, tools, audit } = this.#turn;
    const { provider, model } = adapter;
    const live = new LiveAnswer(this.#raw, session);
    this.#live = live;
    audit({ type: "request/sent", data: { provider, model, digest: this.#request?.digest ?? "" } });
    try {
      const offered = tools.map(({ name, description, parameters }) => ({ name, description, parameters }));
      const request = { request: this.#request as DerivedRequest, tools: offered, provider, model };
      const context: StreamContext = { signal: this.#abort.signal, used: (usage) => this.#live === live && live.take({ type: "usage", usage }) };
      for await (const chunk of adapter.stream(request, context)) {
        // Stopped: what still comes is nobody's any more.
        if (this.#live !== live) return;
        live.take(chunk);
      }
      if (this.#live !== live) return;
      live.end();
      this.#live = null;
      this.post({ type: "stream-ended" });
    } catch (thrown) {
      if (this.#live !== live) return;
      this.#live = null;
      const error = toError(thrown, "unavailable");
      live.abort();
      const code = reasonOf(error);
      this.post({ type: "stream-failed", code, message: error.message, overflow: code === "context_overflow" });
    }
  }

  /** Fires the signal once; what has arrived of an answer is let through to the log first. */
  #stop(): void {
    const live = this.#live;
    this.#live = null;
    live?.abort();
    if (!this.#abort.signal.aborted) this.#abort.abort(new DOMException("the run was stopped", "AbortError"));
  }

  #compact(): void {
    const { session, summarize, config, warn } = this.#turn;
    const keepTokens = config.compaction?.keepTokens;
    const work = session.compact((messages) => summarize(messages, this.#abort.signal), keepTokens === undefined ? {} : { keepTokens });
    this.#answer(work, (event) => ({ type: "compacted", done: event !== null }), (fault) => {
      if (fault.code !== "empty_history") warn(`the session could not be compacted: ${fault.message}`);
      return { type: "compacted", done: false };
    });
  }

  // ------------------------------------------------------------------ tools

  #faults(calls: Ready[]): Array<{ callId: string; message: string }> {
    const faults: Array<{ callId: string; message: string }> = [];
    for (const { id, name, args } of calls) {
      const tool = this.#tools.get(name);
      if (tool === undefined) continue;
      try {
        const message = argumentFault(tool.parameters, args);
        if (message !== null) faults.push({ callId: id, message });
      } catch (thrown) {
        faults.push({ callId: id, message: `the tool's parameters are not a schema that can be checked (${toError(thrown).message})` });
      }
    }
    return faults;
  }

  async #run({ id, name, args }: Ready): Promise<void> {
    const { audit, session } = this.#turn;
    const tool = this.#tools.get(name) as ToolDefinition;
    const { signal } = this.#abort;
    try {
      if (!(await this.#redactionsAllowed(tool, id, args))) {
        audit({ type: "tool/blocked", callId: id, tool: name });
        const message = "The call was denied and not executed: it would write redacted text.";
        return this.post({ type: "tool-done", callId: id, content: message, error: { code: "denied", message }, synthetic: true });
      }
      const scope = this.#turn.openCall(id);
      audit({ type: "tool/started", callId: id, tool: name });
      const work = Promise.resolve().then(() => tool.run(args, { fs: scope.fs, signal, callId: id, sessionId: session.id }));
      const settled = await Promise.race([work.then((value) => ({ value }), (thrown: unknown) => ({ thrown })), stopped(signal)]);
      this.#settle(scope, id, name, settled);
    } catch (thrown) {
      const fault = faultOf(thrown);
      audit({ type: "tool/failed", callId: id, tool: name, data: { ...fault } });
      this.post({ type: "tool-done", callId: id, content: `Error: ${fault.message}`, error: fault });
    }
  }

  #settle(scope: CallScope, id: string, name: string, settled: { value: unknown } | { thrown: unknown } | null): void {
    const { audit } = this.#turn;
    if (settled !== null && "value" in settled) {
      scope.commit();
      audit({ type: "tool/completed", callId: id, tool: name });
      return this.post({ type: "tool-done", callId: id, content: contentOf(settled.value) });
    }
    scope.rollback();
    if (settled === null) {
      audit({ type: "tool/aborted", callId: id, tool: name });
      const message = "The tool was stopped while it was running; it may or may not have had an effect. Its changes to files were taken back.";
      return this.post({ type: "tool-done", callId: id, content: message, error: { code: "aborted", message }, synthetic: true });
    }
    const fault = faultOf(settled.thrown);
    audit({ type: "tool/failed", callId: id, tool: name, data: { ...fault } });
    this.post({ type: "tool-done", callId: id, content: `Error: ${fault.message}`, error: fault });
  }

  /** A write of a marker that the file does not hold would destroy what was redacted: the host is told first. */
  async #redactionsAllowed(tool: ToolDefinition, callId: string, args: Ready["args"]): Promise<boolean> {
    if (tool.mutating !== true) return true;
    const markers = JSON.stringify(args).match(MARKER);
    if (markers === null) return true;
    const held = this.#heldBy(args["path"]);
    const lost = markers.filter((marker) => !held.includes(marker));
    if (lost.length === 0) return true;
    const { audit, warn, config } = this.#turn;
    audit({ type: "redaction/written", callId, tool: tool.name, data: { markers: lost } });
    warn(`the call ${callId} of ${tool.name} writes ${lost.join(", ")}, which stands for something that was redacted`);
    if (config.approve === undefined) return true;
    return (await config.approve({ callId, name: tool.name, args })) === "approved";
  }

  #heldBy(path: JsonValue | undefined): string {
    if (typeof path !== "string") return "";
    try {
      return this.#turn.fs.readText(path);
    } catch {
      return "";
    }
  }

  // -------------------------------------------------------------- questions

  /** The waiter stands before the request is made, so that no verdict can come too early. */
  #ask(ready: Ready, asked: boolean): void {
    const { id: callId, name, args } = ready;
    const { config, audit, resolve } = this.#turn;
    this.#waiting.set(callId, ready);
    this.#turn.waiting(true);
    try {
      if (!asked) this.#turn.append("approval/requested", { callId, name, args });
    } catch (thrown) {
      this.#waiting.delete(callId);
      return void this.#inputs.unshift({ type: "append-failed", ...faultOf(thrown), lost: [] });
    }
    audit({ type: "approval/requested", callId, tool: name });
    if (config.approve === undefined) return;
    Promise.resolve()
      .then(() => config.approve?.({ callId, name, args }))
      .then(
        (verdict) => this.#waiting.has(callId) && resolve(callId, verdict === "approved" ? "approved" : "denied"),
        (thrown: unknown) => this.#waiting.has(callId) && resolve(callId, "denied", `asking failed: ${toError(thrown).message}`),
      )
      // A verdict that cannot be stored is none; the call goes on waiting for one.
      .catch((thrown: unknown) => this.#turn.warn(`a verdict could not be stored: ${toError(thrown).message}`));
  }

  /** Whoever put it into the log, the first verdict settles the waiter. */
  #see(event: SessionEvent): void {
    if (event.type !== "approval/resolved") return;
    const { callId, verdict, reason } = event.data as { callId: string; verdict: string; reason?: string };
    const ready = this.#waiting.get(callId);
    if (ready === undefined) return;
    this.#waiting.delete(callId);
    this.#turn.waiting(this.#waiting.size > 0);
    this.#turn.audit({ type: "approval/resolved", callId, tool: ready.name, data: { verdict } });
    const same = verdict !== "approved" || this.#isWhatWasAsked(ready);
    this.post({
      type: "verdict", callId, approved: verdict === "approved" && same,
      ...(same ? (reason === undefined ? {} : { reason }) : { reason: "it is not the call that was asked about" }),
    });
  }

  /** A verdict binds to name and arguments as they stand in the log. */
  #isWhatWasAsked({ id, name, args }: Ready): boolean {
    const { session, storedForm } = this.#turn;
    for (let seq = session.seq - 1; seq >= 0; seq--) {
      const event = session.event(seq);
      if (event?.type === "turn/start") return false;
      if (event?.type !== "approval/requested" || event.data.callId !== id) continue;
      return event.data.name === storedForm(name) && JSON.stringify(event.data.args) === JSON.stringify(storedForm(args));
    }
    return false;
  }
}

/** Events that are not in the log, for the loop to end the turn on what is. */
function lostOf(effects: Effect[]): Array<{ event: string; id?: string }> {
  return effects.flatMap((effect) => {
    if (effect.type !== "append") return [];
    const { id } = effect.data as { id?: unknown };
    return [{ event: effect.event, ...(typeof id === "string" ? { id } : {}) }];
  });
}

/** Resolves a little after the signal fired. */
function stopped(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    const later = () => void setTimeout(() => resolve(null), GRACE_MS);
    if (signal.aborted) later();
    else signal.addEventListener("abort", later, { once: true });
  });
}

function faultOf(thrown: unknown): Fault {
  if (thrown instanceof SessionLogError) return { code: reasonOf(thrown), message: thrown.message };
  const { code, message } = (thrown ?? {}) as { code?: unknown; message?: unknown };
  return { code: typeof code === "string" ? code : "error", message: typeof message === "string" && message !== "" ? message : String(thrown) };
}

/** One answer on its way: every piece goes to the loop and, scrubbed, to the log. */
class LiveAnswer {
  #raw: RawRun;
  #session: Session;
  #at: { turn: number; step: number };
  #streams = new Map<string, EventStream>();
  #carry = new Map<string, string>();
  /** The stream that text or reasoning goes to now. */
  #current = "";
  /** Text that the loop has not got yet: it needs it when something happens, not piece by piece. */
  #held = "";

  constructor(raw: RawRun, session: Session) {
    this.#raw = raw;
    this.#session = session;
    const [turn = 0, step = 0] = call(() => raw.at());
    this.#at = { turn, step };
  }

  take(chunk: LlmChunk): void {
    if (chunk.type === "text" && chunk.thoughtSignature === undefined && chunk.itemId === undefined) return this.#text(chunk.text);
    this.sync();
    switch (chunk.type) {
      case "text": return this.#signed(chunk);
      case "reasoning": return this.#reasoning(chunk);
      case "tool-args": return this.#args(chunk);
      default: {
        const text = JSON.stringify(chunk);
        call(() => this.#raw.chunk(text));
      }
    }
  }

  #text(piece: string): void {
    const text = this.#whole("text", piece);
    if (text === "") return;
    this.#held += text;
    this.#flow("text").push(text);
  }

  /** What a provider puts on text ends its part. */
  #signed(chunk: LlmChunk & { type: "text" }): void {
    const text = this.#whole("text", chunk.text);
    const whole = JSON.stringify({ ...chunk, text });
    call(() => this.#raw.chunk(whole));
    if (text !== "") this.#flow("text").push(text);
  }

  /** Hands the loop the text it has not got yet. */
  sync(): void {
    const text = this.#held;
    if (text === "") return;
    this.#held = "";
    call(() => this.#raw.text(text));
  }

  #reasoning(chunk: LlmChunk & { type: "reasoning" }): void {
    const { type, text: piece, ...opaque } = chunk;
    const text = this.#whole("reasoning", piece);
    if (Object.keys(opaque).length > 0) {
      const whole = JSON.stringify({ type, text, ...opaque });
      call(() => this.#raw.chunk(whole));
    } else if (text !== "") call(() => this.#raw.reasoning(text));
    if (text !== "") this.#flow("reasoning").push(text);
  }

  #args({ id, name, delta }: LlmChunk & { type: "tool-args" }): void {
    const text = this.#whole(`tool-args ${id}`, delta);
    call(() => this.#raw.args(id, name, text));
    if (text === "") return;
    const key = `tool-args ${id}`;
    let stream = this.#streams.get(key);
    if (stream === undefined) this.#streams.set(key, (stream = this.#session.openStream({ ...this.#at, kind: "tool-args", id })));
    stream.push(text);
  }

  /** Text and reasoning take turns: what is held back of the one is let go before the other goes on. */
  #flow(kind: "text" | "reasoning"): EventStream {
    if (this.#current !== kind) {
      this.#streams.get(this.#current)?.end();
      this.#streams.delete(this.#current);
      this.#current = kind;
    }
    let stream = this.#streams.get(kind);
    if (stream === undefined) this.#streams.set(kind, (stream = this.#session.openStream({ ...this.#at, kind })));
    return stream;
  }

  /** A surrogate pair may be cut between two pieces: its first half waits for the second. */
  #whole(key: string, piece: string): string {
    const carried = this.#carry.get(key);
    const text = carried === undefined ? piece : carried + piece;
    if (carried !== undefined) this.#carry.delete(key);
    const last = text.charCodeAt(text.length - 1);
    if (!(last >= 0xd800 && last <= 0xdbff)) return text;
    this.#carry.set(key, text.slice(-1));
    return text.slice(0, -1);
  }

  end(): void {
    this.sync();
    for (const stream of this.#streams.values()) stream.end();
    this.#streams.clear();
  }

  abort(): void {
    this.sync();
    for (const stream of this.#streams.values()) {
      try {
        stream.abort();
      } catch {
        // What is held back cannot be stored; the answer that holds it says why.
      }
    }
    this.#streams.clear();
  }
}
