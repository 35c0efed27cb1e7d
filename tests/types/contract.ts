// The shell's own classes and functions fit the declarations that are published for them.
import type * as contract from "../../npm/types/index.js";
import * as shell from "../../npm/src/index.js";

type Contract = Omit<typeof contract, "default" | "initSync">;
type Shared = Extract<keyof Contract, keyof typeof shell>;

/** Classes by their instances and statics: how the shell constructs those that callers never construct is its own matter. */
type Shape<T> = T extends (...args: never) => unknown ? T : { [K in keyof T]: T[K] };
type Shapes<T, Names extends keyof T> = { [K in Names]: Shape<T[K]> };

/** What the shell exports under a name of the contract must be usable as the contract says. */
export const fits: Shapes<Contract, Shared> = shell;
