//! The session record: mutable facts beside a log, one ordered table of fields.
//!
//! The table drives making, reading and writing, so that a new field is one row. What cannot be read is kept and written
//! back: unknown members after the known ones, unreadable levels in their own place until one is set.

use super::error::{Error, Kind, Result};
use super::json::{self, Object, Surrogates, Value};

/// What a value must be for its field to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cast {
    /// Anything.
    Any,
    /// Text; other scalars are read as their text.
    Text,
    /// Text or null.
    TextOrNull,
    /// A boolean.
    Bool,
    /// A whole number.
    Whole,
    /// A list.
    List,
    /// A list of texts, non-empty and unique.
    Texts,
    /// An object.
    Object,
    /// A level: text or a whole number, or null; another value stays as it is until a level is set.
    Level,
    /// `parent_answers`: one of [`ANSWERS`] or null; another value stays and is read as the strictest.
    Answers,
    /// `toolkit_origin`: one of [`ORIGINS`]; anything else is read as `chosen`.
    Origin,
}

/// What a parent may answer for a delegate child, the strictest first.
pub const ANSWERS: [&str; 3] = ["never", "policy", "always"];

/// How a toolkit came to be in use, the default first.
pub const ORIGINS: [&str; 3] = ["chosen", "inherited", "default"];

/// What a field is when a record lacks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lacking {
    /// The record is refused.
    Required,
    /// This JSON text.
    Is(&'static str),
    /// The first JSON text, but the second in a fresh record.
    IsFresh(&'static str, &'static str),
}

/// One row of the table.
struct Field {
    key: &'static str,
    lacking: Lacking,
    cast: Cast,
    /// Absent when null.
    optional: bool,
}

macro_rules! fields {
    ($($key:literal $cast:ident $lacking:expr $(, $optional:ident)?;)+) => {
        const FIELDS: &[Field] = &[$(Field {
            key: $key,
            lacking: $lacking,
            cast: Cast::$cast,
            optional: false $(|| stringify!($optional).len() > 0)?,
        },)+];
    };
}

use Lacking::{Is, IsFresh, Required};

fields! {
    "metadata_version" Whole IsFresh("1", "3");
    "written_by" TextOrNull Is("null");
    "id" Text Required;
    "mode" Text Required;
    "model_name" Text Required;
    "model_typed" Any Is("null");
    "working_directory" Text Required;
    "created_at" Text Required;
    "updated_at" Text Required;
    "status" Text Is("\"idle\"");
    "last_prompt" Text Is("\"\"");
    "first_preview" Text Is("\"\"");
    "title" TextOrNull Is("null");
    "test_run" Bool Is("false");
    "pending_question" Any Is("null");
    "used_memory_names" List Is("[]");
    "project_root" TextOrNull Is("null");
    "preloaded_memory_names" List Is("[]");
    "muted_memory_names" List Is("[]");
    "prompt_notes" List Is("[]");
    "parent_id" TextOrNull Is("null");
    "scratch" Bool Is("false");
    "last_turn" Any Is("null");
    "verdicts" Any Is("null"), optional;
    "delegate" Bool Is("false");
    "llm_context" Level Is("null");
    "continues" TextOrNull Is("null");
    "thinking" Level Is("null");
    "reasoning_history" Level Is("null");
    "appended_prompt_files" Texts Is("[]");
    "toolkit" Any Is("null");
    "toolkit_origin" Origin Is("\"chosen\"");
    "bundle_settings" Object Is("{}");
    "config_settings" Object Is("{}");
    "interrupted_turn" Any Is("null");
    "parent_answers" Answers Is("null");
    "working_set_pins" List Is("[]");
    "review" Any Is("null"), optional;
    "first_turn_id" Any Is("null"), optional;
    "verify_fresh" Any Is("null"), optional;
}

/// The fields that a next link or a fork carries over.
pub const SETUP: [&str; 10] = [
    "llm_context",
    "thinking",
    "reasoning_history",
    "appended_prompt_files",
    "toolkit",
    "toolkit_origin",
    "bundle_settings",
    "config_settings",
    "parent_answers",
    "working_set_pins",
];

/// A session record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// One value per row of the table, as written.
    values: Vec<Value>,
    /// Members that no row knows.
    extras: Object,
}

fn constant(text: &str) -> Value {
    json::parse(text, Surrogates::Replace).unwrap_or_default()
}

