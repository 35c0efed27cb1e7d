//! An exact running total of cents, as a chat session keeps it.

use crate::core::error::{Error, Kind, Result};

use super::arithmetic::{cents_nearest, pico_of_cents, usd_text};

/// A total that only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostTotal {
    pico: i128,
}

impl CostTotal {
    /// Adds an amount of cents, written as a decimal.
    ///
    /// # Errors
    /// `invalid_usage` when it is no decimal, negative, or too large; the total stays as it is.
    pub fn add_cents(&mut self, cents: &str) -> Result<()> {
        let refused = || Error::new(Kind::InvalidUsage, "an amount of cents is a decimal number of at least 0");
        let pico = pico_of_cents(cents).ok_or_else(refused)?;
        self.add_pico(pico)
    }

    /// Adds picodollars.
    ///
    /// # Errors
    /// `invalid_usage` when they are negative or too many; the total stays as it is.
    pub fn add_pico(&mut self, pico: i128) -> Result<()> {
        let sum = self.pico.checked_add(pico).filter(|_| pico >= 0);
        self.pico =
            sum.ok_or_else(|| Error::new(Kind::InvalidUsage, "the amount is negative or too large to be added"))?;
        Ok(())
    }

    /// Returns the exact total in picodollars.
    pub fn pico(&self) -> i128 {
        self.pico
    }

    /// Returns the exact total in dollars.
    pub fn usd(&self) -> String {
        usd_text(self.pico)
    }

    /// Returns the double nearest to the exact total in cents.
    pub fn cents(&self) -> f64 {
        cents_nearest(self.pico)
    }
}
