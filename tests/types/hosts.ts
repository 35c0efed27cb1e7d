// The storage of servers and edge runtimes fits the declarations that are published for it, and the platforms' own objects fit it.
import type * as denoKv from "../../npm/types/deno-kv.js";
import type * as durableObject from "../../npm/types/durable-object.js";
import type * as serverStorage from "../../npm/types/server-storage.js";
import * as ownDenoKv from "../../npm/src/hosts/deno-kv.js";
import * as ownDurableObject from "../../npm/src/hosts/durable-object.js";
import * as ownServerStorage from "../../npm/src/hosts/node.js";

export const fits: [typeof denoKv, typeof durableObject, typeof serverStorage] = [ownDenoKv, ownDurableObject, ownServerStorage];
