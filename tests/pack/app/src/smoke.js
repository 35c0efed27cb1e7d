// What every runtime and bundler is asked to do with the package; returns what it found as one text.
import init, { SessionLogError, SessionStore } from "sessionlog";

export const expected = "hello ü€😀|answer|2|invalid_id";

export async function smoke(...given) {
  await init(...given);
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create("s1");
  session.append("user/message", { text: "hello ü€😀" });
  session.append("assistant/message", { parts: [{ type: "text", text: "answer" }] });
  const messages = session.deriveMessages();
  let code = "none";
  try {
    store.create("not an id");
  } catch (thrown) {
    code = thrown instanceof SessionLogError ? thrown.code : String(thrown);
  }
  await store.dispose();
  return [...messages.map((message) => message.parts[0].text), messages.length, code].join("|");
}
