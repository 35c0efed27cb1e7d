//! Doubles and their decimal text, as JavaScript reads and prints them.
//!
//! The tables that this takes are 20 KB of compressed WebAssembly, and every JavaScript engine has them: in the module the
//! bindings hand over the engine's own functions at start; natively the standard library does the work.

use std::cell::Cell;

/// How doubles are read and printed.
#[derive(Clone, Copy)]
pub struct Doubles {
    /// Returns the nearest double of a decimal number.
    pub parse: fn(&str) -> f64,
    /// Prints the shortest text that reads as the same double, as `Number::toString` does.
    pub print: fn(f64) -> String,
}

#[cfg(not(target_family = "wasm"))]
const START: Doubles = Doubles { parse: |text| text.parse().unwrap_or(f64::NAN), print: native::print };
#[cfg(target_family = "wasm")]
const START: Doubles = Doubles { parse: |_| f64::NAN, print: |_| String::from("null") };

thread_local! {
    static DOUBLES: Cell<Doubles> = const { Cell::new(START) };
}

/// Sets who reads and prints doubles.
pub fn set(doubles: Doubles) {
    DOUBLES.set(doubles);
}

/// Returns the nearest double of a decimal number; nothing for other text.
pub fn parse(text: &str) -> Option<f64> {
    let number = (DOUBLES.get().parse)(text);
    (!number.is_nan()).then_some(number)
}

/// Prints the shortest text that reads as the same double.
pub fn print(number: f64) -> String {
    (DOUBLES.get().print)(number)
}

#[cfg(not(target_family = "wasm"))]
mod native {
    /// Prints a double as ECMAScript's Number::toString does.
    pub fn print(number: f64) -> String {
        if number == 0.0 {
            return "0".to_owned();
        }
        let text = format!("{:e}", number.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let count = digits.len() as i32;
        let point = exponent.parse::<i32>().unwrap_or(0) + 1;
        let sign = if number < 0.0 { "-" } else { "" };
        let body = if count <= point && point <= 21 {
            format!("{digits}{}", "0".repeat((point - count) as usize))
        } else if 0 < point && point <= 21 {
            let (whole, part) = digits.split_at(point as usize);
            format!("{whole}.{part}")
        } else if -6 < point && point <= 0 {
            format!("0.{}{digits}", "0".repeat(-point as usize))
        } else {
            let (head, tail) = digits.split_at(1);
            let dot = if tail.is_empty() { "" } else { "." };
            let sign = if point > 0 { "+" } else { "-" };
            format!("{head}{dot}{tail}e{sign}{}", (point - 1).abs())
        };
        format!("{sign}{body}")
    }
}
