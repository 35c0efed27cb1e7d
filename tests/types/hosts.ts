// The storage of servers and edge runtimes fits the declarations that are published for it, and the platforms' own objects fit it.
import type * as denoKv from "../../npm/types/deno-kv.js";
import type * as durableObject from "../../npm/types/durable-object.js";
import type * as serverStorage from "../../npm/types/server-storage.js";
import type * as remote from "../../npm/types/remote.js";
import * as ownDenoKv from "../../npm/src/hosts/deno-kv.js";
import * as ownDurableObject from "../../npm/src/hosts/durable-object.js";
import * as ownServerStorage from "../../npm/src/hosts/node.js";
import * as ownRemote from "../../npm/src/remote/index.js";

type Shape<T> = T extends (...args: never) => unknown ? T : { [K in keyof T]: T[K] };
export const fits: [typeof denoKv, typeof durableObject, typeof serverStorage] = [ownDenoKv, ownDurableObject, ownServerStorage];
export const reaches: { [K in keyof typeof remote]: Shape<(typeof remote)[K]> } = ownRemote;
export const opens: new (options: remote.RemoteOptions) => remote.RemoteStore = ownRemote.RemoteStore;
