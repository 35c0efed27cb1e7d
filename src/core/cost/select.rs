//! Which rates and fees apply: by date, hour, tier and size of the request.

use crate::core::time::Millis;

use super::prices::{Fee, Hours, Model, Price, RATES, RateKey, STAND_INS};
use super::when;

/// The rates and fees of one request.
pub struct Effective<'m> {
    rates: [Option<u128>; RATES],
    /// Of the base, of the hour, of the tier.
    fees: [&'m [Fee]; 3],
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

/// The valid entry that began last, of those for a tier and for hours of the day or all day.
#[inline(never)]
fn latest<'m>(model: &'m Model, at: Millis, tier: &str, by_hour: bool) -> Option<&'m Price> {
    let mut best: Option<&Price> = None;
    for price in &model.prices {
        let is_tier = price.tier.as_deref().unwrap_or_default() == tier;
        let belongs = is_tier && (!tier.is_empty() || price.hours.is_some() == by_hour);
        if belongs && best.is_none_or(|b| price.from > b.from) && price.is_valid(at) {
            best = Some(price);
        }
    }
    best
}

/// Finds what applies at a time, at a tier (nothing is the standard one) and for a total input; `None` when no price was
/// valid then. Entries for hours, then those for the tier replace the base key by key.
pub fn effective<'m>(model: &'m Model, at: Millis, tier: &str, input: u64) -> Option<Effective<'m>> {
    let mut out = Effective { rates: [None; RATES], fees: [&[]; 3], has_tier: true };
    let layers = [("", false), ("", true), (tier, false)];
    let count = if tier.is_empty() { 2 } else { 3 };
    for ((tier, by_hour), fees) in layers.into_iter().take(count).zip(&mut out.fees) {
        let is_base = tier.is_empty() && !by_hour;
        match latest(model, at, tier, by_hour) {
            Some(price) => {
                price.apply(&mut out.rates, input);
                *fees = &price.fees;
            }
            None if is_base => return None,
            None => out.has_tier = tier.is_empty(),
        }
    }
    Some(out)
}

impl<'m> Effective<'m> {
    /// Returns the rate of a kind of token, or of what stands in for it, in attodollars.
    #[inline(never)]
    pub fn rate(&self, key: RateKey) -> Option<u128> {
        let stand_ins = STAND_INS.get(key as usize).copied().unwrap_or_default();
        let mut keys = std::iter::once(&key).chain(stand_ins);
        keys.find_map(|key| self.rates.get(*key as usize).copied().flatten())
    }

    /// Returns the fee for a tool.
    #[inline(never)]
    pub fn fee(&self, tool: &str) -> Option<&'m Fee> {
        self.fees.iter().rev().find_map(|fees| fees.iter().find(|fee| fee.tool == tool))
    }
}
