//! Checks a price table and prints its date: the committed one, or the file that is named.

use std::process::ExitCode;
use std::rc::Rc;

use sessionlog::core::cost::PriceTable;

fn main() -> ExitCode {
    let file = std::env::args().nth(1);
    let table = match &file {
        None => PriceTable::builtin().map_err(|error| error.to_string()),
        Some(file) => std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}")).and_then(|text| {
            let table = PriceTable::from_json(&text).map_err(|error| error.to_string())?;
            Ok(Rc::new(table))
        }),
    };
    match table {
        Ok(table) => {
            println!("prices as of {}, {} models, no fault", table.as_of(), table.len());
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