fn row(key: &str) -> Option<usize> {
    FIELDS.iter().position(|f| f.key == key)
}

impl Record {
    /// Makes a fresh record. Unknown and missing fields are refused, all of them named.
    pub fn fresh(given: Object) -> Result<Record> {
        refuse_unknown(&given)?;
        let missing: Vec<&str> = FIELDS
            .iter()
            .filter(|f| f.lacking == Required && given.get(f.key).is_none_or(Value::is_null))
            .map(|f| f.key)
            .collect();
        if !missing.is_empty() {
            return Err(fields_error("a record lacks", &missing));
        }
        let start = FIELDS.iter().map(|f| match f.lacking {
            Is(text) | IsFresh(_, text) => constant(text),
            Required => Value::Null,
        });
        let mut record = Record { values: start.collect(), extras: Object::default() };
        record.set(given)?;
        Ok(record)
    }

    /// Reads a record. A missing required field is an error that names it; unknown members are kept.
    pub fn read(text: &str) -> Result<Record> {
        let Value::Object(mut members) = json::parse(text, Surrogates::Replace)? else {
            return Err(Error::new(Kind::Corrupt, "a record must be an object"));
        };
        let mut values = Vec::with_capacity(FIELDS.len());
        for field in FIELDS {
            let value = match (members.remove(field.key), field.lacking) {
                (Some(value), _) => keep(field, value),
                (None, Is(text) | IsFresh(text, _)) => constant(text),
                (None, Required) => {
                    return Err(
                        Error::new(Kind::Corrupt, format!("a record lacks `{}`", field.key)).with("key", field.key)
                    );
                }
            };
            values.push(value);
        }
        Ok(Record { values, extras: members })
    }

    /// Returns the record as it is stored: the rows in order, then what no row knows.
    pub fn to_object(&self, written_by: &str) -> Object {
        let mut out = Object::default();
        for (field, value) in FIELDS.iter().zip(&self.values) {
            match field.key {
                "written_by" => out.set(field.key, written_by),
                _ if field.optional && value.is_null() => {}
                _ => out.set(field.key, value.clone()),
            }
        }
        for (key, value) in self.extras.iter() {
            if out.get(key).is_none() && row(key).is_none() {
                out.set(key, value.clone());
            }
        }
        out
    }

    /// Returns what a field reads as.
    pub fn get(&self, key: &str) -> Value {
        match row(key) {
            Some(at) => match (FIELDS.get(at), self.values.get(at)) {
                (Some(field), Some(value)) => read_as(field, value),
                _ => Value::Null,
            },
            None => self.extras.get(key).cloned().unwrap_or_default(),
        }
    }

    /// Returns everything as it reads: every row, then the extras.
    pub fn reading(&self) -> Object {
        let mut out = Object::default();
        for (field, value) in FIELDS.iter().zip(&self.values) {
            out.set(field.key, read_as(field, value));
        }
        for (key, value) in self.extras.iter() {
            out.set(key, value.clone());
        }
        out
    }

    /// Changes fields. Unknown ones are refused, all of them named; values must fit their fields.
    pub fn set(&mut self, change: Object) -> Result<()> {
        self.refuse_foreign(&change)?;
        let bad: Vec<&str> = change.iter().filter(|(key, value)| !fits_key(key, value)).map(|(key, _)| key).collect();
        if !bad.is_empty() {
            return Err(fields_error("a record cannot take the values given for", &bad));
        }
        for (key, value) in change {
            match row(&key).and_then(|at| self.values.get_mut(at)) {
                Some(slot) => *slot = value,
                None => self.extras.set(&key, value),
            }
        }
        Ok(())
    }

    /// A member that was read from a file and that no row knows can be set again, a new one cannot.
    fn refuse_foreign(&self, change: &Object) -> Result<()> {
        let unknown: Vec<&str> = change
            .iter()
            .map(|(key, _)| key)
            .filter(|key| row(key).is_none() && self.extras.get(key).is_none())
            .collect();
        if unknown.is_empty() { Ok(()) } else { Err(fields_error("a record has no", &unknown)) }
    }

    /// Returns what a next link or a fork starts with; a delegate child takes `parent_answers` alone.
    pub fn setup(&self, delegate: bool) -> Object {
        let keys = SETUP.iter().filter(|key| !delegate || **key == "parent_answers");
        keys.filter_map(|key| Some(((*key).to_owned(), self.values.get(row(key)?)?.clone()))).collect()
    }
}

