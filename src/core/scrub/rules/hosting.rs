//! Hosts and tools of developers: mail, monitoring, databases, vaults, project boards.

use super::super::bytes::{
    ALNUM, ANY_HEX, ANY64, BASE64, DASH, DIGIT, DOT, EQUALS, HEX, UNDERSCORE, UPPER, URL64, count, is,
};
use super::super::view::{Hit, Verdict, View};
use super::{Family, Prefix};

pub(super) const FAMILY: Family = Family {
    name: "hosting",
    pii: false,
    kinds: &[
        "sendgrid",
        "mailgun",
        "brevo",
        "databricks",
        "vault-token",
        "grafana-sa",
        "sentry-user",
        "sentry-org",
        "linear",
        "supabase",
        "newrelic",
        "dynatrace",
        "pulumi",
        "doppler",
        "planetscale",
        "heroku",
        "fly-io",
        "netlify",
        "postman",
        "notion",
        "figma",
        "atlassian",
        "cloudflare",
        "age-key",
        "1password",
        "intra42",
        "airtable",
        "facebook",
        "frameio",
    ],
    prefixes: &[
        Prefix::run("SG.", "sendgrid", URL64 | DOT, 60),
        Prefix::exact("key-", "mailgun", HEX, 32, 32),
        Prefix::run("xkeysib-", "brevo", ALNUM | DASH, 70),
        Prefix::run("dapi", "databricks", HEX | DASH, 32),
        Prefix::run("hvs.", "vault-token", URL64, 24),
        Prefix::run("hvb.", "vault-token", URL64, 60),
        Prefix::run("hvr.", "vault-token", URL64, 24),
        Prefix::run("glsa_", "grafana-sa", ALNUM | UNDERSCORE, 41),
        Prefix::run("glc_", "grafana-sa", BASE64 | EQUALS, 40),
        Prefix::run("sntryu_", "sentry-user", HEX, 64),
        Prefix::run("sntrys_", "sentry-org", BASE64 | EQUALS | UNDERSCORE, 60),
        Prefix::run("lin_api_", "linear", ALNUM, 32),
        Prefix::run("lin_oauth_", "linear", ALNUM, 32),
        Prefix::run("sbp_", "supabase", HEX, 40),
        Prefix::run("sb_secret_", "supabase", URL64, 22),
        Prefix::run("NRAK-", "newrelic", UPPER | DIGIT, 27),
        Prefix::run("dt0c01.", "dynatrace", ALNUM | DOT, 80),
        Prefix::exact("pul-", "pulumi", HEX, 40, 40),
        Prefix::run("dp.pt.", "doppler", ALNUM, 40),
        Prefix::run("dp.st.", "doppler", URL64 | DOT, 40),
        Prefix::run("pscale_tkn_", "planetscale", URL64 | DOT, 32),
        Prefix::run("pscale_pw_", "planetscale", URL64 | DOT, 32),
        Prefix::run("pscale_oauth_", "planetscale", URL64 | DOT, 32),
        Prefix::run("HRKU-", "heroku", URL64, 36),
        Prefix::run("fm2_", "fly-io", BASE64 | EQUALS, 80),
        Prefix::run("FlyV1 fm2_", "fly-io", BASE64 | EQUALS, 80),
        Prefix::run("nfp_", "netlify", ALNUM, 36),
        Prefix::run("PMAK-", "postman", HEX | DASH, 59),
        Prefix::run("ntn_", "notion", ALNUM, 40),
        Prefix::run("figd_", "figma", URL64, 38),
        Prefix::run("ATATT3", "atlassian", URL64 | EQUALS, 100),
        Prefix::run("ATCTT3", "atlassian", URL64 | EQUALS, 100),
        Prefix::run("cfut_", "cloudflare", ALNUM, 48),
        Prefix::run("cfat_", "cloudflare", ALNUM, 48),
        Prefix::run("v1.0-", "cloudflare", HEX | DASH, 150),
        Prefix::run("AGE-SECRET-KEY-1", "age-key", UPPER | DIGIT, 58),
        Prefix::run("ops_eyJ", "1password", ANY64 | EQUALS, 200),
        Prefix::other("A3-", "1password", secret_key),
        Prefix::run("s-s4t2ud-", "intra42", ANY_HEX, 64),
        Prefix::run("s-s4t2af-", "intra42", ANY_HEX, 64),
        Prefix::exact("EAACEdEose0cBA", "facebook", ALNUM, 60, 300),
        Prefix::run("fio-u-", "frameio", URL64, 60),
    ],
    #[cfg(not(target_family = "wasm"))]
    examples: &[
        &["SG", ".Zq81kTmVx0bYw3RcNe57Ps.", "DhJ2gLfUa6oQ1yXk9wBvCnMlp-0Zq81kTmVx0bYw3Rc"],
        &["hvs", ".CAESI", "Zq81kTmVx0bYw3RcNe57PsDhJ2gLf"],
        &["glsa", "_Zq81kTmVx0bYw3RcNe57PsDhJ2gLfUa6_", "0f9b3c1d"],
    ],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[
        &["data-key-", "c775465fbaab7dba8275e93b9afb3d1f"],
        &["pul-request-review-comment-50"],
        &["age1", "a7af34rvfdzxzwhknv2dnwgm6n9u4zjj4kklrthfl27vdw4l4pxjw7y00x"],
        &["hvs. tokens are Vault ones"],
    ],
};

/// The secret key of a 1Password account: groups of capitals and digits, 32 in all.
fn secret_key(view: &View, start: usize, body: usize) -> Verdict {
    const CLASS: u32 = UPPER | DIGIT | DASH;
    let end = view.run(body, CLASS, 38);
    if view.open(end) && end - body < 38 {
        return Verdict::Need(CLASS, body + 38);
    }
    let text = view.slice(body, end);
    let groups = || text.split(|&b| b == b'-').map(<[u8]>::len);
    let fits = groups().eq([6, 6, 5, 5, 5, 5]) || groups().eq([6, 11, 5, 5, 5]);
    let ends = !super::is_joined(view, start) && !is(view.at(end), ALNUM);
    if fits && ends && count(text, DIGIT) >= 3 { Hit::verdict(start, end, "1password") } else { Verdict::No }
}
