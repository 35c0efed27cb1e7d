//! Bindings: they translate between JavaScript and the core, and decide nothing.
//!
//! The classes exported here are raw: the hand-written shell in `npm/src` wraps them into the public interface.

mod backends;
mod cost;
mod derive;
mod engine;
mod env;
mod error;
mod interop;
mod record;
mod run;
mod scrub;
mod vfs;

/// Hands the engine's own reading and printing of doubles to the core.
#[wasm_bindgen::prelude::wasm_bindgen(start)]
pub fn start() {
    crate::core::double::set(crate::core::double::Doubles {
        parse: |text| js_sys::Number::parse_float(text),
        print: |number| {
            js_sys::Number::from(number).to_string_with_radix(10).map_or_else(|_| String::new(), String::from)
        },
    });
}