fn refuse_unknown(given: &Object) -> Result<()> {
    let unknown: Vec<&str> = given.iter().map(|(key, _)| key).filter(|key| row(key).is_none()).collect();
    if unknown.is_empty() { Ok(()) } else { Err(fields_error("a record has no", &unknown)) }
}

fn fields_error(what: &str, keys: &[&str]) -> Error {
    let names: Vec<String> = keys.iter().map(|key| format!("`{}`", super::id::quote(key))).collect();
    let list: Vec<Value> = keys.iter().map(|key| Value::from(*key)).collect();
    Error::new(Kind::InvalidArgument, format!("{what} {}", names.join(", "))).with("fields", list)
}

/// A value from a file: kept as it is where a row keeps what it cannot read, else cast.
fn keep(field: &Field, value: Value) -> Value {
    match field.cast {
        Cast::Level | Cast::Answers | Cast::Any => value,
        _ => read_as(field, &value),
    }
}

fn fits_key(key: &str, value: &Value) -> bool {
    row(key).and_then(|at| FIELDS.get(at)).is_none_or(|field| fits(field, value))
}

fn fits(field: &Field, value: &Value) -> bool {
    match field.cast {
        Cast::Any => true,
        Cast::Text => value.as_str().is_some(),
        Cast::TextOrNull => value.is_null() || value.as_str().is_some(),
        Cast::Bool => value.as_bool().is_some(),
        Cast::Whole => value.as_i64().is_some(),
        Cast::List => value.as_array().is_some(),
        Cast::Texts => value.as_array().is_some_and(|items| items.iter().all(|i| i.as_str().is_some())),
        Cast::Object => value.as_object().is_some(),
        Cast::Level => value.is_null() || value.as_str().is_some() || value.as_i64().is_some(),
        Cast::Answers => value.is_null() || value.as_str().is_some_and(|text| ANSWERS.contains(&text)),
        Cast::Origin => value.as_str().is_some_and(|text| ORIGINS.contains(&text)),
    }
}

fn read_as(field: &Field, value: &Value) -> Value {
    let otherwise = || match field.lacking {
        Is(text) | IsFresh(text, _) => constant(text),
        Required => Value::from(""),
    };
    match field.cast {
        Cast::Text if !fits(field, value) => match value {
            Value::Number(n) => Value::from(&**n),
            Value::Bool(b) => Value::from(b.to_string()),
            _ => otherwise(),
        },
        Cast::Texts => Value::Array(texts(value)),
        Cast::Answers if !fits(field, value) => ANSWERS.first().copied().into(),
        _ if fits(field, value) => value.clone(),
        _ => otherwise(),
    }
}

fn texts(value: &Value) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for item in value.as_array().unwrap_or_default() {
        if item.as_str().is_some_and(|text| !text.is_empty()) && !out.contains(item) {
            out.push(item.clone());
        }
    }
    out
}

