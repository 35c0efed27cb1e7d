//! `wasm-pack.toml` and what else decides a build: where the repository is, which versions `Cargo.lock` holds.

use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

use crate::Outcome;

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// The settings in `wasm-pack.toml`.
pub struct Config(Table);

impl Config {
    pub fn read() -> Outcome<Self> {
        Ok(Self(read_table("wasm-pack.toml")?))
    }

    fn at(&self, path: &str) -> Outcome<&toml::Value> {
        let mut table = &self.0;
        let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
        for key in parents.split('.').filter(|key| !key.is_empty()) {
            table = table
                .get(key)
                .and_then(toml::Value::as_table)
                .ok_or_else(|| format!("wasm-pack.toml lacks [{parents}]"))?;
        }
        table.get(last).ok_or_else(|| format!("wasm-pack.toml lacks {path}"))
    }

    /// A text at a dotted path.
    pub fn text(&self, path: &str) -> Outcome<&str> {
        self.at(path)?.as_str().ok_or_else(|| format!("wasm-pack.toml: {path} is not a text"))
    }

    /// A list of texts at a dotted path.
    pub fn texts(&self, path: &str) -> Outcome<Vec<String>> {
        let list = self.at(path)?.as_array().ok_or_else(|| format!("wasm-pack.toml: {path} is not a list"))?;
        Ok(list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect())
    }

    /// A whole number at a dotted path.
    pub fn number(&self, path: &str) -> Outcome<u64> {
        let number = self.at(path)?.as_integer().and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| format!("wasm-pack.toml: {path} is not a number"))
    }

    /// The wasm-bindgen version, which must be the one in `Cargo.lock`.
    pub fn wasm_bindgen(&self) -> Outcome<String> {
        let wanted = self.text("tools.wasm-bindgen")?;
        let locked = locked_version("wasm-bindgen")?;
        if wanted == locked {
            return Ok(locked);
        }
        Err(format!("wasm-pack.toml names wasm-bindgen {wanted}, Cargo.lock holds {locked}: make them equal"))
    }
}

fn read_table(name: &str) -> Outcome<Table> {
    let text = fs::read_to_string(root().join(name)).map_err(|error| format!("{name}: {error}"))?;
    text.parse().map_err(|error| format!("{name}: {error}"))
}

fn locked_version(name: &str) -> Outcome<String> {
    let lock = read_table("Cargo.lock")?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let found =
        packages.into_iter().flatten().find(|package| package.get("name").and_then(|n| n.as_str()) == Some(name));
    let version = found.and_then(|package| package.get("version")).and_then(toml::Value::as_str);
    version.map(str::to_owned).ok_or_else(|| format!("Cargo.lock has no {name}"))
}
