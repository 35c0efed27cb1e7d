//! Reading one raw usage object by the data of its shape.

use super::super::arithmetic::count_of;
use super::*;

/// Collects the counts of some groups; the answer has [`SAYS`] and [`TELLS`] when one that is marked so was there.
#[inline(never)]
fn gather(raw: Json, groups: &[Group], usage: &mut Usage) -> Slot {
    let mut seen = 0;
    let mut slots = usage.slots();
    let mut last = None;
    for (place, members) in groups {
        let found = match place {
            [INSIDE, rest @ ..] => last.and_then(|last: Json| last.at(rest)),
            _ => {
                last = raw.at(place);
                last
            }
        };
        let Some(object) = found else { continue };
        let is_list = object.is_array();
        for (slot, key) in *members {
            let number = if is_list { None } else { object.number_of(key) };
            seen |= if number.is_some() { *slot } else { 0 };
            let Some(count) = slots.get_mut(usize::from(slot & !(SAYS | TELLS))) else { continue };
            if is_list {
                **count = listed(object, key).saturating_add(**count);
            } else if let (0, Some(number)) = (**count, number) {
                **count = count_of(number);
            }
        }
    }
    seen
}

/// Adds up the entries of one kind in a list of `{modality, tokenCount}` or `{ttl, inputTokens}`.
#[inline(never)]
fn listed(list: Json, kind: &str) -> u64 {
    let of = |entry: Json| entry.count("tokenCount").max(entry.count("inputTokens"));
    let matching = list.children().filter(|entry| entry.is_text("modality", kind) || entry.is_text("ttl", kind));
    matching.fold(0, |sum: u64, entry| sum.saturating_add(of(entry)))
}

pub(super) fn read(shape: &Shape, raw: Json, context: &Context) -> Reading {
    let mut usage = Usage::default();
    let seen = gather(raw, shape.groups, &mut usage);
    if seen & SAYS == 0 {
        return Reading::MISSING;
    }
    let mut flags = finish(shape.traits, seen, raw, context, &mut usage);
    // Anthropic bills compaction beside the top level; iterations of other kinds are inside.
    if shape.traits & (LIFETIMES | BESIDE) == LIFETIMES | BESIDE {
        for iteration in raw.get("iterations").into_iter().flat_map(Json::children) {
            if iteration.is_text("type", "compaction") {
                let mut more = Usage::default();
                let seen = gather(iteration, shape.groups, &mut more);
                finish(shape.traits, seen, iteration, context, &mut more);
                // Searches are counted at the top.
                more.web_search_requests = 0;
                usage.add(&more);
            }
        }
    }
    if usage.is_capped() {
        flags |= Flags::COUNT_CAPPED;
    }
    Reading { usage: Some(usage), flags }
}

fn total(raw: Json, key: &str) -> Option<u64> {
    raw.number_of(key).map(count_of)
}

/// Adds reasoning to the output where it comes on top: the total decides, else the shape; what is more than the output
/// cannot be inside it.
fn add_reasoning(usage: &mut Usage, total: Option<u64>, by_default: bool) {
    let (inside, reasoning) = (usage.input_tokens + usage.output_tokens, usage.reasoning_tokens);
    let is_on_top = match total {
        _ if reasoning > usage.output_tokens => true,
        Some(total) if total == inside + reasoning => true,
        Some(total) if total == inside => false,
        _ => by_default,
    };
    usage.output_tokens += if is_on_top { reasoning } else { 0 };
}

/// Does what is more than adding up. Counts are held at 2^53, so that a few of them cannot overflow.
fn finish(traits: u8, seen: Slot, raw: Json, context: &Context, usage: &mut Usage) -> Flags {
    let mut flags = Flags::NONE;
    if traits & LIFETIMES != 0 {
        let both = usage.cache_write_5m_tokens.saturating_add(usage.cache_write_1h_tokens);
        usage.cache_write_tokens = usage.cache_write_tokens.max(both);
    }
    let mut is_beside = traits & BESIDE != 0;
    if traits & ON_TOP != 0 {
        usage.input_tokens += usage.tool_input_tokens;
        usage.output_tokens += usage.reasoning_tokens + usage.citation_tokens;
    }
    if traits & BY_TOTAL != 0 {
        let cached = usage.cache_read_tokens + usage.cache_write_tokens;
        if cached > usage.input_tokens {
            // It can only be on top.
            usage.input_tokens += cached;
            flags = Flags::CACHE_ADDITIVE;
        }
        let total = total(raw, "total_tokens");
        if seen & TELLS == 0 && context.is_gemini() {
            // Gemini behind this shape hides its thoughts in the total.
            usage.reasoning_tokens = total.unwrap_or(0).saturating_sub(usage.input_tokens + usage.output_tokens);
            usage.output_tokens += usage.reasoning_tokens;
            return flags;
        }
        add_reasoning(usage, total, traits & ELSE_ON_TOP != 0);
    }
    if traits & METADATA != 0 {
        add_reasoning(usage, total(raw, "totalTokens"), false);
        // Tokens written to the cache stand only in the provider's own metadata here.
        let metadata =
            [context.record, raw].iter().find_map(|json| json.any(&["providerMetadata", "provider_metadata"]));
        if let Some(metadata) = metadata {
            let said = |place: &[&str]| metadata.at(place).and_then(Json::number).map_or(0, count_of);
            usage.cache_write_tokens = said(&["anthropic", "cacheCreationInputTokens"]).max(said(&[
                "bedrock",
                "usage",
                "cacheWriteInputTokens",
            ]));
        }
        // The providers of Anthropic and Bedrock report the cache beside the input, all others inside it.
        is_beside =
            context.keeps_cache_beside() || metadata.is_some_and(|m| m.any(&["anthropic", "bedrock"]).is_some());
    }
    if is_beside {
        usage.input_tokens = usage.input_tokens.saturating_add(usage.cache_read_tokens);
        usage.input_tokens = usage.input_tokens.saturating_add(usage.cache_write_tokens);
    }
    flags
}
