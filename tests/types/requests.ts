// Golden requests hold against the types of the official clients: what `tests/js/golden.test.mjs` derives, written out.
import type Anthropic from "@anthropic-ai/sdk";
import type { Content } from "@google/genai";
import type OpenAI from "openai";

export const anthropic = [
  { role: "user", content: [{ type: "text", text: "look" }, { type: "image", source: { type: "base64", media_type: "image/png", data: "QUJD" } }, { type: "document", source: { type: "base64", media_type: "application/pdf", data: "QUJD" }, title: "a.pdf" }] },
  { role: "assistant", content: [{ type: "thinking", thinking: "hm", signature: "c2ln" }, { type: "redacted_thinking", data: "QQ==" }, { type: "text", text: "sure" }, { type: "tool_use", id: "t1", name: "read", input: { path: "a" } }, { type: "tool_use", id: "t2", name: "read", input: {} }] },
  { role: "user", content: [
    { type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "shot" }, { type: "image", source: { type: "base64", media_type: "image/png", data: "QUJD" } }] },
    { type: "tool_result", tool_use_id: "t2", content: "Interrupted: this call was never started; it was not executed.", is_error: true },
    { type: "text", text: "next" }] },
] satisfies Anthropic.MessageParam[];

export const chat = [
  { role: "system", content: "be good" },
  { role: "user", content: [{ type: "text", text: "look" }, { type: "image_url", image_url: { url: "data:image/png;base64,QUJD" } }, { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,QUJD" } }] },
  { role: "assistant", content: "sure", tool_calls: [{ id: "t1", type: "function", function: { name: "read", arguments: "{\"path\":\"a\"}" } }, { id: "t2", type: "function", function: { name: "read", arguments: "{}" } }] },
  { role: "tool", tool_call_id: "t1", content: "shot\n\n[the media of this result follow in the next message]" },
  { role: "tool", tool_call_id: "t2", content: "Error: Interrupted: this call was never started; it was not executed." },
  { role: "user", content: [{ type: "text", text: "[media of the result of read]" }, { type: "image_url", image_url: { url: "data:image/png;base64,QUJD" } }, { type: "text", text: "next" }] },
] satisfies OpenAI.Chat.ChatCompletionMessageParam[];

export const responses = [
  { type: "message", role: "system", content: [{ type: "input_text", text: "be good" }] },
  { type: "message", role: "user", content: [{ type: "input_text", text: "look" }, { type: "input_image", detail: "auto", image_url: "data:image/png;base64,QUJD" }, { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,QUJD" }] },
  { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "hm" }], encrypted_content: "ZW5j" },
  { type: "message", id: "msg_1_1", role: "assistant", status: "completed", content: [{ type: "output_text", text: "sure", annotations: [] }] },
  { type: "function_call", id: "fc_1", call_id: "t1", name: "read", arguments: "{\"path\":\"a\"}" },
  { type: "function_call", call_id: "t2", name: "read", arguments: "{}" },
  { type: "function_call_output", call_id: "t1", output: [{ type: "input_text", text: "shot" }, { type: "input_image", detail: "auto", image_url: "data:image/png;base64,QUJD" }] },
  { type: "function_call_output", call_id: "t2", output: "Error: Interrupted: this call was never started; it was not executed." },
  { type: "message", role: "user", content: [{ type: "input_text", text: "next" }] },
] satisfies OpenAI.Responses.ResponseInputItem[];

export const gemini = [
  { role: "user", parts: [{ text: "look" }, { inlineData: { mimeType: "image/png", data: "QUJD" } }, { inlineData: { mimeType: "application/pdf", data: "QUJD" } }] },
  { role: "model", parts: [{ text: "hm", thought: true, thoughtSignature: "c2ln" }, { text: "sure" }, { functionCall: { id: "t1", name: "read", args: { path: "a" } }, thoughtSignature: "c2ln" }, { functionCall: { id: "t2", name: "read", args: {} } }] },
  { role: "user", parts: [
    { functionResponse: { id: "t1", name: "read", response: { output: "shot\n\n[the media of this result follow in the next message]" } } },
    { functionResponse: { id: "t2", name: "read", response: { error: "Interrupted: this call was never started; it was not executed." } } },
    { text: "[media of the result of read]" }, { inlineData: { mimeType: "image/png", data: "QUJD" } }, { text: "next" }] },
] satisfies Content[];
