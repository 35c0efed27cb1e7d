//! The house keeps its shape: arrows between rooms and modules, tables that name every file, a pure core, clean tracked files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every Rust file below a folder of `src`.
fn rust_files(dir: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("src").join(dir)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of src") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "src/{dir} holds no Rust file");
    found.sort();
    found
}

/// The lines of a file without comments, each with its number.
fn code_lines(text: &str) -> Vec<(usize, &str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.split("//").next().unwrap_or("")));
    lines.filter(|(_, line)| !line.trim().is_empty()).collect()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn none(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// Names that follow `marker` in a line, up to the end of the identifier; `{a, b::c}` yields `a` and `b`.
fn names_after<'a>(line: &'a str, marker: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (at, _) in line.match_indices(marker) {
        let before = line[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &line[at + marker.len()..];
        match rest.strip_prefix('{') {
            Some(group) => names.extend(top_level_items(group)),
            None => names.push(identifier(rest)),
        }
    }
    names
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

fn top_level_items(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut items) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                items.push(&group[start..at]);
                start = group.len();
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&group[start.min(group.len())..]);
    items.into_iter().map(|item| identifier(item.trim())).filter(|item| !item.is_empty()).collect()
}

/// Uses of `crate::core::x` as (line, x). `use` groups over several lines are joined first.
fn core_uses(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut pending: Option<(usize, String)> = None;
    for (number, line) in code_lines(text) {
        let (start, joined) = match pending.take() {
            Some((start, before)) => (start, format!("{before} {}", line.trim())),
            None => (number, line.trim().to_owned()),
        };
        let is_use =
            joined.starts_with("use ") || joined.starts_with("pub use ") || joined.starts_with("pub(crate) use ");
        if is_use && !joined.contains(';') {
            pending = Some((start, joined));
            continue;
        }
        found.extend(names_after(&joined, "crate::core::").into_iter().map(|name| (start, name.to_owned())));
    }
    found
}

/// The modules of the core in the order of `src/core/mod.rs`.
fn core_order() -> Vec<String> {
    let text = read(&root().join("src/core/mod.rs"));
    let lines = code_lines(&text);
    let mods = lines.iter().filter_map(|(_, line)| line.trim().strip_prefix("pub mod ")?.strip_suffix(';'));
    mods.map(str::to_owned).collect()
}

fn module_of(path: &Path) -> String {
    let inside = path.strip_prefix(root().join("src/core")).expect("a file of the core");
    let first = inside.components().next().expect("a name").as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// Test modules may judge with whatever they like; they stand last in a file.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap_or(text)
}

#[test]
fn core_modules_import_only_from_above() {
    let order = core_order();
    assert!(order.len() > 5, "the list of modules was read: {order:?}");
    let place = |name: &str| order.iter().position(|known| known == name);
    let mut wrong = Vec::new();
    for path in rust_files("core") {
        let own = module_of(&path);
        let Some(own_place) = place(&own) else { continue };
        for (line, name) in core_uses(without_tests(&read(&path))) {
            if place(&name).is_some_and(|other| other > own_place) {
                wrong.push(format!(
                    "{}:{line}: {own} uses {name}, which stands below it in src/core/mod.rs",
                    shown(&path)
                ));
            }
        }
    }
    none("imports against the arrows", wrong);
}

#[test]
fn rooms_import_only_toward_the_core() {
    let mut wrong = Vec::new();
    for (room, forbidden) in [("core", &["crate::store", "crate::wasm"][..]), ("store", &["crate::wasm"][..])] {
        for path in rust_files(room) {
            for (line, code) in code_lines(without_tests(&read(&path))) {
                if let Some(name) = forbidden.iter().find(|name| code.contains(**name)) {
                    wrong.push(format!("{}:{line}: {room} names {name}", shown(&path)));
                }
            }
        }
    }
    none("imports against the arrows", wrong);
}

