//! The large clouds: AWS, Google, Azure, DigitalOcean, Alibaba, IBM.

use super::super::bytes::{ALNUM, BASE32, BASE64, DOT, EQUALS, HEX, URL64, is};
use super::super::view::{Hit, Verdict, View};
use super::{Family, Prefix, is_placeholder};

pub(super) const FAMILY: Family = Family {
    name: "cloud",
    pii: false,
    kinds: &[
        "aws-access-key-id",
        "aws-session-token",
        "aws-bedrock-key",
        "google-api-key",
        "google-oauth-secret",
        "google-oauth-token",
        "digitalocean",
        "alibaba-key",
    ],
    prefixes: &[
        Prefix::other("AKIA", "aws-access-key-id", aws_id),
        Prefix::other("ASIA", "aws-access-key-id", aws_id),
        Prefix::other("ABIA", "aws-access-key-id", aws_id),
        Prefix::other("ACCA", "aws-access-key-id", aws_id),
        Prefix::run("IQoJb3JpZ2lu", "aws-session-token", BASE64 | EQUALS, 100),
        Prefix::run("ABSK", "aws-bedrock-key", BASE64 | EQUALS, 100),
        Prefix::run("bedrock-api-key-", "aws-bedrock-key", BASE64 | EQUALS, 60),
        Prefix::exact("AIza", "google-api-key", URL64, 35, 35),
        Prefix::run("GOCSPX-", "google-oauth-secret", URL64, 24),
        Prefix::run("ya29.", "google-oauth-token", URL64 | DOT, 40),
        Prefix::run("dop_v1_", "digitalocean", HEX, 64),
        Prefix::run("doo_v1_", "digitalocean", HEX, 64),
        Prefix::run("dor_v1_", "digitalocean", HEX, 64),
        Prefix::run("dot_v1_", "digitalocean", HEX, 64),
        Prefix::exact("LTAI", "alibaba-key", ALNUM, 16, 20),
    ],
    #[cfg(not(target_family = "wasm"))]
    examples: &[
        &["key AKIA", "Z5MVQ2XB", "7KTP3W4R"],
        &["maps: AIza", "Sy9-kXq2Lm_7RtY4", "wEs1bNc8Vd3Fg5Hj0zQ"],
        &["ya29.", "a0AfH6SMBx9kq2L", "m7RtY4wEs1bNc8Vd3Fg5Hj0KlPo"],
    ],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[
        &["aws_access_key_id = AKIA", "IOSFODNN7", "EXAMPLE"],
        &["AKIA", "****************"],
        &["data AIza", "Sy9-kXq2Lm_7RtY4wEs1bNc8Vd3Fg5Hj0abcdef in base64"],
    ],
};

/// Four letters and 16 of base32, in no longer word.
fn aws_id(view: &View, start: usize, body: usize) -> Verdict {
    let end = view.run(body, BASE32, 17);
    if view.open(end) && end - body <= 16 {
        return Verdict::Need(BASE32, body + 17);
    }
    let text = view.slice(body, end);
    if text.len() != 16 || is(view.at(end), ALNUM) || is_placeholder(text) {
        return Verdict::No;
    }
    Hit::verdict(start, end, "aws-access-key-id")
}
