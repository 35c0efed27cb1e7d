//! GitHub: classic tokens, fine-grained tokens, and app tokens that carry a JWT.

use super::super::bytes::{ALNUM, DIGIT, DOT, UNDERSCORE, URL64};
use super::super::view::{Look, Verdict, View};
use super::{Family, Prefix, run};

pub(super) const FAMILY: Family = Family {
    name: "github",
    pii: false,
    kinds: &[
        "github-pat",
        "github-oauth",
        "github-app-user",
        "github-app-server",
        "github-refresh",
        "github-fine-grained",
        "github-app-server-jwt",
    ],
    prefixes: &[
        Prefix::run("ghp_", "github-pat", ALNUM, 36),
        Prefix::run("gho_", "github-oauth", ALNUM, 36),
        Prefix::other("ghu_", "github-app-user", app_user),
        Prefix::other("ghs_", "github-app-server", app_server),
        Prefix::run("ghr_", "github-refresh", ALNUM, 36),
        Prefix::run("github_pat_", "github-fine-grained", ALNUM | UNDERSCORE, 60),
    ],
    #[cfg(not(target_family = "wasm"))]
    examples: &[
        &["token is ghp", "_Zq81kTmV", "x0bYw3RcNe57", "PsDhJ2gLfUa6", "oQ1y"],
        &[
            "use github",
            "_pat_11ABCD2E",
            "Y0a1b2c3d4e5f6_",
            "h7J8k9LmNoPqRsTuVwXyZ0123456789AbCdEf",
            "GhIjKlMnOpQrStUvWxYz",
        ],
        &[
            "ghs",
            "_102880_",
            "eyJhbGciOiJSUzI1NiJ9.",
            "eyJpc3MiOiJhcHAiLCJleHAiOjE3fQ.",
            "c2lnbmF0dXJlLW9mLXRoZS1hcHA4",
        ],
    ],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[&["ghp_", "xxxxxxxxxxxxxxxx", "xxxxxxxxxxxxxxxxxxxx"], &["ghp_ begins a token of GitHub"]],
};

fn app_user(view: &View, start: usize, body: usize) -> Verdict {
    app(view, start, body, "github-app-user")
}

fn app_server(view: &View, start: usize, body: usize) -> Verdict {
    app(view, start, body, "github-app-server")
}

/// Since 2026: the number of the app, then a JWT. Before: 36 characters.
fn app(view: &View, start: usize, body: usize, kind: &'static str) -> Verdict {
    let digits = view.run(body, DIGIT, 20);
    if view.open(digits) {
        return Verdict::Need(0, 0);
    }
    if digits > body {
        match view.look(digits, b"_ey") {
            Look::Yes => return run(view, start, body, URL64 | DOT, 36, "github-app-server-jwt"),
            Look::Cut => return Verdict::Need(0, 0),
            Look::No => {}
        }
    }
    run(view, start, body, ALNUM, 36, kind)
}
