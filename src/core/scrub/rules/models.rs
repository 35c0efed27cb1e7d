//! Providers of models: OpenAI, Anthropic, Hugging Face, Groq, OpenRouter, Replicate and their kin.

use super::super::bytes::{ALNUM, DASH, DIGIT, HEX, UNDERSCORE, URL64, count};
use super::super::view::{Hit, Verdict, View};
use super::{Family, Prefix};

pub(super) const FAMILY: Family = Family {
    name: "models",
    pii: false,
    kinds: &[
        "openai-legacy",
        "openai-project",
        "anthropic-api",
        "anthropic-oauth",
        "huggingface",
        "groq",
        "xai",
        "perplexity",
        "replicate",
        "openrouter",
        "langsmith",
        "langfuse",
        "pinecone",
        "elevenlabs",
        "tavily",
        "cerebras",
        "fireworks",
        "nvidia",
    ],
    prefixes: &[
        Prefix::run("sk-proj-", "openai-project", URL64, 40),
        Prefix::run("sk-svcacct-", "openai-project", URL64, 40),
        Prefix::run("sk-admin-", "openai-project", URL64, 40),
        Prefix::run("sk-None-", "openai-project", URL64, 40),
        Prefix::run("sk-ant-api", "anthropic-api", URL64, 40),
        Prefix::run("sk-ant-admin", "anthropic-api", URL64, 40),
        Prefix::run("sk-ant-", "anthropic-oauth", URL64, 40),
        Prefix::run("sk-or-", "openrouter", ALNUM | DASH, 40),
        Prefix::run("sk-lf-", "langfuse", HEX | DASH, 36),
        Prefix::other("sk-", "openai-legacy", openai_legacy),
        Prefix::run("hf_", "huggingface", ALNUM, 34),
        Prefix::run("api_org_", "huggingface", ALNUM, 34),
        Prefix::run("gsk_", "groq", ALNUM, 48),
        Prefix::run("xai-", "xai", ALNUM, 70),
        Prefix::run("pplx-", "perplexity", ALNUM, 40),
        Prefix::exact("r8_", "replicate", ALNUM, 37, 37),
        Prefix::run("lsv2_pt_", "langsmith", HEX | UNDERSCORE, 40),
        Prefix::run("lsv2_sk_", "langsmith", HEX | UNDERSCORE, 40),
        Prefix::run("pcsk_", "pinecone", ALNUM | UNDERSCORE, 50),
        Prefix::exact("sk_", "elevenlabs", HEX, 48, 48),
        Prefix::run("tvly-", "tavily", ALNUM | DASH, 28),
        Prefix::exact("csk-", "cerebras", ALNUM, 48, 48),
        Prefix::exact("fw_", "fireworks", ALNUM, 22, 24),
        Prefix::run("nvapi-", "nvidia", URL64, 60),
    ],
    #[cfg(not(target_family = "wasm"))]
    examples: &[
        &["sk-", "Zq81kTmVx0bYw3RcNe57", "T3Blbk", "FJPsDhJ2gLfUa6oQ1yXk9w"],
        &["sk-proj-", "Zq81kTmVx0bYw3RcNe57PsDhJ2gLf", "Ua6oQ1yXk9w_BvCn-Mlp"],
        &["sk-ant-api03-", "Zq81kTmVx0bYw3RcNe57PsDhJ2gLf", "Ua6oQ1yXk9w_BvCn-MlpAA"],
        &["hf_", "ZqkTmVxbYwRcNePsDhJgLf", "UaoQyXkwBvCnMlp"],
    ],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[
        &["risk-", "38jxw7prr4847sta0u7ahg3p"],
        &["ANTHROPIC_API_KEY=sk-ant-", "api03-..."],
        &["hf_hub_download_with_progress_callback_and_retries"],
        &["sk-learn-contrib is a collection"],
        &["gsk_build_pipeline_variants_for_shader_stage"],
    ],
};

/// 48 characters, with "OpenAI" in base64 in the middle of the older ones; other makers use the same two letters.
fn openai_legacy(view: &View, start: usize, body: usize) -> Verdict {
    if super::is_joined(view, start) {
        return Verdict::No;
    }
    let end = view.run(body, URL64, 320);
    if view.open(end) && end - body < 320 {
        return Verdict::Need(URL64, body + 320);
    }
    let text = view.slice(body, end);
    if text.len() < 32 || super::shows_place(view, body, end) {
        return Verdict::No;
    }
    let marked = text.windows(8).any(|w| w == b"T3BlbkFJ");
    let dense = count(text, DIGIT) * 12 >= text.len() && count(text, DASH | UNDERSCORE) * 10 <= text.len();
    if !marked && !dense {
        return Verdict::No;
    }
    Hit::verdict(start, end, "openai-legacy")
}
