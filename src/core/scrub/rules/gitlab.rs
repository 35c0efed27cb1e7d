//! GitLab: personal, deploy, runner, trigger and other tokens, routable ones included.

use super::super::bytes::{DOT, HEX, URL64};
use super::{Family, Prefix};

pub(super) const FAMILY: Family = Family {
    name: "gitlab",
    pii: false,
    kinds: &["gitlab-pat", "gitlab-deploy", "gitlab-runner", "gitlab-trigger", "gitlab-token"],
    prefixes: &[
        // The routable form goes on after a dot: `.01.` and a checksum.
        Prefix::run("glpat-", "gitlab-pat", URL64 | DOT, 20),
        Prefix::run("gldt-", "gitlab-deploy", URL64 | DOT, 20),
        Prefix::run("glrt-", "gitlab-runner", URL64 | DOT, 20),
        Prefix::run("glrtr-", "gitlab-runner", URL64 | DOT, 20),
        Prefix::run("glcbt-", "gitlab-token", URL64 | DOT, 20),
        Prefix::run("glft-", "gitlab-token", URL64 | DOT, 20),
        Prefix::run("glimt-", "gitlab-token", URL64 | DOT, 20),
        Prefix::run("glsoat-", "gitlab-token", URL64 | DOT, 20),
        Prefix::run("glffct-", "gitlab-token", URL64 | DOT, 20),
        Prefix::run("gloas-", "gitlab-token", URL64, 40),
        Prefix::run("glagent-", "gitlab-token", URL64, 40),
        Prefix::run("glptt-", "gitlab-trigger", HEX, 40),
    ],
    #[cfg(not(target_family = "wasm"))]
    examples: &[
        &["PRIVATE", ": glpat", "-aZ9_kQ2x", "Lm7-RtY4wEs1"],
        &["glpat", "-bXkqv9ZLMTQ4N2pCnc6MQpvOjEKdDox", "Cw.01.", "170z4k2m9"],
        &["glptt", "-5fa93c1be07d2468", "91bc0e7f3a5d24c6", "8e017f9b"],
    ],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[&["glpat", "- tokens start with that prefix"]],
};
