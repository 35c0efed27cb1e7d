//! Registries of packages and images: npm, PyPI, crates.io, RubyGems, NuGet, Docker, Artifactory.

use super::super::bytes::{ALNUM, HEX, URL64};
use super::{Family, Prefix};

pub(super) const FAMILY: Family = Family {
    name: "packages",
    pii: false,
    kinds: &["npm-token", "pypi-token", "docker-pat", "rubygems", "crates-io", "nuget", "artifactory"],
    prefixes: &[
        Prefix::run("npm_", "npm-token", ALNUM, 36),
        Prefix::run("pypi-AgE", "pypi-token", URL64, 50),
        Prefix::run("dckr_pat_", "docker-pat", URL64, 24),
        Prefix::run("dckr_oat_", "docker-pat", URL64, 24),
        Prefix::run("rubygems_", "rubygems", HEX, 48),
        Prefix::exact("cio", "crates-io", ALNUM, 32, 32),
        Prefix::exact("oy2", "nuget", ALNUM, 43, 43),
        Prefix::exact("AKCp", "artifactory", ALNUM, 60, 80),
    ],
    #[cfg(not(target_family = "wasm"))]
    examples: &[
        &["npm", "_Zq81kTmVx0bYw3", "RcNe57PsDhJ2gLfUa6oQ1y"],
        &["dckr", "_pat_", "Zq81kTmV-x0bYw3RcNe57PsDhJ2"],
    ],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[
        &["npm_config_registry=https://registry.example.com npm_lifecycle_event=postinstall"],
        &["cioWriteBufferedOutputToFileHandle5"],
        &["npm_", "xxxxxxxxxxxxxxxxxx", "xxxxxxxxxxxxxxxxxx"],
    ],
};
