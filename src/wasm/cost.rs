//! Usage and cost for the shell: a price table, a running total, and texts in and out.

use std::cell::RefCell;
use std::rc::Rc;

use wasm_bindgen::prelude::*;

use super::error::throw;
use crate::core::cost::arithmetic::{CENT_PLACES, Digits, PICO_PLACES, scaled_text};
use crate::core::cost::{self, Cost, CostTotal, PriceTable};
use crate::core::json::write_string;

/// A checked price table.
#[wasm_bindgen]
pub struct RawPriceTable {
    table: Rc<PriceTable>,
}

#[wasm_bindgen]
impl RawPriceTable {
    /// Returns the table shipped inside the module.
    pub fn builtin() -> Result<RawPriceTable, JsValue> {
        PriceTable::builtin().map(|table| RawPriceTable { table }).map_err(throw)
    }

    /// Reads and checks a table from JSON text.
    pub fn from_json(text: &str) -> Result<RawPriceTable, JsValue> {
        PriceTable::from_json(text).map(|table| RawPriceTable { table: Rc::new(table) }).map_err(throw)
    }

    /// Returns this table with another laid over it.
    pub fn with(&self, over: &RawPriceTable) -> RawPriceTable {
        RawPriceTable { table: Rc::new(self.table.with(&over.table)) }
    }

    /// Returns the date of the table.
    pub fn as_of(&self) -> String {
        self.table.as_of().to_owned()
    }

    /// Finds a model: JSON text `{provider, model, flags}`, or nothing.
    pub fn lookup(&self, provider: Option<String>, model: &str) -> Option<String> {
        let found = self.table.lookup(provider.as_deref(), model)?;
        let mut out = String::from("{\"provider\":");
        write_string(&mut out, found.provider_id());
        out.push_str(",\"model\":");
        write_string(&mut out, found.model_id());
        out.push_str(",\"flags\":");
        found.flags.write(&mut out);
        out.push('}');
        Some(out)
    }

    /// Prices a record (JSON text); `now` stands in for a time it does not carry. See [`pack`] for what comes out.
    pub fn cost(&self, record: &str, now: f64) -> Result<String, JsValue> {
        cost::price_record(record, &self.table, now as i64, |_, cost| pack(&cost)).map_err(throw)
    }
}

impl RawPriceTable {
    /// Returns the table, for the parts that price while they store.
    #[allow(dead_code, reason = "until the engine prices steps")]
    pub(crate) fn table(&self) -> &Rc<PriceTable> {
        &self.table
    }
}

/// Writes a cost as one short line: taking it apart in JavaScript is several times cheaper than parsing JSON.
/// `source|complete|picodollars|dollars|cents|flag,flag`; complete is 1 or 0, the amounts are empty when unknown, and
/// cents is the exact decimal, which JavaScript reads as the nearest double.
fn pack(cost: &Cost) -> String {
    let mut out = String::with_capacity(96);
    out.push_str(cost.source.name());
    out.push_str(if cost.complete { "|1" } else { "|0" });
    let digits = cost.pico.map(Digits::of);
    for places in [0, PICO_PLACES, CENT_PLACES] {
        out.push('|');
        if let Some(digits) = &digits {
            digits.write(&mut out, places);
        }
    }
    out.push('|');
    for (i, name) in cost.flags.names().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(name);
    }
    out
}

/// An exact running total of cents.
#[wasm_bindgen]
#[derive(Default)]
pub struct RawCostTotal {
    total: RefCell<CostTotal>,
}

#[wasm_bindgen]
impl RawCostTotal {
    /// Starts at nothing.
    #[wasm_bindgen(constructor)]
    pub fn new() -> RawCostTotal {
        RawCostTotal::default()
    }

    /// Adds cents, written as a decimal.
    pub fn add(&self, cents: &str) -> Result<(), JsValue> {
        self.total.borrow_mut().add_cents(cents).map_err(throw)
    }

    /// Returns the exact total in picodollars.
    pub fn picodollars(&self) -> String {
        scaled_text(self.total.borrow().pico(), 0)
    }

    /// Returns the exact total in dollars.
    pub fn usd(&self) -> String {
        self.total.borrow().usd()
    }

    /// Returns the double nearest to the exact total in cents.
    pub fn cents(&self) -> f64 {
        self.total.borrow().cents()
    }
}

fn reading_text(reading: cost::usage::Reading, raw: Option<&str>) -> String {
    let mut out = String::from("{\"usage\":");
    match reading.usage {
        Some(usage) => usage.write(&mut out),
        None => out.push_str("null"),
    }
    if let Some(raw) = raw {
        out.push_str(",\"raw\":");
        out.push_str(raw);
    }
    out.push_str(",\"flags\":");
    reading.flags.write(&mut out);
    out.push('}');
    out
}

/// Normalises one raw usage object: JSON text `{usage, flags}`.
#[wasm_bindgen]
pub fn raw_normalize_usage(shape: &str, raw: &str, options: &str) -> Result<String, JsValue> {
    cost::normalize(shape, raw, options).map(|reading| reading_text(reading, None)).map_err(throw)
}

/// Finds the usage of one streamed answer: JSON text `{usage, raw, flags}`.
#[wasm_bindgen]
pub fn raw_usage_of_stream(shape: &str, payloads: &str, options: &str) -> Result<String, JsValue> {
    let raw = cost::merge_stream(shape, payloads).map_err(throw)?;
    cost::normalize(shape, &raw, options).map(|reading| reading_text(reading, Some(&raw))).map_err(throw)
}
