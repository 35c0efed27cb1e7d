// Server-sent events from a response body, at any cut of its bytes.
import { createParser } from "eventsource-parser";

export interface ServerEvent {
  event: string | undefined;
  data: string;
}

/**
 * Reads events until the body ends. The parser (eventsource-parser) knows comments, CRLF and multi-line data; this adds
 * characters cut in the middle, a last event without its blank line, and letting go of the body when the reader stops.
 */
export async function* serverEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  let ready: ServerEvent[] = [];
  const parser = createParser({ onEvent: ({ event, data }) => ready.push({ event, data }) });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      // At the end two line ends finish what the server left unfinished.
      parser.feed(done ? `${decoder.decode()}\n\n` : decoder.decode(value, { stream: true }));
      const events = ready;
      ready = [];
      yield* events;
      if (done) return;
    }
  } finally {
    // A reader that stops early ends the transfer; after the end this does nothing.
    reader.cancel().catch(() => {});
  }
}
