//! `cargo xtask size`: the module raw and compressed against its budget, and where the bytes are.

use std::collections::BTreeMap;
use std::fs;

use crate::args::Args;
use crate::config::{Config, root};
use crate::process::{command, output, run_quiet};
use crate::{Outcome, package, tools};

pub fn task(args: &mut Args) -> Outcome {
    let shown = args.number("--top")?.unwrap_or(15);
    args.finish()?;
    package::build(false)?;
    let config = Config::read()?;
    let verdict = check(&config);
    print_largest(&config, usize::try_from(shown).unwrap_or(usize::MAX))?;
    verdict
}

/// Prints raw, gzip and brotli size of the module; fails over the budget.
pub fn check(config: &Config) -> Outcome {
    let file = config.text("size.file")?;
    let script = "const z = require('zlib'), b = require('fs').readFileSync(process.argv[1]);\
        console.log(b.length, z.gzipSync(b, {level: 9}).length, z.brotliCompressSync(b).length)";
    let text = output(command("node").args(["-e", script, file])).ok_or_else(|| format!("{file}: not built"))?;
    let sizes: Vec<u64> = text.split(' ').filter_map(|number| number.parse().ok()).collect();
    let [raw, gzip, brotli] = sizes[..] else { return Err(format!("sizes of {file}: {text:?}")) };
    let (budget, aim) = (config.number("size.budget-gzip")?, config.number("size.aim-gzip")?);
    println!("{file}: raw {raw}, gzip {gzip}, brotli {brotli} bytes (budget gzip {budget}, aim {aim})");
    if gzip > budget {
        return Err(format!("{file}: {gzip} bytes gzip are over the budget of {budget} in wasm-pack.toml"));
    }
    Ok(())
}

/// The largest crates, modules and functions, before the optimiser (which drops the names).
fn print_largest(config: &Config, count: usize) -> Outcome {
    let bindgen = tools::wasm_bindgen(config)?;
    let module = package::module_path(config.text("tools.rust-target")?, config.text("build.release.profile")?);
    let dir = root().join("target/size");
    // wasm-bindgen demangles the names.
    let flags = ["--target", "web", "--no-typescript", "--out-name", "named", "--out-dir"];
    run_quiet(command(&bindgen.cli).args(flags).arg(&dir).arg(&module))?;
    let wasm = fs::read(dir.join("named_bg.wasm")).map_err(|error| error.to_string())?;
    let functions = functions(&wasm).ok_or("the module's sections cannot be read")?;
    println!("\nbefore the optimiser, bytes of code:");
    print_groups("crate", &functions, count, |name| crate_of(name).to_owned());
    print_groups("module of sessionlog", &functions, count, |name| module_of(name).unwrap_or_default());
    print_groups("function", &functions, count, without_hash);
    Ok(())
}

fn print_groups(what: &str, functions: &[(String, usize)], count: usize, group: impl Fn(&str) -> String) {
    let mut sums: BTreeMap<String, usize> = BTreeMap::new();
    for (name, bytes) in functions {
        *sums.entry(group(name)).or_default() += bytes;
    }
    sums.remove("");
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    println!("  largest by {what}");
    for (name, bytes) in sums.into_iter().take(count) {
        println!("  {bytes:>9}  {}", name.chars().take(110).collect::<String>());
    }
}

/// `<sessionlog::core::x::Y as core::fmt::Display>::fmt::h0123` belongs to sessionlog.
fn crate_of(name: &str) -> &str {
    let start =
        name.trim_start_matches(['<', '&', '(', '[', '*', ' ']).trim_start_matches("dyn ").trim_start_matches("mut ");
    let first = start.split_once("::").map_or("(no crate)", |(first, _)| first);
    // `f64 as core[c5930c85]`: an implementation for a type of no crate.
    let first = first.rsplit_once(" as ").map_or(first, |(_, of)| of);
    first.split('[').next().unwrap_or(first)
}

/// The first three parts of a path inside sessionlog: `core::derive::pairing`.
fn module_of(name: &str) -> Option<String> {
    let (_, rest) = name.split_once("sessionlog::")?;
    let parts: Vec<_> = rest.split("::").take(3).collect();
    let is_module = |part: &&&str| part.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
    Some(parts.iter().take_while(is_module).copied().collect::<Vec<_>>().join("::"))
}

