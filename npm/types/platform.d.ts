// What the declarations name of the platform: its own types where the compiler has been given them (DOM, WebWorker, Node, Deno,
// Workers), and else what is used of them. So they compile under any `lib`, and none of these globals is declared for anybody.

type Own<Name extends string, Otherwise> = typeof globalThis extends { [N in Name]: { prototype: infer T } } ? T : Otherwise;

export type URL = Own<"URL", { readonly href: string }>;
export type Request = Own<"Request", { readonly url: string }>;
export type Response = Own<"Response", { readonly ok: boolean; readonly status: number; arrayBuffer(): Promise<ArrayBuffer> }>;
export type CryptoKey = Own<"CryptoKey", { readonly type: string; readonly extractable: boolean; readonly algorithm: object; readonly usages: readonly string[] }>;
export type BufferSource = ArrayBuffer | ArrayBufferView;
/** By way of a request, which every platform declares so that it can be found: some declare the signal as a class, and those are not seen from here. */
export type AbortSignal = Request extends { readonly signal: infer T } ? T : Signal;
interface Signal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}
export namespace WebAssembly {
  type Module = typeof globalThis extends { WebAssembly: { Module: { prototype: infer T } } } ? T : object;
}

export type Fetch = typeof globalThis extends { fetch: infer T } ? T : (url: string, init?: { method?: string; headers?: { [name: string]: string }; body?: string | Uint8Array; signal?: AbortSignal }) => Promise<Response>;
export type WebSocketConstructor = typeof globalThis extends { WebSocket: infer T } ? T : new (url: string, protocols?: string | string[]) => object;
