//! Chat services: Slack and Discord addresses and tokens. Tokens without a prefix stand in `shapes`.

use super::super::bytes::{ALNUM, DASH, DIGIT, URL64, count};
use super::super::view::{Hit, Look, Verdict, View};
use super::{Family, Prefix, is_placeholder, is_wordy};

pub(super) const FAMILY: Family = Family {
    name: "chat",
    pii: false,
    kinds: &[
        "slack-bot",
        "slack-user",
        "slack-app",
        "slack-token",
        "slack-webhook",
        "discord-webhook",
        "teams-webhook",
    ],
    prefixes: &[
        Prefix::other("xoxb-", "slack-bot", |v, s, b| slack(v, s, b, "slack-bot")),
        Prefix::other("xoxp-", "slack-user", |v, s, b| slack(v, s, b, "slack-user")),
        Prefix::other("xoxa-", "slack-token", |v, s, b| slack(v, s, b, "slack-token")),
        Prefix::other("xoxr-", "slack-token", |v, s, b| slack(v, s, b, "slack-token")),
        Prefix::other("xoxs-", "slack-token", |v, s, b| slack(v, s, b, "slack-token")),
        Prefix::other("xoxo-", "slack-token", |v, s, b| slack(v, s, b, "slack-token")),
        Prefix::other("xoxc-", "slack-token", |v, s, b| slack(v, s, b, "slack-token")),
        Prefix::other("xoxd-", "slack-token", |v, s, b| slack(v, s, b, "slack-token")),
        Prefix::other("xoxe-", "slack-token", |v, s, b| slack(v, s, b, "slack-token")),
        Prefix::other("xoxe.xoxb-", "slack-token", |v, s, b| slack(v, s, b, "slack-token")),
        Prefix::other("xoxe.xoxp-", "slack-token", |v, s, b| slack(v, s, b, "slack-token")),
        Prefix::other("xapp-", "slack-app", |v, s, b| slack(v, s, b, "slack-app")),
        Prefix::other("https://hooks.slack.com/", "slack-webhook", slack_webhook),
        Prefix::other("hooks.slack.com/", "slack-webhook", slack_webhook),
        Prefix::other("https://discord.com/api/webhooks/", "discord-webhook", discord_webhook),
        Prefix::other("https://discordapp.com/api/webhooks/", "discord-webhook", discord_webhook),
        Prefix::other("discord.com/api/webhooks/", "discord-webhook", discord_webhook),
        Prefix::other("discordapp.com/api/webhooks/", "discord-webhook", discord_webhook),
    ],
    #[cfg(not(target_family = "wasm"))]
    examples: &[
        &["xoxb", "-104837265910-", "2938475610293-", "Zq81kTmVx0bYw3RcNe57PsDh"],
        &["https://hooks.slack", ".com/services/", "T0ZQ81KTM/B0YW3RCNE/", "57PsDhJ2gLfUa6oQ1yXk9wBv"],
    ],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[&["xoxb", "-your-bot-token"], &["xoxo", "-hznytgauctub see you"]],
};

fn slack(view: &View, start: usize, body: usize, kind: &'static str) -> Verdict {
    let end = view.run(body, ALNUM | DASH | super::super::bytes::PERCENT, 320);
    if view.open(end) && end - body < 320 {
        return Verdict::Need(ALNUM | DASH, body + 320);
    }
    let text = view.slice(body, end);
    let head = text.get(..64).unwrap_or(text);
    let varied = || count(head, DIGIT) >= 6 || (head.len() == 64 && !is_wordy(head));
    if text.len() < 20 || super::shows_place(view, body, end) || !varied() {
        Verdict::No
    } else {
        Hit::verdict(start, end, kind)
    }
}

const PATH: u32 = URL64 | super::super::bytes::BASE64;

fn slack_webhook(view: &View, start: usize, body: usize) -> Verdict {
    let end = view.run(body, PATH, 160);
    if view.open(end) && end - body < 160 {
        return Verdict::Need(PATH, body + 160);
    }
    let path = view.slice(body, end);
    let known = path.starts_with(b"services/") || path.starts_with(b"workflows/") || path.starts_with(b"triggers/");
    let last = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    if !known || last.len() < 20 || is_placeholder(last) {
        Verdict::No
    } else {
        Hit::verdict(start, end, "slack-webhook")
    }
}

fn discord_webhook(view: &View, start: usize, body: usize) -> Verdict {
    let digits = view.run(body, DIGIT, 24);
    if view.open(digits) {
        return Verdict::Need(0, 0);
    }
    match view.look(digits, b"/") {
        Look::No => return Verdict::No,
        Look::Cut => return Verdict::Need(0, 0),
        Look::Yes if digits - body < 15 => return Verdict::No,
        Look::Yes => {}
    }
    super::run(view, start, digits + 1, URL64, 50, "discord-webhook")
}
