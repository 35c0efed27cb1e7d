//! Which rates and fees apply: by date, hour, tier and size of the request.

use crate::core::time::Millis;

use super::prices::{Fee, Hours, Model, Price, RATES, RateKey};
use super::when;

/// The rates and fees of one request.
pub struct Effective<'m> {
    rates: [Option<u128>; RATES],
    base: &'m [Fee],
    overlays: [&'m [Fee]; 2],
    /// Whether the served tier has an entry.
    pub has_tier: bool,
}

impl Hours {
    fn contain(&self, at: Millis) -> bool {
        let (minute, day) = when::of_day(at);
        let inside = |&(start, end): &(i64, i64)| {
            if start < end { (start..end).contains(&minute) } else { minute >= start || minute < end }
        };
        (self.days == 0 || self.days >> day & 1 == 1) && self.spans.iter().any(inside)
    }
}

impl Price {
    fn is_valid(&self, at: Millis) -> bool {
        self.from <= at && at < self.until && self.hours.as_ref().is_none_or(|h| h.contain(at))
    }

    #[inline(never)]
    fn apply(&self, rates: &mut [Option<u128>; RATES], input: u64) {
        let step = self.steps.iter().take_while(|&&s| s <= input).count();
        for rate in &self.rates {
            if let Some(slot) = rates.get_mut(rate.key as usize).filter(|_| rate.step <= step) {
                *slot = Some(rate.atto);
            }
        }
    }
}

/// The entries that replace each other key by key.
#[derive(Clone, Copy)]
enum Layer<'t> {
    Base,
    Hours,
    Tier(&'t str),
}

/// The valid entry of a layer that began last.
#[inline(never)]
fn latest<'m>(model: &'m Model, at: Millis, layer: Layer) -> Option<&'m Price> {
    let mut best: Option<&Price> = None;
    for price in &model.prices {
        let belongs = match layer {
            Layer::Base => price.tier.is_none() && price.hours.is_none(),
            Layer::Hours => price.tier.is_none() && price.hours.is_some(),
            Layer::Tier(tier) => price.tier.as_deref() == Some(tier),
        };
        if belongs && best.is_none_or(|b| price.from > b.from) && price.is_valid(at) {
            best = Some(price);
        }
    }
    best
}

/// Finds what applies at a time, at a tier (`None` is the standard one) and for a total input; `None` when no price was
/// valid then.
pub fn effective<'m>(model: &'m Model, at: Millis, tier: Option<&str>, input: u64) -> Option<Effective<'m>> {
    let base = latest(model, at, Layer::Base)?;
    let mut out = Effective { rates: [None; RATES], base: &base.fees, overlays: [&[], &[]], has_tier: true };
    base.apply(&mut out.rates, input);
    if let Some(hour) = latest(model, at, Layer::Hours) {
        hour.apply(&mut out.rates, input);
        out.overlays[0] = &hour.fees;
    }
    if let Some(tier) = tier {
        match latest(model, at, Layer::Tier(tier)) {
            Some(entry) => {
                entry.apply(&mut out.rates, input);
                out.overlays[1] = &entry.fees;
            }
            None => out.has_tier = false,
        }
    }
    Some(out)
}

impl<'m> Effective<'m> {
    /// Returns the rate of a kind of token, or of what stands in for it, in attodollars.
    #[inline(never)]
    pub fn rate(&self, key: RateKey) -> Option<u128> {
        let own = |key: RateKey| self.rates.get(key as usize).copied().flatten();
        // What is cached and audio may have the price of audio, else of the cache.
        let chain = match key {
            RateKey::CacheReadAudio => Some([RateKey::InputAudio, RateKey::CacheRead]),
            RateKey::CacheReadImage => Some([RateKey::InputImage, RateKey::CacheRead]),
            _ => None,
        };
        if let Some(chain) = chain {
            return own(key).or_else(|| chain.into_iter().find_map(own)).or_else(|| own(RateKey::Input));
        }
        own(key).or_else(|| self.rate(key.stand_in()?))
    }

    /// Returns the fee for a tool.
    #[inline(never)]
    pub fn fee(&self, tool: &str) -> Option<&'m Fee> {
        let [hours, tier] = self.overlays;
        [tier, hours, self.base].into_iter().find_map(|fees| fees.iter().find(|f| f.tool == tool))
    }
}
