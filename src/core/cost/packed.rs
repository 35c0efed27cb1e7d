//! The table shipped inside the module, in a form that says little twice: see [`TABLE`].
//!
//! One line each, and below it what belongs to it:
//! - first of all the table as JSON, without providers;
//! - `@` and a provider as JSON, without models;
//! - `=` and a model: its id, its patterns (`=` in them is the id), those it excludes behind `!`, other members as JSON
//!   behind `&`;
//! - a price, in words. A letter from `a` to `m` is the rate of that key in the order of [`RateKey::ALL`], one amount or
//!   one per step; nothing behind it takes the rate away. A capital letter gives the rate as a multiple of `a`. `x` takes
//!   over the rates and steps of the model's first price, times a factor. `s` are the steps, `t` is the tier, `>` and `<`
//!   are the first and the last time, `$` and `%` are fees and hours as JSON.
//!
//! `cargo xtask prices` writes it out of `prices.json`, which is what people read and change.

use std::rc::Rc;

use super::arithmetic::exact;
use super::prices::{Model, Price, PriceTable, Rate, RateKey};
use super::table::{Checked, FACTOR_PLACES, RATE_PLACES, Reader, fees, more, parsed};
use super::when;

/// The packed table.
const TABLE: &str = include_str!("prices.packed");

/// Unpacks the table. It is known to be sound, so nothing is checked that is not read anyway.
#[inline(never)]
pub(super) fn table() -> Checked<PriceTable> {
    let mut lines = TABLE.split('\n');
    let mut reader = Reader::default();
    let mut table = reader.table(&parsed(lines.next().unwrap_or_default()))?;
    for line in lines {
        let rest = line.get(1..).unwrap_or_default();
        let last = table.providers.last_mut().and_then(Rc::get_mut);
        match (line.as_bytes().first(), last) {
            (Some(b'@'), _) => table.providers.push(Rc::new(reader.provider(&parsed(rest))?)),
            (Some(b'='), Some(provider)) => provider.models.push(model(rest)),
            (_, Some(provider)) => {
                let model = provider.models.last_mut().ok_or("stands under no model")?;
                let price = price(&mut reader, line, model.prices.first());
                model.prices.push(price);
            }
            _ => {}
        }
    }
    Ok(table)
}

fn model(line: &str) -> Model {
    let mut out = Model::default();
    for word in line.split(' ') {
        let rest = word.get(1..).unwrap_or_default();
        match word.as_bytes().first() {
            _ if out.id.is_empty() => out.id.push_str(word),
            Some(b'!') => out.exclude.push(rest.to_owned()),
            Some(b'&') => more(&mut out, &parsed(rest)),
            _ => out.matches.push(word.replace('=', &out.id)),
        }
    }
    if out.matches.is_empty() {
        out.matches.push(out.id.clone());
    }
    out
}

fn price(reader: &mut Reader, line: &str, first: Option<&Price>) -> Price {
    let mut out = Price::default();
    for word in line.split(' ') {
        let rest = word.get(1..).unwrap_or_default();
        match word.as_bytes().first().copied().unwrap_or_default() {
            b'x' => {
                let Some(first) = first else { continue };
                out.steps.clone_from(&first.steps);
                out.rates.clone_from(&first.rates);
                let factor = decimal(rest, FACTOR_PLACES);
                for rate in &mut out.rates {
                    rate.atto = times(rate.atto, factor);
                }
            }
            b's' => out.steps = rest.split(',').filter_map(|step| step.parse().ok()).collect(),
            b't' => out.tier = Some(rest.to_owned()),
            b'>' => out.from = when::parse(rest).unwrap_or(out.from),
            b'<' => out.until = when::parse(rest).unwrap_or(out.until),
            b'$' => out.fees = fees(&parsed(rest)),
            b'%' => out.hours = reader.hours(&parsed(rest)).ok(),
            letter => rate(&mut out.rates, letter, rest),
        }
    }
    out
}

/// Sets the amounts of one key, or takes them away.
fn rate(rates: &mut Vec<Rate>, letter: u8, amounts: &str) {
    let index = usize::from(letter.to_ascii_lowercase().wrapping_sub(b'a'));
    let Some(&(key, _)) = RateKey::ALL.get(index) else { return };
    rates.retain(|rate| rate.key != key);
    let input = rates.first().map_or(0, |rate| rate.atto);
    for (step, amount) in amounts.split('/').enumerate().filter(|(_, amount)| !amount.is_empty()) {
        let is_factor = letter.is_ascii_uppercase();
        let atto = if is_factor { times(input, decimal(amount, FACTOR_PLACES)) } else { decimal(amount, RATE_PLACES) };
        rates.push(Rate { key, step, atto });
    }
}

fn decimal(text: &str, places: u32) -> u128 {
    exact(text, places).unwrap_or_default()
}

/// An amount times a factor; the packer sees to it that nothing is lost.
#[inline(never)]
fn times(amount: u128, factor: u128) -> u128 {
    amount * factor / 10_u128.pow(FACTOR_PLACES)
}

#[cfg(test)]
mod tests {
    use super::super::prices::Provider;
    use super::*;

    /// Those that are read from JSON keep the order of its members.
    fn sorted(table: &PriceTable) -> Vec<Provider> {
        let mut providers: Vec<_> = table.providers.iter().map(|p| Provider::clone(p)).collect();
        for model in providers.iter_mut().flat_map(|p| &mut p.models) {
            for price in &mut model.prices {
                price.rates.sort_by_key(|rate| (rate.key as usize, rate.step));
            }
        }
        providers
    }

    #[test]
    fn the_packed_table_is_the_one_that_people_read() {
        let ours = table().unwrap();
        let theirs = PriceTable::from_json(include_str!("prices.json")).unwrap();
        assert_eq!(ours.as_of, theirs.as_of);
        assert_eq!(ours.tier_aliases, theirs.tier_aliases);
        assert_eq!(ours.tier_equal, theirs.tier_equal);
        for (ours, theirs) in sorted(&ours).iter().zip(&sorted(&theirs)) {
            for (ours, theirs) in ours.models.iter().zip(&theirs.models) {
                assert_eq!(ours, theirs);
            }
            assert_eq!(ours, theirs);
        }
        assert_eq!(ours.providers.len(), theirs.providers.len());
    }
}
