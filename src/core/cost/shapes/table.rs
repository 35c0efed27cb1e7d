//! Every shape, and where it keeps its counts.

use super::super::streams::{anthropic, last, last_ollama, sum_chunks, sum_steps};
use super::super::usage::slot::*;
use super::{
    BESIDE, BY_TOTAL, ELSE_ON_TOP, Group, INSIDE, LIFETIMES, METADATA, ON_TOP, SAYS, Shape, Slot, TELLS, TICKS,
    UPSTREAM,
};

/// Says that there is usage, but is no count of ours.
const OTHER: Slot = 0x3f;

const IN_DETAILS: &[(Slot, &str)] =
    &[(READ, "cached_tokens"), (WRITTEN, "cache_write_tokens"), (IN_AUDIO, "audio_tokens"), (IN_IMAGE, "image_tokens")];
const OUT_DETAILS: &[(Slot, &str)] = &[REASONED, (OUT_AUDIO, "audio_tokens"), (OUT_IMAGE, "image_tokens")];
const REASONED: (Slot, &str) = (REASONING | TELLS, "reasoning_tokens");
const CACHED: &[(Slot, &str)] = &[(READ_AUDIO, "audio_tokens"), (READ_IMAGE, "image_tokens")];
const ELSE: &[(Slot, &str)] =
    &[(READ, "num_cached_tokens"), (READ, "prompt_cache_hit_tokens"), (READ, "cached_tokens"), REASONED];
/// By lifetime, in the lists and objects that say so.
const WRITTEN_FOR: &[(Slot, &str)] = &[(SHORT, "ephemeral_5m_input_tokens"), (LONG, "ephemeral_1h_input_tokens")];
/// By modality, in lists.
const IN_MODES: &[(Slot, &str)] = &[(IN_AUDIO, "AUDIO"), (IN_IMAGE, "IMAGE")];
const OUT_MODES: &[(Slot, &str)] = &[(OUT_AUDIO, "AUDIO"), (OUT_IMAGE, "IMAGE")];

/// OpenAI's chat completions and the APIs that copy their usage object. Several spellings are around.
const CHAT: &[Group] = &[
    PLAIN,
    (&["prompt_tokens_details"], IN_DETAILS),
    (&[INSIDE, "cached_tokens_details"], CACHED),
    (&["prompt_token_details"], IN_DETAILS),
    (&[INSIDE, "cached_tokens_details"], CACHED),
    (&["completion_tokens_details"], OUT_DETAILS),
    (&["completion_token_details"], OUT_DETAILS),
    (&[], ELSE),
];
const PLAIN: Group = (&[], &[(INPUT | SAYS, "prompt_tokens"), (OUTPUT | SAYS, "completion_tokens")]);
const RESPONSES: &[Group] = &[
    (&[], &[(INPUT | SAYS, "input_tokens"), (OUTPUT | SAYS, "output_tokens")]),
    (&["input_tokens_details"], IN_DETAILS),
    (&[INSIDE, "cached_tokens_details"], CACHED),
    (&["input_token_details"], IN_DETAILS),
    (&[INSIDE, "cached_tokens_details"], CACHED),
    (&["output_tokens_details"], OUT_DETAILS),
    (&["output_token_details"], OUT_DETAILS),
    (&[], ELSE),
];

const OPENAI: Shape = Shape {
    name: "openai.chat",
    groups: CHAT,
    traits: BY_TOTAL,
    amount: &[],
    // Running totals or one final figure, at the top, under `x_groq`, or in the first choice.
    places: &["usage", "x_groq.usage", "choices.usage"],
    merge: last,
};
const OPENAI_RESPONSES: Shape =
    Shape { name: "openai.responses", groups: RESPONSES, places: &["response.usage", "usage"], ..OPENAI };
const AI_SDK: Shape = Shape { places: &["totalUsage", "usage"], merge: sum_steps, ..OPENAI };

