// What each provider refuses, written from the published rules; knows nothing of how requests are derived.
import assert from "node:assert/strict";

const shown = (text, what) => assert.ok(typeof text === "string" && text.trim() !== "" && text.isWellFormed(), `${what} is blank or broken: ${JSON.stringify(text)}`);
const object = (value, what) => assert.ok(typeof value === "object" && value !== null && !Array.isArray(value), `${what} is not an object`);
/** An address that no client can parse costs the whole request. */
const address = (url) => assert.ok(url.startsWith("data:") || URL.canParse(url), `no address: ${url}`);
const base64 = (text) => assert.match(text, /^[A-Za-z0-9+/]+={0,2}$/);
const only = (value, keys, what) => assert.deepEqual(Object.keys(value).filter((key) => !keys.includes(key)), [], `unknown fields of ${what}`);

/** Every text of a request is well-formed and every key known to JSON. */
export function wellFormed(value) {
  assert.ok(JSON.stringify(value).isWellFormed());
  assert.deepEqual(JSON.parse(JSON.stringify(value)), value);
}

function chatParts(parts) {
  if (typeof parts === "string") return shown(parts, "content");
  assert.ok(parts.length > 0, "no parts");
  for (const part of parts) {
    if (part.type === "text") shown(part.text, "a text part");
    else if (part.type === "image_url") address(part.image_url.url), assert.match(part.image_url.url, /^(https?:|data:image\/(png|jpeg|webp|gif);base64,)/);
    else if (part.type === "input_audio") assert.match(part.input_audio.format, /^(wav|mp3)$/), base64(part.input_audio.data);
    else if (part.type === "file") assert.match(part.file.file_data, /^data:application\/pdf;base64,/), shown(part.file.filename, "a filename");
    else assert.fail(`unknown part ${part.type}`);
  }
}

export function openaiChat({ messages, system }, { prefill = false } = {}) {
  assert.equal(system, undefined);
  let owed = [];
  const ids = new Set();
  messages.forEach((message, at) => {
    if (message.role !== "tool") assert.deepEqual(owed, [], "calls are followed by their results at once");
    switch (message.role) {
      case "system": assert.equal(at, 0); only(message, ["role", "content"], "system"); return shown(message.content, "system");
      case "user": only(message, ["role", "content"], "user"); return chatParts(message.content);
      case "assistant": {
        only(message, ["role", "content", "tool_calls"], "assistant");
        if (message.content !== null) shown(message.content, "an answer");
        if (message.tool_calls === undefined) return assert.notEqual(message.content, null, "an answer without anything");
        assert.ok(message.tool_calls.length > 0);
        for (const { id, type, function: { name, arguments: args } } of message.tool_calls) {
          assert.equal(type, "function");
          assert.ok(id.length > 0 && id.length <= 40 && !ids.has(id), `id ${id}`);
          ids.add(id);
          assert.match(name, /^[a-zA-Z0-9_-]{1,64}$/);
          object(JSON.parse(args), "arguments");
          owed.push(id);
        }
        return;
      }
      case "tool":
        only(message, ["role", "content", "tool_call_id"], "tool");
        assert.equal(message.tool_call_id, owed.shift(), "results in call order");
        return shown(message.content, "a result");
      default: assert.fail(`unknown role ${message.role}`);
    }
  });
  assert.deepEqual(owed, []);
  assert.ok(prefill || ["user", "tool"].includes(messages.at(-1).role), "ends with the user or a result");
}

export function openaiResponses({ messages: items, system }, { prefill = false } = {}) {
  assert.equal(system, undefined);
  const [itemIds, callIds, owed] = [new Set(), new Set(), []];
  let reasoned = false;
  const input = (part) => {
    if (part.type === "input_text") return shown(part.text, "a text");
    if (part.type === "input_image") return address(part.image_url), assert.match(part.image_url, /^(https?:|data:image\/(png|jpeg|webp|gif);base64,)/);
    assert.equal(part.type, "input_file");
    assert.ok(part.file_data?.startsWith("data:application/pdf;base64,") || /^https?:/.test(part.file_url));
    if (part.file_url !== undefined) address(part.file_url);
  };
  for (const item of items) {
    if (item.id !== undefined) {
      assert.match(item.id, /^(msg|rs|fc)_[A-Za-z0-9_-]{1,60}$/);
      assert.ok(!itemIds.has(item.id), "an item twice");
      itemIds.add(item.id);
    }
    const leads = item.type === "reasoning" || item.type === "function_call" || (item.type === "message" && item.role === "assistant");
    assert.ok(!reasoned || leads, "reasoning without the item it led to");
    reasoned = item.type === "reasoning";
    if (item.type === "message" && item.role === "assistant") {
      assert.ok(item.content.length > 0);
      for (const part of item.content) assert.equal(part.type, "output_text"), shown(part.text, "an answer");
    } else if (item.type === "message") {
      if (item.role === "user") assert.deepEqual(owed, [], "the user speaks before the outputs");
      assert.ok(item.content.length > 0);
      item.content.forEach(input);
    } else if (item.type === "reasoning") {
      shown(item.encrypted_content, "encrypted content");
      assert.ok(Array.isArray(item.summary));
    } else if (item.type === "function_call") {
      assert.match(item.call_id, /^[a-zA-Z0-9_-]{1,64}$/);
      assert.ok(!callIds.has(item.call_id));
      callIds.add(item.call_id);
      assert.match(item.name, /^[a-zA-Z0-9_-]{1,64}$/);
      object(JSON.parse(item.arguments), "arguments");
      if (item.id !== undefined) assert.match(item.id, /^fc_/);
      owed.push(item.call_id);
    } else {
      assert.equal(item.type, "function_call_output");
      assert.equal(item.call_id, owed.shift(), "outputs in call order");
      if (typeof item.output === "string") shown(item.output, "an output");
      else assert.ok(item.output.length > 0), item.output.forEach(input);
    }
  }
  assert.ok(!reasoned, "reasoning at the end");
  assert.deepEqual(owed, []);
  const last = items.at(-1);
  assert.ok(prefill || last.role === "user" || last.type === "function_call_output", "ends with the user or an output");
}