fn without_hash(name: &str) -> String {
    name.rsplit_once("::h").map_or(name, |(path, _)| path).to_owned()
}

/// Every function of a module with its name and the bytes of its body.
fn functions(wasm: &[u8]) -> Option<Vec<(String, usize)>> {
    let mut reader = Reader(wasm.get(8..)?);
    let (mut imported, mut bodies, mut names) = (0, Vec::new(), BTreeMap::new());
    while !reader.0.is_empty() {
        let id = reader.byte()?;
        let size = reader.number()?;
        let mut section = Reader(reader.take(size)?);
        match id {
            0 if section.text()? == "name" => names = function_names(section)?,
            2 => imported = imported_functions(section)?,
            10 => {
                for _ in 0..section.number()? {
                    let size = section.number()?;
                    section.take(size)?;
                    bodies.push(size);
                }
            }
            _ => {}
        }
    }
    let named = bodies.into_iter().enumerate().map(|(at, size)| {
        let at = at + imported;
        (names.get(&at).cloned().unwrap_or_else(|| format!("function {at}")), size)
    });
    Some(named.collect())
}

fn function_names(mut section: Reader<'_>) -> Option<BTreeMap<usize, String>> {
    let mut names = BTreeMap::new();
    while !section.0.is_empty() {
        let id = section.byte()?;
        let size = section.number()?;
        let mut part = Reader(section.take(size)?);
        if id == 1 {
            for _ in 0..part.number()? {
                names.insert(part.number()?, part.text()?.to_owned());
            }
        }
    }
    Some(names)
}

fn imported_functions(mut section: Reader<'_>) -> Option<usize> {
    let mut functions = 0;
    for _ in 0..section.number()? {
        section.text()?;
        section.text()?;
        match section.byte()? {
            0 => {
                section.number()?;
                functions += 1;
            }
            1 => {
                section.byte()?;
                section.limits()?;
            }
            2 => section.limits()?,
            3 => {
                section.take(2)?;
            }
            _ => return None,
        }
    }
    Some(functions)
}

/// A cursor over a module's bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// An unsigned LEB128 number.
    fn number(&mut self) -> Option<usize> {
        let (mut number, mut shift) = (0_usize, 0);
        loop {
            let byte = self.byte()?;
            number |= usize::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
            shift += 7;
        }
    }

    fn text(&mut self) -> Option<&'a str> {
        let count = self.number()?;
        std::str::from_utf8(self.take(count)?).ok()
    }

    fn limits(&mut self) -> Option<()> {
        let has_maximum = self.byte()? & 1 == 1;
        self.number()?;
        if has_maximum {
            self.number()?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_grouped_by_crate_and_module() {
        let name = "<sessionlog::core::derive::pairing::Pair as core::fmt::Debug>::fmt::h01";
        assert_eq!(crate_of(name), "sessionlog");
        assert_eq!(module_of(name).as_deref(), Some("core::derive::pairing"));
        assert_eq!(crate_of("<&alloc::string::String as x::Y>::z"), "alloc");
        assert_eq!(module_of("sessionlog::core::json::Value::parse::h2").as_deref(), Some("core::json"));
        assert_eq!(crate_of("<f64 as core[c5930c85a12de822]::fmt::Display>::fmt"), "core");
        assert_eq!(crate_of("memcpy"), "(no crate)");
    }

    #[test]
    fn bodies_and_names_are_read_from_a_module() {
        // (module (import "a" "b" (func)) (func $f) with a name section.
        let wasm = [
            b"\0asm\x01\0\0\0".as_slice(),
            &[1, 4, 1, 0x60, 0, 0],
            &[2, 7, 1, 1, b'a', 1, b'b', 0, 0],
            &[3, 2, 1, 0],
            &[10, 4, 1, 2, 0, 0x0b],
            &[0, 11, 4, b'n', b'a', b'm', b'e', 1, 4, 1, 1, 1, b'f'],
        ];
        assert_eq!(functions(&wasm.concat()), Some(vec![("f".to_owned(), 2)]));
    }
}