/// Every shape.
pub const SHAPES: &[Shape] = &[
    OPENAI,
    OPENAI_RESPONSES,
    Shape { name: "openai.realtime", ..OPENAI_RESPONSES },
    Shape {
        name: "anthropic.messages",
        groups: &[
            (
                &[],
                &[
                    (INPUT | SAYS, "input_tokens"),
                    (OUTPUT | SAYS, "output_tokens"),
                    (WRITTEN | SAYS, "cache_creation_input_tokens"),
                    (READ | SAYS, "cache_read_input_tokens"),
                ],
            ),
            (&["cache_creation"], WRITTEN_FOR),
            (&["output_tokens_details"], &[(REASONING, "thinking_tokens")]),
            (&["server_tool_use"], &[(SEARCHES, "web_search_requests")]),
        ],
        traits: LIFETIMES | BESIDE,
        places: &["message.usage", "usage"],
        merge: anthropic,
        ..OPENAI
    },
    Shape {
        name: "gemini.generate",
        groups: &[
            (
                &[],
                &[
                    (INPUT | SAYS, "promptTokenCount"),
                    (OUTPUT | SAYS, "candidatesTokenCount"),
                    // Live sessions call the candidates a response.
                    (OUTPUT | SAYS, "responseTokenCount"),
                    (REASONING | SAYS, "thoughtsTokenCount"),
                    (TOOL | SAYS, "toolUsePromptTokenCount"),
                    (READ | SAYS, "cachedContentTokenCount"),
                    (OTHER | SAYS, "totalTokenCount"),
                ],
            ),
            (&["promptTokensDetails"], IN_MODES),
            (&["toolUsePromptTokensDetails"], IN_MODES),
            (&["cacheTokensDetails"], &[(READ_AUDIO, "AUDIO"), (READ_IMAGE, "IMAGE")]),
            (&["candidatesTokensDetails"], OUT_MODES),
            (&["responseTokensDetails"], OUT_MODES),
        ],
        traits: ON_TOP,
        places: &["usageMetadata", "response.usageMetadata"],
        ..OPENAI
    },
    Shape {
        name: "bedrock.converse",
        groups: &[
            (
                &[],
                &[
                    (INPUT | SAYS, "inputTokens"),
                    (OUTPUT | SAYS, "outputTokens"),
                    (READ | SAYS, "cacheReadInputTokens"),
                    (WRITTEN | SAYS, "cacheWriteInputTokens"),
                ],
            ),
            (&["cacheDetails"], &[(SHORT, "5m"), (LONG, "1h")]),
        ],
        traits: LIFETIMES | BESIDE,
        places: &["metadata.usage", "usage"],
        ..OPENAI
    },
    Shape { name: "mistral.chat", ..OPENAI },
    Shape { name: "groq.chat", ..OPENAI },
    Shape { name: "deepseek.chat", ..OPENAI },
    Shape { name: "xai.chat", amount: &["cost_in_usd_ticks"], traits: BY_TOTAL | ELSE_ON_TOP | TICKS, ..OPENAI },
    Shape { name: "xai.responses", amount: &["cost_in_usd_ticks"], traits: BY_TOTAL | TICKS, ..OPENAI_RESPONSES },
    Shape { name: "openrouter.chat", amount: &["cost"], traits: BY_TOTAL | UPSTREAM, ..OPENAI },
    Shape {
        name: "perplexity.chat",
        groups: &[
            PLAIN,
            (&[], &[(REASONING, "reasoning_tokens"), (CITATION, "citation_tokens"), (SEARCHES, "num_search_queries")]),
        ],
        traits: ON_TOP,
        amount: &["cost", "total_cost"],
        ..OPENAI
    },
    Shape {
        name: "cohere.v2",
        // What is billed, not what was tokenised.
        groups: &[(&["billed_units"], &[(INPUT | SAYS, "input_tokens"), (OUTPUT | SAYS, "output_tokens")])],
        traits: 0,
        places: &["delta.usage", "usage", "response.meta"],
        ..OPENAI
    },
    Shape {
        name: "ollama.chat",
        groups: &[(
            &[],
            &[(INPUT | SAYS, "prompt_eval_count"), (OUTPUT | SAYS, "eval_count"), (READ, "prompt_eval_cached_count")],
        )],
        traits: 0,
        merge: last_ollama,
        ..OPENAI
    },
    Shape {
        name: "ai-sdk.v4",
        groups: &[(&[], &[(INPUT | SAYS, "promptTokens"), (OUTPUT | SAYS, "completionTokens")])],
        traits: 0,
        ..AI_SDK
    },
    Shape {
        name: "ai-sdk.v5",
        groups: &[(
            &[],
            &[
                (INPUT | SAYS, "inputTokens"),
                (OUTPUT | SAYS, "outputTokens"),
                (READ, "cachedInputTokens"),
                (REASONING, "reasoningTokens"),
            ],
        )],
        traits: METADATA,
        ..AI_SDK
    },
    Shape {
        name: "ai-sdk.v6",
        groups: &[
            // Numbers, or objects with their total and parts (the interface of language models since version 3).
            (&[], &[(INPUT | SAYS, "inputTokens"), (OUTPUT | SAYS, "outputTokens")]),
            (&["inputTokenDetails"], &[(READ, "cacheReadTokens"), (WRITTEN, "cacheWriteTokens")]),
            (&["outputTokenDetails"], &[(REASONING, "reasoningTokens")]),
            (&["inputTokens"], &[(INPUT | SAYS, "total"), (READ, "cacheRead"), (WRITTEN, "cacheWrite")]),
            (&["outputTokens"], &[(OUTPUT | SAYS, "total"), (REASONING, "reasoning")]),
            (&[], &[(READ, "cachedInputTokens"), (REASONING, "reasoningTokens")]),
            (&["raw", "cache_creation"], WRITTEN_FOR),
        ],
        traits: 0,
        ..AI_SDK
    },
    Shape {
        name: "langchain.usage_metadata",
        groups: &[
            (&[], &[(INPUT | SAYS, "input_tokens"), (OUTPUT | SAYS, "output_tokens")]),
            (&["input_token_details"], &[(READ, "cache_read"), (WRITTEN, "cache_creation"), (IN_AUDIO, "audio")]),
            (&["input_token_details"], WRITTEN_FOR),
            (&["output_token_details"], &[(REASONING, "reasoning"), (OUT_AUDIO, "audio")]),
        ],
        traits: LIFETIMES,
        merge: sum_chunks,
        places: &["usage_metadata"],
        ..OPENAI
    },
    // The plain form with the cost in dollars.
    Shape { name: "step.usage", groups: &[PLAIN], traits: 0, amount: &["cost"], ..OPENAI },
];
