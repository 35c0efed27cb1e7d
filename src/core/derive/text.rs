//! Text on its way to a provider: arguments, tool names, and JSON exactly as JavaScript would print it.

use crate::core::double;
use crate::core::json::{self, Object, Surrogates, Value, write_string};
use crate::core::message::Call;

/// Appends a value as `JSON.stringify(JSON.parse(…))` gives it back, so that a digest can be checked on either side.
pub(crate) fn write_js(value: &Value, out: &mut String) {
    match value {
        Value::Number(n) => write_number(n, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_js(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => write_object(members, out),
        other => other.write(out),
    }
}

fn write_object(members: &Object, out: &mut String) {
    // JavaScript puts keys that are array indexes first, in the order of their numbers.
    let index = |key: &str| key.parse::<u32>().ok().filter(|n| *n < u32::MAX && n.to_string() == key);
    let mut first: Vec<(u32, &str, &Value)> = members.iter().filter_map(|(k, v)| Some((index(k)?, k, v))).collect();
    crate::core::sorted::sort_by(&mut first, |a, b| a.0 < b.0);
    let rest = members.iter().filter(|(k, _)| index(k).is_none());
    out.push('{');
    for (i, (key, value)) in first.into_iter().map(|(_, k, v)| (k, v)).chain(rest).enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(out, key);
        out.push(':');
        write_js(value, out);
    }
    out.push('}');
}

fn write_number(text: &str, out: &mut String) {
    let number = double::parse(text).unwrap_or(0.0);
    if number == 0.0 {
        out.push('0');
    } else if number.is_finite() {
        out.push_str(&double::print(number));
    } else {
        out.push_str("null");
    }
}

/// The arguments of a call in both forms that providers take.
pub(crate) struct Arguments {
    /// JSON text of an object, as JavaScript prints it.
    pub object: String,
    /// The text the model wrote, where the target takes text.
    pub text: String,
    /// Whether they could be read as an object at all.
    pub valid: bool,
}

impl Arguments {
    fn of(object: &Value, text: Option<String>) -> Arguments {
        let mut js = String::new();
        write_js(object, &mut js);
        Arguments { text: text.unwrap_or_else(|| object.to_text()), object: js, valid: true }
    }

    fn none(valid: bool) -> Arguments {
        Arguments { object: "{}".into(), text: "{}".into(), valid }
    }
}

/// Reads the arguments of a call: blank text is no arguments, and what is not an object cannot be executed.
pub(crate) fn arguments(call: &Call<'_>) -> Arguments {
    let args = call.args.and_then(|a| json::parse(a, Surrogates::Replace).ok());
    let object = args.as_ref().filter(|a| a.as_object().is_some());
    let written = match (&call.raw_args, &args) {
        (Some(raw), _) => Some(raw.plain().into_owned()),
        (None, Some(Value::String(text))) => Some(text.clone()),
        _ => None,
    };
    let Some(written) = written else {
        return match (object, &args) {
            (Some(object), _) => Arguments::of(object, None),
            (None, None) => Arguments::none(true),
            _ => Arguments::none(false),
        };
    };
    if written.trim().is_empty() {
        return object.map_or_else(|| Arguments::none(true), |o| Arguments::of(o, None));
    }
    let read = json::parse(&written, Surrogates::Replace).ok().filter(|v| v.as_object().is_some());
    match (read, object) {
        (Some(read), object) => {
            // As written, unless it holds escapes that a strict parser on the other side refuses.
            let clean = json::check(&written, Surrogates::Refuse).is_ok();
            Arguments::of(object.unwrap_or(&read), Some(if clean { written } else { read.to_text() }))
        }
        (None, Some(object)) if object.as_object().is_some_and(|o| !o.is_empty()) => Arguments::of(object, None),
        _ => Arguments::none(false),
    }
}

/// Returns a tool name that providers take: 64 of `[A-Za-z0-9_-]`, starting with a letter or underscore.
pub(crate) fn tool_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let tidy: String = name.trim().chars().map(plain).take(64).collect();
    match tidy.chars().next() {
        None => "unknown_tool".into(),
        Some(c) if c.is_ascii_alphabetic() || c == '_' => tidy,
        Some(_) => format!("_{tidy}").chars().take(64).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_in_javascript() {
        for (from, to) in [
            ("1.50", "1.5"),
            ("1e3", "1000"),
            ("-0", "0"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("1e21", "1e+21"),
            ("123456789012345680000", "123456789012345680000"),
            ("9007199254740993", "9007199254740992"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("5e-324", "5e-324"),
            ("-12.25", "-12.25"),
            ("1e400", "null"),
            ("0.1", "0.1"),
            ("100", "100"),
        ] {
            let mut out = String::new();
            write_number(from, &mut out);
            assert_eq!(out, to, "{from}");
        }
    }

    #[test]
    fn objects_print_as_in_javascript() {
        let value = json::parse(r#"{"b":1.0,"10":2,"a":{"2":0,"1":[]},"2":3,"01":4}"#, Surrogates::Refuse).unwrap();
        let mut out = String::new();
        write_js(&value, &mut out);
        assert_eq!(out, r#"{"2":3,"10":2,"b":1,"a":{"1":[],"2":0},"01":4}"#);
    }

    #[test]
    fn tool_names_become_legal() {
        for (from, to) in
            [("read_file", "read_file"), ("", "unknown_tool"), ("a b.c", "a_b_c"), ("9x", "_9x"), ("é", "_")]
        {
            assert_eq!(tool_name(from), to);
        }
        assert_eq!(tool_name(&"x".repeat(99)).len(), 64);
    }
}
