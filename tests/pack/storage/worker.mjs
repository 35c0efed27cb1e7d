// The storage of a Durable Object against the suite for backends, inside workerd.
import { DurableObject } from "cloudflare:workers";
import init, { SessionStore, checkBackend } from "sessionlog";
import { durableObjectBackend } from "sessionlog/durable-object";

export class Store extends DurableObject {
  async fetch(request) {
    await init();
    const { storage } = this.ctx;
    const open = () => durableObjectBackend(storage);
    switch (new URL(request.url).pathname) {
      case "/suite": return Response.json(await checkBackend(open));
      case "/largest": {
        const backend = open();
        const value = new Uint8Array(backend.maxValueBytes).fill(7);
        backend.transact({ puts: [["k".repeat(1000), value]] });
        const found = backend.get("k".repeat(1000));
        return Response.json(found.length === value.length && found.every((byte) => byte === 7));
      }
      case "/batch": {
        const backend = open();
        backend.transact({ puts: Array.from({ length: backend.maxBatch }, (_, n) => [`n/${String(n).padStart(6, "0")}`, new Uint8Array([n & 255])]) });
        return Response.json(backend.list("n/", "n0").length);
      }
      case "/write": {
        // Store first: what was appended is stored when append returns, also what is far over the limit of one row.
        const store = await SessionStore.open({ storage: { kind: "custom", backend: open() } });
        const session = store.create("kept");
        session.append("user/message", { text: "small" });
        const watermark = session.durableSeq === session.seq && session.seq === 1;
        session.append("user/message", { text: "x".repeat(5_000_000) });
        return Response.json([watermark, session.durableSeq]);
      }
      case "/read": {
        const store = await SessionStore.open({ storage: { kind: "custom", backend: open() } });
        const session = await store.resume("kept");
        return Response.json([session.seq, session.event(1).data.text.length, session.verify()]);
      }
      case "/abort":
        this.ctx.abort("the object starts anew");
    }
    return new Response("no such path", { status: 404 });
  }
}

export default {
  fetch: (request, env) => env.STORE.get(env.STORE.idFromName("one")).fetch(request),
};
