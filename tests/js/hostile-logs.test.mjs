// Logs as nobody should write them, held against the published rules, the AI SDK itself, and the official clients' types.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { before, test } from "node:test";
import { modelMessageSchema } from "ai";
import { convertToLanguageModelPrompt } from "ai/internal";
import init, { SessionStore } from "sessionlog";
import { JUDGES, wellFormed } from "./support/judges.mjs";

const TARGETS = [...Object.keys(JUDGES), "ai-sdk"];
let store;
before(async () => {
  await init();
  store = await SessionStore.open({ storage: { kind: "memory" } });
});

async function sdk({ messages, system }) {
  assert.ok(messages.length > 0);
  for (const message of messages) {
    const verdict = modelMessageSchema.safeParse(message);
    assert.ok(verdict.success, `${JSON.stringify(message)} ${verdict.error}`);
  }
  const prompt = await convertToLanguageModelPrompt({ prompt: { system, instructions: system, messages }, supportedUrls: { "*/*": [/.*/] }, download: undefined });
  assert.ok(prompt.length >= messages.length);
}

async function judge(session, options, what) {
  for (const target of TARGETS) {
    const request = session.deriveRequest({ target, ...options });
    try {
      assert.deepEqual(request.repairs.filter(({ code }) => code === "invalid_request"), []);
      for (const { code, message, seq } of request.repairs) assert.ok(/^[a-z_]+$/.test(code) && message.length > 0 && (seq === undefined || Number.isInteger(seq)));
      wellFormed(request);
      if (target === "ai-sdk") await sdk(request);
      else JUDGES[target](request, options);
    } catch (thrown) {
      thrown.message = `${what}, ${target}: ${thrown.message}\n${JSON.stringify(request.messages, null, 1).slice(0, 4000)}\n${JSON.stringify(session.events.map(({ type, data }) => [type, data])).slice(0, 4000)}`;
      throw thrown;
    }
  }
}

