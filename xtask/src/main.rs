//! Every task a developer or CI runs: `cargo xtask <task>`.

fn main() {
    eprintln!("usage: cargo xtask build | start | test | bench | size");
    std::process::exit(2);
}