#[test]
fn the_core_knows_no_javascript() {
    let mut wrong = Vec::new();
    for path in rust_files("core") {
        for (line, code) in code_lines(&read(&path)) {
            for name in
                ["js_sys", "web_sys", "wasm_bindgen", "gloo_", "SystemTime", "Instant::now", "std::fs", "std::net"]
            {
                if code.contains(name) && !(is_test_file(&path) || after_tests(&path, line)) {
                    wrong.push(format!("{}:{line}: names {name}", shown(&path)));
                }
            }
        }
    }
    none("the core is pure", wrong);
}

fn is_test_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

fn after_tests(path: &Path, line: usize) -> bool {
    let text = read(path);
    let tests = text.lines().position(|code| code.trim() == "#[cfg(test)]");
    tests.is_some_and(|at| line > at + 1)
}

#[test]
fn every_file_is_in_its_table() {
    let mut wrong = Vec::new();
    for folder in ["event", "scrub", "cost", "derive", "interop"] {
        let table = read(&root().join("src/core").join(folder).join("mod.rs"));
        for path in rust_files(&format!("core/{folder}")) {
            let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let direct = path.parent() == Some(root().join("src/core").join(folder).as_path());
            // A table's macro may take the bare name and make the module of it.
            let mentioned = code_lines(&table).iter().any(|(_, line)| words(line).any(|word| word == stem));
            if direct && stem != "mod" && !mentioned {
                wrong.push(format!("{}: src/core/{folder}/mod.rs does not name it", shown(&path)));
            }
        }
    }
    none("files without a line in their table", wrong);
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Tracked text files with their contents.
fn tracked() -> Vec<(String, String)> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().expect("git lists files");
    assert!(listed.status.success(), "git ls-files works here");
    let names = String::from_utf8(listed.stdout).expect("names in UTF-8");
    let texts = names.split('\0').filter(|name| !name.is_empty()).filter_map(|name| {
        let text = fs::read_to_string(root().join(name)).ok()?;
        Some((name.to_owned(), text))
    });
    texts.collect()
}

#[test]
fn tracked_files_name_no_machine_and_no_registry() {
    let own = "tests/native/structure.rs";
    // Spelled in parts so that this file does not find itself in other searches.
    let folders = ["work", "farm"].map(|name| format!("/{name}/"));
    let hosts = [["registry.", "npmjs.org"].concat(), ["/arti", "factory/"].concat()];
    let mut wrong = Vec::new();
    for (name, text) in tracked().iter().filter(|(name, _)| name != own) {
        for (at, line) in text.lines().enumerate() {
            let path = folders.iter().find(|folder| starts_a_path(line, folder));
            if let Some(found) = path.or_else(|| hosts.iter().find(|host| line.contains(host.as_str()))) {
                wrong.push(format!("{name}:{}: {found}", at + 1));
            }
        }
    }
    none("machine paths or registry hosts", wrong);
}

/// Whether `folder` stands at the start of a path: `framework/x` and `a/work/b` are something else.
fn starts_a_path(line: &str, folder: &str) -> bool {
    let mut found = line.match_indices(folder);
    found.any(|(at, _)| !line[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || "_.-".contains(c)))
}

#[test]
fn lock_files_carry_no_addresses() {
    let files = tracked();
    let locks: Vec<_> = files.iter().filter(|(name, _)| name.ends_with("package-lock.json")).collect();
    assert!(!locks.is_empty(), "package-lock.json is tracked");
    let wrong = locks.iter().filter(|(_, text)| text.contains("\"resolved\": \"http")).map(|(name, _)| name.clone());
    none("lock files with download addresses (npm config: omit-lockfile-registry-resolved)", wrong.collect());
}

#[test]
fn the_checks_find_what_they_look_for() {
    assert_eq!(names_after("use crate::core::{json::Value, log};", "crate::core::"), ["json", "log"]);
    assert_eq!(names_after("let x = crate::core::error::Kind::Busy;", "crate::core::"), ["error"]);
    let joined = core_uses("use crate::core::{\n    json::{A, B},\n    session,\n};\n");
    assert_eq!(joined, [(1, "json".to_owned()), (1, "session".to_owned())]);
    let folder = ["/wo", "rk/"].concat();
    assert!(starts_a_path(&format!("cd {folder}wt"), &folder));
    assert!(!starts_a_path("frame/work/x", &folder));
}