/// Returns the title to show: the title, else the first preview, folded and cut to 80 characters.
pub fn display_title(title: Option<&str>, preview: &str) -> String {
    let text = title.filter(|t| !t.trim().is_empty()).unwrap_or(preview);
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if folded.chars().count() <= 80 {
        return folded;
    }
    let mut out: String = folded.chars().take(79).collect();
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given() -> Object {
        let text =
            r#"{"id":"s1","mode":"chat","model_name":"","working_directory":"/","created_at":"t","updated_at":"t"}"#;
        json::parse(text, Surrogates::Refuse).unwrap().as_object().unwrap().clone()
    }

    fn object(text: &str) -> Object {
        json::parse(text, Surrogates::Refuse).unwrap().as_object().unwrap().clone()
    }

    #[test]
    fn a_fresh_record_has_every_row_in_order() {
        let record = Record::fresh(given()).unwrap();
        let written = record.to_object("1.2.3");
        let keys: Vec<&str> = written.iter().map(|(k, _)| k).collect();
        assert_eq!(&keys[..4], ["metadata_version", "written_by", "id", "mode"]);
        assert_eq!(keys.len(), FIELDS.len() - 4);
        assert_eq!(
            (written.get("metadata_version"), written.get("written_by")),
            (Some(&3.into()), Some(&"1.2.3".into()))
        );
        assert_eq!(record.get("toolkit_origin"), "chosen".into());
        assert_eq!(Record::read(&written.to_text()).unwrap().to_object("1.2.3"), written);
    }

    /// RECORD.2, row by row: key, what a record that lacks it reads (R: refused), what a fresh one has (G: what was given), a
    /// value it takes, one that it cannot read, and what that reads as.
    const ROWS: &str = r#"
        metadata_version 1 3 2 "x" 1
        written_by null null "v" 5 null
        id R G "s2" {} ""
        mode R G "m" {} ""
        model_name R G "m" [] ""
        model_typed null null {"a":1} - -
        working_directory R G "/w" null ""
        created_at R G "t" {} ""
        updated_at R G "t" {} ""
        status "idle" "idle" "running" {} "idle"
        last_prompt "" "" "p" [] ""
        first_preview "" "" "p" {} ""
        title null null "T" 7 null
        test_run false false true "yes" false
        pending_question null null {"q":1} - -
        used_memory_names [] [] ["a"] null []
        project_root null null "/p" 5 null
        preloaded_memory_names [] [] ["a"] {} []
        muted_memory_names [] [] ["a"] "a" []
        prompt_notes [] [] ["a"] 5 []
        parent_id null null "p" 5 null
        scratch false false true 1 false
        last_turn null null {"n":1} - -
        verdicts null null [1] - -
        delegate false false true "x" false
        llm_context null null "full" {"odd":[1.50]} null
        continues null null "s0" 5 null
        thinking null null "high" ["odd"] null
        reasoning_history null null 2 true null
        appended_prompt_files [] [] ["a","b"] ["a","",1,"a","b"] ["a","b"]
        toolkit null null "t" - -
        toolkit_origin "chosen" "chosen" "inherited" "found" "chosen"
        bundle_settings {} {} {"a":1} [] {}
        config_settings {} {} {"a":1} 5 {}
        interrupted_turn null null {"turn":1} - -
        parent_answers null null "policy" "sometimes" "never"
        working_set_pins [] [] [1] {} []
        review null null {"a":1} - -
        first_turn_id null null "t" - -
        verify_fresh null null true - -
    "#;
    const OPTIONAL: [&str; 4] = ["verdicts", "review", "first_turn_id", "verify_fresh"];
    /// What keeps a value it cannot read, as it is, until it is set.
    const KEPT: [&str; 4] = ["llm_context", "thinking", "reasoning_history", "parent_answers"];

    #[test]
    fn every_row_of_the_table_does_what_the_rule_says() {
        let rows: Vec<Vec<&str>> =
            ROWS.lines().map(|row| row.split_whitespace().collect()).filter(|r: &Vec<_>| !r.is_empty()).collect();
        assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), FIELDS.iter().map(|f| f.key).collect::<Vec<_>>());
        let fresh = Record::fresh(given()).unwrap();
        let least = Record::read(&given().to_text()).unwrap();
        for row in rows {
            let (key, lacking, made, good, bad, read) = (row[0], row[1], row[2], constant(row[3]), row[4], row[5]);
            let mut file = given();
            file.remove(key);
            match lacking {
                "R" => {
                    let error = Record::read(&file.to_text()).unwrap_err();
                    assert_eq!((error.code(), error.details().get("key")), ("corrupt", Some(&key.into())));
                    assert_eq!(
                        Record::fresh(file.clone()).unwrap_err().details().get("fields"),
                        Some(&vec![key.into()].into())
                    );
                }
                text => assert_eq!(least.get(key), constant(text), "{key} of a record that lacks it"),
            }
            let made = if made == "G" { given().get(key).cloned().unwrap() } else { constant(made) };
            assert_eq!(fresh.get(key), made, "{key} of a fresh record");
            let mut set = fresh.clone();
            set.set(Object::from([(key, good.clone())])).unwrap();
            let written = set.to_object("v");
            let kept = if key == "written_by" { "v".into() } else { good };
            assert_eq!(written.get(key), Some(&kept), "{key} set");
            assert_eq!(fresh.to_object("v").get(key).is_none(), OPTIONAL.contains(&key), "{key} absent when null");
            if bad != "-" {
                file.set(key, constant(bad));
                let odd = Record::read(&file.to_text()).unwrap();
                assert_eq!(odd.get(key), constant(read), "{key} that cannot be read");
                assert_eq!(
                    odd.to_object("v").get(key) == Some(&constant(bad)),
                    KEPT.contains(&key),
                    "{key} written back"
                );
                let mut refused = fresh.clone();
                let answer = refused.set(Object::from([(key, constant(bad))]));
                assert_eq!(answer.is_err(), key != "appended_prompt_files" || bad.contains('1'), "{key} set to {bad}");
                assert!(answer.is_ok() || refused == fresh);
            }
        }
    }

    #[test]
    fn missing_and_unknown_are_named() {
        let error = Record::fresh(object(r#"{"id":"s1","nope":1,"neither":2}"#)).unwrap_err();
        assert_eq!(error.message(), "a record has no `nope`, `neither`");
        let error = Record::fresh(object(r#"{"id":"s1","mode":"chat"}"#)).unwrap_err();
        assert_eq!(error.details().get("fields").unwrap().as_array().unwrap().len(), 4);
        let error = Record::read(r#"{"id":"s1"}"#).unwrap_err();
        assert_eq!((error.code(), error.details().get("key")), ("corrupt", Some(&"mode".into())));
    }

    #[test]
    fn a_version_3_file_comes_back_with_nothing_lost() {
        let mut file = given();
        for (key, text) in [
            ("llm_context", r#"{"odd":[1.50]}"#),
            ("thinking", "\"high\""),
            ("parent_answers", "\"sometimes\""),
            ("verdicts", "[1]"),
            ("x_future", r#"{"b":1e2,"a":null}"#),
            ("messages", r#"[{"role":"user","content":"hi"}]"#),
        ] {
            file.set(key, constant(text));
        }
        let mut record = Record::read(&file.to_text()).unwrap();
        assert_eq!(record.get("metadata_version"), 1.into());
        assert_eq!((record.get("llm_context"), record.get("thinking")), (Value::Null, "high".into()));
        assert_eq!(record.get("parent_answers"), "never".into());
        let written = record.to_object("v");
        for (key, value) in file.iter() {
            assert_eq!(written.get(key), Some(value), "{key}");
        }
        let keys: Vec<&str> = written.iter().map(|(k, _)| k).collect();
        assert_eq!(&keys[keys.len() - 2..], ["x_future", "messages"]);
        record.set(object(r#"{"llm_context":"full","parent_answers":"policy"}"#)).unwrap();
        assert_eq!(record.to_object("v").get("llm_context"), Some(&"full".into()));
    }

    #[test]
    fn values_are_cast_when_read_and_checked_when_set() {
        let mut file = given();
        for (key, text) in [
            ("appended_prompt_files", r#"["a","",1,"a","b"]"#),
            ("toolkit_origin", "\"found\""),
            ("test_run", "\"yes\""),
            ("status", "5"),
            ("title", "7"),
            ("used_memory_names", "null"),
        ] {
            file.set(key, constant(text));
        }
        let record = Record::read(&file.to_text()).unwrap();
        assert_eq!(record.get("appended_prompt_files"), constant(r#"["a","b"]"#));
        assert_eq!((record.get("toolkit_origin"), record.get("test_run")), ("chosen".into(), false.into()));
        assert_eq!((record.get("status"), record.get("title")), ("5".into(), Value::Null));
        assert_eq!(record.get("used_memory_names"), constant("[]"));
        let error = record.clone().set(object(r#"{"status":1,"title":"ok","scratch":"x"}"#)).unwrap_err();
        assert_eq!(error.details().get("fields"), Some(&constant(r#"["status","scratch"]"#)));
    }

    #[test]
    fn a_delegate_takes_only_the_answers() {
        let mut record = Record::fresh(given()).unwrap();
        record.set(object(r#"{"thinking":"low","parent_answers":"policy"}"#)).unwrap();
        assert_eq!(record.setup(false).len(), SETUP.len());
        assert_eq!(record.setup(true), object(r#"{"parent_answers":"policy"}"#));
    }

    #[test]
    fn titles_fold_and_cut_at_80_characters() {
        assert_eq!(display_title(None, " a \n b "), "a b");
        assert_eq!(display_title(Some("T"), "x"), "T");
        let long = display_title(None, &"🔥".repeat(100));
        assert_eq!((long.chars().count(), long.ends_with('…')), (80, true));
    }
}
