//! What is worth knowing about a figure beside the figure: one bit and one name each.

use crate::core::json::write_string;

/// The documentation of a flag; the module goes without.
macro_rules! said {
    ($doc:literal) => {
        if cfg!(target_family = "wasm") { "" } else { $doc }
    };
}
pub(super) use said;

macro_rules! flags {
    ($($name:ident $bit:literal $text:literal $doc:literal)+) => {
        impl Flags {
            $(#[doc = $doc] pub const $name: Flags = Flags(1 << $bit);)+

            /// Every flag with its name and documentation.
            pub const ALL: &'static [(Flags, &'static str, &'static str)] = &[$((Flags::$name, $text, said!($doc)),)+];
        }
    };
}

/// A set of flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u32);

flags! {
    MISSING_USAGE 0 "missing_usage" "The response says nothing about usage: the counts are unknown, not 0."
    CACHE_ADDITIVE 1 "cache_additive" "More was cached than sent, so the cached part was counted on top."
    COUNT_CAPPED 2 "count_capped" "A count is 2^53 or more; it is held there."
    PROVIDER_INFERRED 3 "provider_inferred" "No provider was given; the model id decided."
    FALLBACK_PROVIDER 4 "fallback_provider" "The prices are those of the vendor behind the provider."
    UNKNOWN_MODEL 5 "unknown_model" "The price table does not know the model."
    NO_PRICE 6 "no_price" "The price table knows the model, but no price that was valid then."
    MISSING_RATE 7 "missing_rate" "A kind of token was used that has no rate."
    TIER_FALLBACK 8 "tier_fallback" "The served tier has no rates of its own; the standard ones were taken."
    UNPRICED_TOOL 9 "unpriced_tool" "A tool was called that has no fee in the table: the figure is a lower bound."
    INVALID_TIME 10 "invalid_time" "The record's time cannot be read, so no price can be chosen."
    INVALID_OVERRIDE 11 "invalid_override" "The record's own price cannot be read."
    UPSTREAM_UNKNOWN 12 "upstream_unknown" "Own key at OpenRouter without the upstream amount: the figure is a lower bound."
    OVERFLOW 13 "overflow" "The amount is larger than can be counted."
    UNKNOWN_SHAPE 14 "unknown_shape" "The shape of the usage is not known."
}

impl Flags {
    /// The empty set.
    pub const NONE: Flags = Flags(0);

    /// Says whether all of `other` are in this set.
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Iterates over the names, in the order of the table.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().filter(move |(flag, ..)| self.has(*flag)).map(|(_, name, _)| *name)
    }

    /// Returns the flag of a name, or none.
    #[inline(never)]
    pub fn of(name: &str) -> Flags {
        Self::ALL.iter().find(|(_, text, _)| *text == name).map_or(Flags::NONE, |(flag, ..)| *flag)
    }

    /// Appends a JSON array of the names.
    pub fn write(self, out: &mut String) {
        out.push('[');
        for (i, name) in self.names().enumerate() {
            if i > 0 {
                out.push(',');
            }
            write_string(out, name);
        }
        out.push(']');
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}
