//! Checks the price table that is shipped in the module and says how old it is: `cargo xtask prices`.

use sessionlog::core::cost::PriceTable;

fn main() -> std::process::ExitCode {
    match PriceTable::builtin() {
        Ok(table) => {
            println!("prices as of {}, {} entries", table.as_of(), table.len());
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("the price table is not valid: {} {}", error.message(), error.details().to_text());
            std::process::ExitCode::FAILURE
        }
    }
}
