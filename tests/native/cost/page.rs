//! The examples of docs/cost.md: the module's figure, and the arithmetic written under it, are the figure on the page.

use std::collections::BTreeSet;
use std::path::Path;

use num_rational::BigRational;
use serde_json::Value;
use sessionlog::core::cost::shapes::SHAPES;
use sessionlog::core::cost::{Flags, PriceTable};

use super::price;

fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cost.md")).unwrap()
}

/// Shape, record, arithmetic and figure of every example.
fn examples(page: &str) -> Vec<(String, Value, String, String)> {
    let sections = page.split("\n### `").skip(1).map(|section| {
        let (shape, rest) = section.split_once('`').unwrap();
        let (_, rest) = rest.split_once("```json\n").unwrap();
        let (record, rest) = rest.split_once("\n```").unwrap();
        let (sum, figure) = rest.trim().split_once(" = **$").unwrap();
        let figure = figure.split("**").next().unwrap();
        (shape.to_owned(), serde_json::from_str(record).unwrap(), sum.to_owned(), figure.to_owned())
    });
    sections.collect()
}

fn decimal(text: &str) -> BigRational {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}").parse().unwrap();
    BigRational::new(digits, num_bigint::BigInt::from(10).pow(fraction.len() as u32))
}

/// `(a × b + c × d) / n + e × f`
fn evaluated(sum: &str) -> BigRational {
    let products = |terms: &str| {
        let products = terms.split(" + ").map(|t| {
            let (a, b) = t.split_once(" × ").unwrap();
            decimal(a) * decimal(b)
        });
        products.fold(decimal("0"), |a, b| a + b)
    };
    let Some(inner) = sum.strip_prefix('(') else { return products(sum) };
    let (tokens, rest) = inner.split_once(") / ").unwrap();
    match rest.split_once(" + ") {
        Some((divisor, fees)) => products(tokens) / decimal(divisor) + products(fees),
        None => products(tokens) / decimal(rest),
    }
}

#[test]
fn every_shape_has_an_example_and_every_example_is_right() {
    let page = page();
    let mut seen = BTreeSet::new();
    for (shape, record, sum, figure) in examples(&page) {
        assert_eq!(record["apiShape"], *shape);
        let (_, cost) = price(&record);
        let usd = cost.pico.map(sessionlog::core::cost::arithmetic::usd_text);
        assert_eq!(usd.as_deref(), Some(&*figure), "{shape}");
        assert_eq!(evaluated(&sum), decimal(&figure), "{shape}");
        seen.insert(shape);
    }
    assert_eq!(seen, SHAPES.iter().map(|s| s.name.to_owned()).collect());
}

#[test]
fn every_flag_is_explained() {
    let page = page();
    for (_, name, doc) in Flags::ALL {
        assert!(page.contains(&format!("| `{name}` | {doc} |")), "{name}");
    }
}

#[test]
fn the_example_of_own_prices_is_a_sound_table() {
    let page = page();
    let (_, rest) = page.split_once("## Own prices").unwrap();
    let table = rest.split("```json\n").nth(1).unwrap().split("\n```").next().unwrap();
    assert_eq!(PriceTable::from_json(table).unwrap().len(), 1);
}
