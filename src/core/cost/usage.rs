//! Normalised usage: what every provider's counts are turned into before anything is priced.

use super::arithmetic::{MAX_COUNT, write_count};
use super::doc::Json;
use super::flags::{Flags, said};

macro_rules! counts {
    ($($field:ident $key:literal $core:literal $doc:literal)+) => {
        /// Counts of one response or of many. Input includes cache reads and writes, output includes reasoning; the
        /// others are subsets of these two, never on top (the meanings of OpenTelemetry's `gen_ai.usage.*`).
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Usage { $(#[doc = $doc] pub $field: u64,)+ }

        impl Usage {
            /// Key in JSON, whether it is always written, and documentation, in order.
            pub const KEYS: &'static [(&'static str, bool, &'static str)] = &[$(($key, $core, said!($doc)),)+];

            /// Returns the counts in the order of [`Usage::KEYS`].
            pub fn counts(&self) -> [u64; Self::KEYS.len()] {
                [$(self.$field,)+]
            }

            /// Returns the places of the counts in the order of [`Usage::KEYS`].
            #[inline(never)]
            pub(super) fn slots(&mut self) -> [&mut u64; Self::KEYS.len()] {
                [$(&mut self.$field,)+]
            }
        }
    };
}

counts! {
    input_tokens "inputTokens" true "Everything that was sent, cache reads and writes included."
    output_tokens "outputTokens" true "Everything that was generated, reasoning included."
    cache_read_tokens "cacheReadTokens" true "Input that came from the prompt cache."
    cache_write_tokens "cacheWriteTokens" true "Input that was written to the prompt cache."
    cache_write_5m_tokens "cacheWrite5mTokens" true "Written with the lifetime of five minutes, where the provider says so."
    cache_write_1h_tokens "cacheWrite1hTokens" true "Written with the lifetime of one hour, where the provider says so."
    reasoning_tokens "reasoningTokens" true "Output that was reasoning."
    input_audio_tokens "inputAudioTokens" false "Input that was audio, cached or not."
    output_audio_tokens "outputAudioTokens" false "Output that was audio."
    cache_read_audio_tokens "cacheReadAudioTokens" false "Audio that came from the prompt cache."
    input_image_tokens "inputImageTokens" false "Input that was images, cached or not."
    output_image_tokens "outputImageTokens" false "Output that was images."
    cache_read_image_tokens "cacheReadImageTokens" false "Images that came from the prompt cache."
    tool_input_tokens "toolInputTokens" false "Input that the provider's own tools brought in."
    citation_tokens "citationTokens" false "Output that was citations."
    web_search_requests "webSearchRequests" false "Web searches that the provider made."
    file_search_requests "fileSearchRequests" false "File searches that the provider made."
}

/// Places of counts in [`Usage::KEYS`].
#[allow(missing_docs, reason = "short for the names of the keys")]
pub(super) mod slot {
    pub const INPUT: u8 = 0;
    pub const OUTPUT: u8 = 1;
    pub const READ: u8 = 2;
    pub const WRITTEN: u8 = 3;
    pub const SHORT: u8 = 4;
    pub const LONG: u8 = 5;
    pub const REASONING: u8 = 6;
    pub const IN_AUDIO: u8 = 7;
    pub const OUT_AUDIO: u8 = 8;
    pub const READ_AUDIO: u8 = 9;
    pub const IN_IMAGE: u8 = 10;
    pub const OUT_IMAGE: u8 = 11;
    pub const READ_IMAGE: u8 = 12;
    pub const TOOL: u8 = 13;
    pub const CITATION: u8 = 14;
    pub const SEARCHES: u8 = 15;
}

impl Usage {
    /// Adds counts; what does not fit is held at the largest number.
    pub fn add(&mut self, other: &Usage) {
        self.change(other, u64::saturating_add);
    }

    /// Takes counts away that were added before.
    pub fn subtract(&mut self, other: &Usage) {
        self.change(other, u64::saturating_sub);
    }

    #[inline(never)]
    fn change(&mut self, other: &Usage, change: fn(u64, u64) -> u64) {
        let mut copy = *other;
        for (slot, by) in self.slots().into_iter().zip(copy.slots()) {
            *slot = change(*slot, *by);
        }
    }

    /// Reads what [`Usage::write`] wrote.
    pub fn read(json: Json) -> Usage {
        let mut out = Usage::default();
        for (slot, (key, ..)) in out.slots().into_iter().zip(Self::KEYS) {
            *slot = json.count(key);
        }
        out
    }

    /// Appends the JSON object: seven keys always, the others when they are not 0.
    pub fn write(&self, out: &mut String) {
        out.push('{');
        let mut copy = *self;
        for ((key, core, _), count) in Self::KEYS.iter().zip(copy.slots()) {
            if !core && *count == 0 {
                continue;
            }
            if !out.ends_with('{') {
                out.push(',');
            }
            out.push('"');
            out.push_str(key);
            out.push_str("\":");
            write_count(out, *count);
        }
        out.push('}');
    }

    /// Says whether a count was held at its limit.
    pub(super) fn is_capped(&self) -> bool {
        self.input_tokens >= MAX_COUNT || self.output_tokens >= MAX_COUNT
    }
}

/// What a shape read out of one raw usage object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// The counts; `None` when the object says nothing.
    pub usage: Option<Usage>,
    /// What to know about them.
    pub flags: Flags,
}

impl Reading {
    /// A response that says nothing about usage.
    pub const MISSING: Reading = Reading { usage: None, flags: Flags::MISSING_USAGE };
}
