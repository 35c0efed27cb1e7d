//! Usage and cost: raw counts of any provider, normalised and priced to the last picodollar.
//!
//! A raw usage object is read by its [`shapes`] into [`usage`]; [`prices`] finds the model and [`select`] what applied at
//! the time; [`pricing`] turns both into one figure; [`session`] adds up a log. Floats exist only at the very end.

pub mod arithmetic;
pub mod budget;
pub mod doc;
pub mod flags;
mod packed;
pub mod prices;
pub mod pricing;
pub mod select;
pub mod session;
pub mod shapes;
mod streams;
mod table;
pub mod total;
pub mod usage;
pub mod when;

use super::error::{Error, Kind, Result};
use super::json::{self, Surrogates, Value};

use doc::{Doc, Json};
use shapes::{Shape, shape};
use usage::Reading;

pub use budget::Budget;
pub use flags::Flags;
pub use prices::PriceTable;
pub use pricing::{Cost, Record, Source};
pub use session::{Pricing, UsageState, priced_note, session_usage};
pub use total::CostTotal;
pub use usage::Usage;

/// Finds a shape by the name a caller gave.
///
/// # Errors
/// `invalid_usage` for a name that is none.
fn known_shape(name: &str) -> Result<&'static Shape> {
    let unknown = || {
        let quoted: String = name.chars().take(super::limits::MAX_QUOTE).collect();
        Error::new(Kind::InvalidUsage, "the API shape is not known").with("apiShape", quoted)
    };
    shape(name).ok_or_else(unknown)
}

/// Reads a record that is given as JSON text.
fn with_record(text: &str, work: &mut dyn FnMut(&Record)) -> Result<()> {
    let refused = |e: Error| Error::new(Kind::InvalidUsage, ["usage is not JSON: ", e.message()].concat());
    let doc = Doc::parse(text).map_err(refused)?;
    let record = Record::read(doc.root());
    if record.shape.is_none() {
        let name = doc.root().any(&["apiShape", "api_shape"]).and_then(Json::string).unwrap_or_default();
        known_shape(name)?;
    }
    work(&record);
    Ok(())
}

/// Normalises one raw usage object; `options` is JSON text `{provider?, model?, toolCounts?, providerMetadata?}`.
///
/// # Errors
/// `invalid_usage` for an unknown shape or text that is not JSON.
pub fn normalize(shape: &str, raw: &str, options: &str) -> Result<Reading> {
    let mut name = String::new();
    json::write_string(&mut name, shape);
    let more = options.trim().strip_prefix('{').filter(|more| *more != "}");
    let text = ["{\"apiShape\":", &name, ",\"raw\":", raw, more.map_or("", |_| ","), more.unwrap_or("}")].concat();
    let mut out = Reading::MISSING;
    with_record(&text, &mut |record| out = record.reading())?;
    Ok(out)
}

/// Makes one raw usage object (JSON text, `null` when nothing was said) out of the payloads of one streamed answer.
///
/// # Errors
/// `invalid_usage` for an unknown shape or text that is not a JSON array.
pub fn merge_stream(shape: &str, payloads: &str) -> Result<String> {
    let shape = known_shape(shape)?;
    let payloads = json::parse(payloads, Surrogates::Replace).unwrap_or_default();
    let refused = || Error::new(Kind::InvalidUsage, "payloads are not a JSON array");
    let payloads = payloads.as_array().ok_or_else(refused)?;
    Ok(shape.merge(payloads).unwrap_or(Value::Null).to_text())
}

/// Prices one record given as JSON text.
///
/// # Errors
/// `invalid_usage` for text that is not an object, or an unknown shape.
pub fn price_record<T>(
    record: &str,
    table: &PriceTable,
    now: time::Millis,
    take: impl FnOnce(Reading, Cost) -> T,
) -> Result<T> {
    let mut out = None;
    let mut take = Some(take);
    with_record(record, &mut |record| {
        let (reading, cost) = record.price(table, Some(now));
        out = take.take().map(|take| take(reading, cost));
    })?;
    out.ok_or_else(|| Error::new(Kind::InvalidUsage, "there is no record"))
}

use super::time;
