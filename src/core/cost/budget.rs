//! A budget: what a request may cost is reserved before it is sent and settled when its usage is known.

use crate::core::error::{Error, Kind, Result};

use super::arithmetic::{pico_of_usd, usd_text};
use super::doc::Doc;
use super::prices::PriceTable;
use super::pricing::Record;
use crate::core::json::Object;
use crate::core::time::Millis;

/// A limit, what was spent, and what is held back for requests that are under way. Amounts are picodollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    limit: Option<i128>,
    spent: i128,
    reserved: i128,
}

impl Budget {
    /// Starts with nothing spent; no limit means that everything is allowed.
    pub fn new(limit: Option<i128>) -> Self {
        Budget { limit, ..Budget::default() }
    }

    /// Reads a limit in dollars, written as a decimal.
    ///
    /// # Errors
    /// `invalid_argument` when it is no decimal of at least 0.
    pub fn of_usd(limit: &str) -> Result<Self> {
        let pico = pico_of_usd(limit);
        let pico = pico.ok_or_else(|| {
            Error::new(Kind::InvalidArgument, "a budget is a decimal number of dollars of at least 0")
        })?;
        Ok(Budget::new(Some(pico)))
    }

    /// Sets another limit; what was spent stays.
    pub fn set_limit(&mut self, limit: Option<i128>) {
        self.limit = limit;
    }

    /// Returns what may still be reserved; `None` without a limit.
    pub fn left(&self) -> Option<i128> {
        self.limit.map(|limit| limit.saturating_sub(self.spent).saturating_sub(self.reserved).max(0))
    }

    /// Returns what was spent.
    pub fn spent(&self) -> i128 {
        self.spent
    }

    /// Says whether the limit is reached.
    pub fn is_reached(&self) -> bool {
        self.limit.is_some_and(|limit| self.spent >= limit)
    }

    /// Holds back an amount before a request is sent. An unknown amount (0) is allowed as long as something is left.
    ///
    /// # Errors
    /// `budget_reached`, with what is left in `details.leftUsd`; nothing is reserved then.
    pub fn reserve(&mut self, amount: i128) -> Result<()> {
        let amount = amount.max(0);
        if let Some(left) = self.left()
            && (left < amount || left == 0)
        {
            return Err(Error::new(Kind::BudgetReached, "the budget does not cover the next request")
                .with("leftUsd", usd_text(left)));
        }
        self.reserved = self.reserved.saturating_add(amount);
        Ok(())
    }

    /// Gives a reservation back and books what the request did cost; an unknown cost books the reservation.
    pub fn settle(&mut self, reserved: i128, actual: Option<i128>) {
        let reserved = reserved.max(0).min(self.reserved);
        self.reserved -= reserved;
        self.spent = self.spent.saturating_add(actual.unwrap_or(reserved).max(0));
    }
}

/// Returns what a request may cost at most, from its expected counts; `None` when the model has no price.
pub fn estimate(
    table: &PriceTable,
    provider: Option<&str>,
    model: &str,
    input: u64,
    output: u64,
    at: Millis,
) -> Option<i128> {
    let counts = Object::from([("prompt_tokens", input.into()), ("completion_tokens", output.into())]);
    let mut record =
        Object::from([("apiShape", "openai.chat".into()), ("model", model.into()), ("raw", counts.into())]);
    if let Some(provider) = provider {
        record.set("provider", provider);
    }
    let text = record.to_text();
    let doc = Doc::parse(&text).ok()?;
    Record::read(doc.root()).price(table, Some(at)).1.pico
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_is_held_and_settled() {
        let mut budget = Budget::of_usd("1").unwrap();
        budget.reserve(600_000_000_000).unwrap();
        let refused = budget.reserve(500_000_000_000).unwrap_err();
        assert_eq!(
            (refused.code(), refused.details().get("leftUsd").unwrap().as_str()),
            ("budget_reached", Some("0.4"))
        );
        budget.settle(600_000_000_000, Some(100_000_000_000));
        assert_eq!(budget.left(), Some(900_000_000_000));
        budget.reserve(900_000_000_000).unwrap();
        budget.settle(900_000_000_000, None);
        assert!(budget.is_reached() && budget.reserve(0).is_err());
        budget.set_limit(Some(2_000_000_000_000));
        budget.reserve(1_000_000_000_000).unwrap();
        assert_eq!(budget.spent(), 1_000_000_000_000);
    }

    #[test]
    fn without_a_limit_everything_is_allowed() {
        let mut budget = Budget::new(None);
        budget.reserve(i128::MAX).unwrap();
        assert_eq!(budget.left(), None);
        assert!(Budget::of_usd("-1").is_err() && Budget::of_usd("x").is_err());
    }

    #[test]
    fn an_estimate_is_priced_like_a_request() {
        let table = PriceTable::builtin().unwrap();
        let at = super::super::when::parse("2026-11-20").unwrap();
        assert_eq!(estimate(&table, Some("openai"), "gpt-4o", 1_000, 100, at), Some(3_500_000_000));
        assert_eq!(estimate(&table, None, "nothing", 1_000, 100, at), None);
    }
}