export function anthropic({ messages, system }, { prefill = false } = {}) {
  if (system !== undefined) shown(system, "system");
  const ids = new Set();
  let owed = [];
  const media = (block) => {
    only(block, ["type", "source", "title"], block.type);
    const { type, media_type: kind, data, url } = block.source;
    if (type === "url") return address(url), assert.match(url, /^https?:/);
    assert.equal(type, "base64");
    base64(data);
    assert.ok(block.type === "document" ? kind === "application/pdf" : ["image/jpeg", "image/png", "image/gif", "image/webp"].includes(kind), kind);
  };
  messages.forEach(({ role, content }, at) => {
    assert.equal(role, at % 2 === 0 ? "user" : "assistant", "roles take turns, the user first");
    assert.ok(Array.isArray(content) && content.length > 0, "an empty message");
    if (role === "user") {
      const results = content.filter(({ type }) => type === "tool_result");
      assert.deepEqual(content.slice(0, results.length), results, "results first");
      assert.deepEqual(results.map(({ tool_use_id: id }) => id), owed, "every call, in order, and nothing else");
      owed = [];
      for (const block of content) {
        if (block.type === "text") shown(block.text, "a text");
        else if (block.type === "tool_result") {
          only(block, ["type", "tool_use_id", "content", "is_error"], "a result");
          if (typeof block.content === "string") shown(block.content, "a result");
          else assert.ok(block.content.length > 0);
          if (Array.isArray(block.content)) for (const inner of block.content) inner.type === "text" ? shown(inner.text, "a result") : media(inner);
          if (block.is_error && Array.isArray(block.content)) assert.ok(block.content.every(({ type }) => type === "text"));
        } else media(block);
      }
      return;
    }
    let calls = false;
    for (const block of content) {
      assert.ok(!calls || block.type === "tool_use", "between a call and its result");
      if (block.type === "text") shown(block.text, "an answer");
      else if (block.type === "thinking") shown(block.signature, "a signature");
      else if (block.type === "redacted_thinking") shown(block.data, "redacted data");
      else {
        assert.equal(block.type, "tool_use");
        calls = true;
        assert.match(block.id, /^[a-zA-Z0-9_-]{1,64}$/);
        assert.ok(!ids.has(block.id), "an id twice");
        ids.add(block.id);
        owed.push(block.id);
        assert.match(block.name, /^[a-zA-Z0-9_-]{1,64}$/);
        object(block.input, "input");
      }
    }
    assert.ok(!/thinking/.test(content.at(-1).type), "thinking at the end");
    if (at === messages.length - 1) {
      assert.ok(prefill, "ends with the model");
      const last = content.at(-1);
      assert.equal(last.type, "text");
      assert.equal(last.text, last.text.trimEnd());
      assert.ok(content.every(({ type }) => !/thinking/.test(type)));
    }
  });
  assert.ok(messages.length > 0);
  assert.deepEqual(owed, []);
}

export function gemini({ messages: contents, system }) {
  if (system !== undefined) shown(system.parts[0].text, "system");
  let owed = [];
  const ids = new Set();
  contents.forEach(({ role, parts }, at) => {
    assert.equal(role, at % 2 === 0 ? "user" : "model", "roles take turns, the user first");
    assert.ok(parts.length > 0, "an empty turn");
    const responses = parts.filter((part) => part.functionResponse !== undefined);
    assert.equal(responses.length, role === "user" ? owed.length : 0, "as many responses as calls");
    assert.deepEqual(parts.slice(0, responses.length), responses, "responses first");
    responses.forEach(({ functionResponse: { id, name, response } }, i) => {
      assert.deepEqual([id, name], owed[i]);
      object(response, "a response");
      shown(response.output ?? response.error, "a response");
    });
    owed = [];
    let calls = 0;
    for (const part of parts) {
      assert.equal(Object.keys(part).filter((key) => key !== "thought" && key !== "thoughtSignature").length, 1, "one kind of data per part");
      if (part.thoughtSignature !== undefined) assert.equal(role, "model"), shown(part.thoughtSignature, "a signature");
      if (part.text !== undefined && part.thought !== true) shown(part.text, "a text");
      if (part.inlineData !== undefined) base64(part.inlineData.data), assert.match(part.inlineData.mimeType, /^[a-z]+\/./);
      if (part.fileData !== undefined) assert.equal(role, "user"), address(part.fileData.fileUri), assert.match(part.fileData.fileUri, /^(https?|gs):/);
      if (part.functionCall !== undefined) {
        assert.equal(role, "model");
        const { id, name, args } = part.functionCall;
        assert.match(name, /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/);
        object(args, "args");
        assert.ok(!ids.has(id));
        ids.add(id);
        if (calls++ === 0) assert.notEqual(part.thoughtSignature, undefined, "the first call of a step is signed");
        owed.push([id, name]);
      }
    }
  });
  assert.deepEqual(owed, []);
  assert.equal(contents.at(-1).role, "user", "ends with the user");
}

export const JUDGES = { "openai-chat": openaiChat, "openai-responses": openaiResponses, anthropic, gemini };
