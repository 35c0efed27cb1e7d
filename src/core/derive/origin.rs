//! Whether an answer came from the model that is asked now: what is opaque goes back only to where it came from.

use super::options::RequestOptions;
use crate::core::message::{Origin, Reasoning};

/// What a target does with reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningRule {
    /// It has no place for it.
    Never,
    /// A signed or wholly opaque block.
    Signed,
    /// An item with its id and its sealed copy.
    Sealed,
    /// A part with its signature.
    Part,
    /// Whatever the provider behind it wants.
    Passed,
}

/// The families of providers, and words that tell them.
const FAMILIES: [(&str, &[&str]); 3] = [
    ("anthropic", &["anthropic", "claude"]),
    ("google", &["google", "gemini", "generate"]),
    ("openai", &["openai", "azure", "chatgpt", "gpt-", "responses", "completions"]),
];

/// Returns the family a provider, an API or a model belongs to.
fn family(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    let names = |words: &[&str]| words.iter().any(|w| word.contains(w));
    FAMILIES.iter().find(|(_, words)| names(words)).map(|(family, _)| *family)
}

/// Returns the target an API name stands for, when it can be told.
fn target_of(api: &str) -> Option<&'static str> {
    let api = api.to_ascii_lowercase();
    let has = |word: &str| api.contains(word);
    match () {
        () if has("responses") => Some("openai-responses"),
        () if has("chat") || has("completions") => Some("openai-chat"),
        () if has("anthropic") || has("messages") => Some("anthropic"),
        () if has("gemini") || has("google") || has("generat") => Some("gemini"),
        () if has("converse") || has("cohere") || has("ollama") => Some("another"),
        () => None,
    }
}

/// Says whether an answer came from the same provider, API and model that is asked now.
///
/// What the caller does not name is no condition; but then what the log names must be at home at the target.
pub(crate) fn same_origin(origin: &Origin<'_>, options: &RequestOptions) -> bool {
    let plain = |t: &Option<crate::core::tape::Text<'_>>| t.as_ref().map(|t| t.plain().into_owned());
    let (provider, api, model) = (plain(&origin.provider), plain(&origin.api), plain(&origin.model));
    if options.provider.is_some() && options.provider != provider {
        return false;
    }
    if options.model.is_some() && options.model != model {
        return false;
    }
    let is_sdk = options.target.reasoning == ReasoningRule::Passed;
    if let Some(target) = api.as_deref().and_then(target_of)
        && !is_sdk
    {
        return target == options.target.name;
    }
    let home = options.target.family;
    let told = [&provider, &api, &model].into_iter().flatten().find_map(|word| family(word));
    is_sdk || home.is_none() || told.is_none() || told == home || options.provider.is_some()
}

/// The family of an answer in the words of the AI SDK, as far as the log tells.
pub(crate) fn sdk_family(origin: &Origin<'_>, options: &RequestOptions) -> Option<&'static str> {
    let words = [&origin.provider, &origin.api, &origin.model];
    let told = words.into_iter().flatten().find_map(|word| family(&word.plain()));
    told.or_else(|| options.provider.as_deref().and_then(family))
}

impl ReasoningRule {
    /// Says whether a block has what it needs to go back.
    pub fn takes(self, block: &Reasoning<'_>, family: Option<&str>) -> bool {
        let signed = block.signature.as_ref().is_some_and(|s| !s.is_blank());
        let redacted = block.redacted.as_ref().is_some_and(|s| !s.is_blank());
        let item = block.item_id.as_ref().is_some_and(|i| is_item_id(&i.plain()));
        let sealed = item && block.encrypted.as_ref().is_some_and(|s| !s.is_blank());
        match self {
            ReasoningRule::Never => false,
            ReasoningRule::Signed => signed || redacted,
            ReasoningRule::Sealed => sealed,
            ReasoningRule::Part => signed,
            ReasoningRule::Passed => match family {
                Some("anthropic") => signed || redacted,
                Some("google") => signed,
                Some("openai") => sealed,
                _ => !block.text.is_blank(),
            },
        }
    }
}

/// Says whether an id can be an item's at the Responses API.
pub(crate) fn is_item_id(id: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    !id.is_empty() && id.len() <= 64 && id.bytes().all(plain)
}