function random(seed) {
  return (n) => {
    seed = (seed + 0x9e3779b9) | 0;
    let z = Math.imul(seed ^ (seed >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) % n;
  };
}

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";
const TEXTS = ["", " ", "\n\t", "\u200b", "\ufeff", "\u00a0\u2028", "\u0000", "\u0085", "\u001c", "\u180e", "hello", "bye 🔥", "half \ud83d here", "\udc00", "</steering></context>", "x".repeat(300), "trailing \n ", "\u2060", "\u3164", "[REDACTED:x]", "__proto__"];
const IDS = ["a", "a", "b", "call_1", "toolu_01", "", " ", "x".repeat(65), "x".repeat(300), "é", "a:b/c", "\ud83d", "functions.read:0", "__proto__", "constructor", "1", "call_1 "];
const NAMES = ["read", "", " ", "a.b", "näme", "1st", "x".repeat(100), "__proto__", "-x", "mcp__s__t", "🔥"];
const ARGS = [{}, { a: 1 }, "", " ", "{}", '{"a":', '"text"', [1], null, 7, true, "[]", { "": { "": "" } }, { 10: 1, 2: 0, a: 1e300 }, { t: "half \ud83d" }, '{"a":1,"a":2}', { deep: [[[[[]]]]] }, JSON.parse('{"__proto__":1}')];
const TYPES = ["image/png", "IMAGE/PNG", "image/jpg", "image/svg+xml", "image/tiff", "application/pdf", "audio/wav", "audio/mpeg", "video/mp4", "text/plain; charset=utf-8", "", "png", "application/octet-stream"];
const SOURCES = [{ data: PNG }, { data: "" }, { data: "not base64!" }, { data: `data:image/gif;base64,${PNG}` }, { data: "A" }, { data: "QQ" }, { data: "_-8=" }, { url: "https://example.com/a.png" }, { url: "http://x/ y" }, { url: "file:///etc/passwd" }, { url: "gs://b/o" }, { url: "https://" }, { url: "http://[bad/" }, { url: "https://1.2.3.999/x" }, { url: "https://e%x/" }, { url: "https://h:99999/" }, { url: "https://u:p@h.example/?q#f" }, { url: `data:image/png;base64,${PNG}` }, { url: "data:,hello" }, { url: "" }, { blob: "0".repeat(64) }, { blob: "" }, {}];

function pieces(r) {
  const pick = (list) => list[r(list.length)];
  const media = () => ({ type: pick(["image", "file"]), mediaType: pick(TYPES), ...pick(SOURCES), ...(r(4) ? {} : { filename: pick(TEXTS) }) });
  const text = () => ({ type: "text", text: pick(TEXTS), ...(r(6) ? {} : { thoughtSignature: pick(["c2ln", "", " "]) }), ...(r(6) ? {} : { itemId: pick(["msg_1", "rs_1", "", "bad id", "msg_" + "x".repeat(80)]) }) });
  const reasoning = () => ({
    type: "reasoning", text: pick(["hm", "", " ", "half \ud83d"]), ...(r(2) ? { signature: pick(["c2ln", "", " "]) } : {}), ...(r(4) ? {} : { redacted: pick(["QQ==", ""]) }),
    ...(r(3) ? {} : { itemId: pick(["rs_1", "rs_2", "", "r s"]), encrypted: pick(["ZW5j", ""]) }),
  });
  const call = () => ({
    type: "tool-call", id: pick(IDS), name: pick(NAMES), args: pick(ARGS), ...(r(4) ? {} : { rawArgs: pick(["", "{", '{"a":1}', "null", '{"h":"\\ud83d"}']) }),
    ...(r(4) ? {} : { thoughtSignature: pick(["c2ln", ""]) }), ...(r(4) ? {} : { itemId: pick(["fc_1", "fc_2", "x", ""]) }), ...(r(6) ? {} : { providerExecuted: true }),
  });
  const content = () => pick([() => pick(TEXTS), () => [], () => [text(), media()], () => [media()], () => [{ type: "odd" }], () => null, () => ({ n: 1 }), () => [call()], () => 7])();
  const inline = () => ({ type: "tool-result", id: pick(IDS), content: content(), ...(r(3) ? {} : { isError: true }) });
  const some = (make, most) => Array.from({ length: r(most) }, make);
  const part = () => pick([text, text, call, call, reasoning, inline, media, () => ({ type: "odd" }), () => ({})])();
  return { pick, media, text, content, some, part };
}

const ORIGINS = [{}, {}, { provider: "anthropic", api: "anthropic.messages", model: "c" }, { provider: "openai", api: "openai.responses", model: "g" }, { provider: "google", api: "gemini", model: "m" }, { provider: "x", api: "", model: "" }];

function hostile(r) {
  const { pick, media, text, content, some, part } = pieces(r);
  const kinds = [
    () => ["user/message", { text: pick(TEXTS) }],
    () => ["user/message", { parts: some(() => pick([text, media, part])(), 5) }],
    () => ["user/message", { text: pick(TEXTS), parts: some(text, 3) }],
    () => ["user/message", {}],
    () => ["assistant/message", { parts: some(part, 7), ...pick(ORIGINS), ...(r(4) ? {} : { partial: true }) }],
    () => ["assistant/message", { parts: some(part, 7), ...pick(ORIGINS) }],
    () => ["assistant/message", { parts: [] }],
    () => ["assistant/message", { text: pick(TEXTS) }],
    () => ["tool/result", { id: pick(IDS), content: content(), ...(r(3) ? {} : { isError: true }), ...(r(3) ? {} : { synthetic: true }), ...(r(5) ? {} : { error: { message: pick(TEXTS) } }) }],
    () => ["tool/result", { id: pick(IDS), content: pick(TEXTS) }],
    () => ["tool/result", {}],
    () => ["tool/call", { id: pick(IDS), name: pick(NAMES), args: {} }],
    () => ["approval/resolved", { callId: pick(IDS), verdict: pick(["denied", "approved", "?"]), reason: pick(TEXTS) }],
    () => ["context/message", { text: pick(TEXTS), source: pick(TEXTS) }],
    () => ["context/injected", { text: pick(TEXTS), source: "s" }],
    () => ["steering/message", { text: pick(TEXTS) }],
    () => ["assistant/chunk", { turn: 1, step: 1, kind: "text", text: pick(TEXTS) }],
    () => ["session/compacted", { summary: pick(TEXTS), uptoSeq: r(40) - 2 }],
    () => ["session/compacted", { summary: "S", uptoSeq: pick([1.5, "3", null, 1e300, -1e300]) }],
    () => ["session/rewound", { uptoSeq: r(40) - 2 }],
    () => ["session/rewound", {}],
    () => ["turn/end", { turn: 1, reason: { kind: "interrupted" } }],
    () => ["error", { message: "boom" }],
  ];
  const [type, data] = kinds[r(3) ? r(12) : r(kinds.length)]();
  return [type, data];
}

const OPTIONS = [
  {}, { system: "be good" }, { system: " " }, { prefill: true }, { reasoning: "drop" }, { maxMessages: 1 }, { maxMessages: 4, prefill: true },
  { toolCallId: { pattern: "^[A-Za-z0-9]{9}$" } }, { media: { maxCount: 1 } }, { media: { maxBytesEach: 0, maxBytesTotal: 0 } },
  { provider: "anthropic", model: "c" }, { provider: "openai", model: "g" }, { provider: "google", model: "m" }, { provider: "other", model: "z" },
];

test("every prefix of hostile logs is a request that its provider takes", async () => {
  const sample = Number(process.env.HOSTILE_LOGS ?? 80);
  for (let seed = 1; seed <= sample; seed++) {
    const r = random(seed * 0x51ed27);
    const session = store.create();
    for (let i = 0; i <= 40; i++) {
      await judge(session, OPTIONS[(seed + i) % OPTIONS.length], `seed ${seed}, ${i} events`);
      session.append(...hostile(r), { repair: true });
    }
    await session.dispose();
  }
});

test("the judges refuse what providers refuse", () => {
  const session = store.create();
  session.append("user/message", { parts: [{ type: "text", text: "go" }, { type: "image", mediaType: "image/png", data: PNG }] });
  session.append("assistant/message", { parts: ["t1", "t2"].map((id) => ({ type: "tool-call", id, name: "read", args: {} })) });
  for (const id of ["t1", "t2"]) session.append("tool/result", { id, content: "r" });
  session.append("assistant/message", { parts: [{ type: "text", text: "done" }] });
  session.append("user/message", { text: "more" });
  for (const [target, judges] of Object.entries(JUDGES)) {
    const good = session.deriveRequest({ target });
    judges(good);
    // Every message left out, said twice, or put before the one before it breaks some rule; and so does every blank text.
    const { messages } = good;
    const bad = messages.flatMap((message, at) => {
      const swapped = [...messages];
      if (at > 0) [swapped[at - 1], swapped[at]] = [message, messages[at - 1]];
      return [messages.filter((_, i) => i !== at), [...messages.slice(0, at), message, ...messages.slice(at)], swapped].map((list) => [at, list]);
    });
    bad.push([-1, JSON.parse(JSON.stringify(messages).replace('"done"', '" "'))], [-2, JSON.parse(JSON.stringify(messages).replaceAll('"t1"', '"t2"'))], [-3, messages.slice(0, -1)]);
    const refused = bad.filter(([, list]) => {
      try {
        judges({ ...good, messages: list });
        return false;
      } catch {
        return true;
      }
    });
    // Where turns need not alternate, a plain turn may be missing or said twice.
    const least = { "openai-chat": 13, "openai-responses": 15, anthropic: 15, gemini: 15 }[target];
    assert.ok(refused.length >= least, `${target}: ${refused.length} of ${bad.length}`);
    for (const at of [-1, -2, -3]) assert.ok(refused.some(([i]) => i === at), `${target} ${at}`);
  }
});

test("logs of one kind of event only, and of nothing that can be seen", async () => {
  const logs = [
    [],
    [["session/rewound", { uptoSeq: -1 }]],
    [["user/message", { text: "gone" }], ["session/rewound", { uptoSeq: -1 }]],
    [["tool/result", { id: "x", content: "r" }]],
    [["tool/result", { id: "x", content: "r" }], ["assistant/message", { parts: [{ type: "tool-call", id: "x", name: "n", args: {} }] }]],
    [["assistant/message", { parts: [] }]],
    [["assistant/message", { parts: [{ type: "reasoning", text: "only", signature: "c2ln" }] }]],
    [["assistant/chunk", { turn: 1, step: 1, kind: "text", text: "orphan" }]],
    [["session/compacted", { summary: "S", uptoSeq: 5 }]],
    [["session/compacted", { summary: "S", uptoSeq: -1 }], ["session/compacted", { summary: "T", uptoSeq: 0 }]],
    [["context/message", { text: " ", source: "" }]],
    [["approval/resolved", { callId: "x", verdict: "denied" }]],
    Array(30).fill(["user/message", { text: "again" }]),
    Array(30).fill(["assistant/message", { parts: [{ type: "tool-call", id: "same", name: "n", args: {} }] }]),
    Array(30).fill(["assistant/message", { parts: [{ type: "text", text: "again" }] }]),
  ];
  for (const [at, log] of logs.entries()) {
    const session = store.create();
    for (const [type, data] of log) session.append(type, data);
    for (const options of OPTIONS) await judge(session, options, `log ${at}`);
    await session.dispose();
  }
});

test("a stored log that holds what may not be appended derives clean", async () => {
  const lines = ['{"sessionlog":1,"header":{"version":1,"id":"old","createdAt":0}}'];
  const add = (type, data) => lines.push(`{"seq":${lines.length - 1},"id":"${String(lines.length).padStart(16, "0")}","at":0,"type":"${type}","data":${data}}`);
  add("user/message", '{"text":"x\\ud83dy"}');
  add("assistant/message", '{"parts":[{"type":"tool-call","id":"\\ud83d","name":"\\udc00","args":{"\\udc00":"\\ud83d"}},{"type":"text","text":"\\ud83d\\ud83d"},{"type":"reasoning","text":"\\udc00","signature":"\\ud83d"}]}');
  add("tool/result", '{"id":"\\ud83d","content":"\\udc00 out"}');
  add("user/message", '{"parts":[{"type":"file","mediaType":"application/pdf","filename":"\\ud83d","data":"QUJD"}]}');
  const { session, report } = await store.importSession(lines.join("\n"));
  assert.deepEqual(report, { lost: [], damaged: [] });
  assert.equal(session.seq, 4);
  for (const options of OPTIONS) await judge(session, options, "old");
  assert.ok(JSON.stringify(session.deriveRequest({ target: "anthropic" })).includes("x\ufffdy"));
});

test("100,000 events derive, and one more is as cheap as before", async () => {
  const session = store.create();
  const r = random(5);
  for (let i = 0; i < 25_000; i++) {
    session.append("user/message", { text: `q ${i}` });
    session.append("assistant/message", { parts: [{ type: "tool-call", id: `c${r(50)}`, name: "read", args: { i } }] });
    session.append("tool/call", { turn: 1, step: 1, id: "c", name: "read", args: {} });
    session.append("tool/result", { id: `c${r(50)}`, content: `r ${i}` });
  }
  for (const target of TARGETS) {
    const request = session.deriveRequest({ target });
    if (target === "ai-sdk") await sdk({ ...request, messages: request.messages.slice(-50).filter(({ role }) => role === "user") });
    else JUDGES[target](request);
  }
  await session.dispose();
});

test("requests of hostile logs compile against the official clients' types", () => {
  const types = { anthropic: "Anthropic.MessageParam[]", "openai-chat": "OpenAI.Chat.ChatCompletionMessageParam[]", "openai-responses": "OpenAI.Responses.ResponseInputItem[]", gemini: "Content[]", "ai-sdk": "ModelMessage[]" };
  const lines = ['import type Anthropic from "@anthropic-ai/sdk";', 'import type { Content } from "@google/genai";', 'import type { ModelMessage } from "ai";', 'import type OpenAI from "openai";'];
  for (let seed = 1; seed <= 24; seed++) {
    const r = random(seed * 0x3779);
    const session = store.create();
    for (let i = 0; i < 24; i++) session.append(...hostile(r), { repair: true });
    for (const [target, type] of Object.entries(types)) {
      const { messages } = session.deriveRequest({ target, ...[{}, { provider: "anthropic", model: "c" }, { provider: "openai", model: "g" }, { provider: "google", model: "m" }][seed % 4] });
      lines.push(`export const r${lines.length} = ${JSON.stringify(messages)} satisfies ${type};`);
    }
  }
  const root = fileURLToPath(new URL("../../", import.meta.url));
  const folder = `${root}target/tmp/hostile`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/requests.ts`, lines.join("\n"));
  try {
    const flags = ["--ignoreConfig", "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022", "--types", "node"];
    execFileSync(process.execPath, [`${root}node_modules/typescript/bin/tsc`, ...flags, `${folder}/requests.ts`], { encoding: "utf8", stdio: "pipe" });
  } catch (thrown) {
    assert.fail(`${thrown.stdout ?? thrown}`.slice(0, 4000));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
