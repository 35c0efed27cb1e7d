//! What an undo or redo says it did.

use crate::core::json::{Object, Value};
use crate::core::vfs::Errno;

/// Why an undo changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `NOTHING_TO_UNDO`, `NOTHING_TO_REDO`, `RUN_ACTIVE`, `ECORRUPT`, or a POSIX code.
    pub code: &'static str,
    /// The path it is about; empty when it is about none.
    pub path: String,
    /// For people.
    pub message: String,
}

impl Problem {
    /// A POSIX code on a path.
    pub fn of(errno: Errno, path: &str) -> Problem {
        Problem { code: errno.name(), path: path.to_owned(), message: format!("{}, '{path}'", errno.text()) }
    }

    /// A code of undo's own.
    pub fn new(code: &'static str, message: &str) -> Problem {
        Problem { code, path: String::new(), message: message.to_owned() }
    }
}

/// What an undo or redo did, or why it did nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Whether it was carried out.
    pub ok: bool,
    /// Files and links that were put back.
    pub restored: Vec<String>,
    /// Paths where a file or link was removed and none is now.
    pub deleted: Vec<String>,
    /// Paths that stand against it, or that were skipped or overwritten, with the reason.
    pub conflicts: Vec<(String, &'static str)>,
    /// Why it could not be carried out.
    pub errors: Vec<Problem>,
}

impl Report {
    /// A report of nothing done, for one reason.
    pub fn refused(code: &'static str, message: &str) -> Report {
        Report { errors: vec![Problem::new(code, message)], ..Report::default() }
    }

    /// Returns the JSON that JavaScript gets.
    pub fn to_json(&self) -> String {
        let texts = |items: &[String]| Value::Array(items.iter().map(|text| text.as_str().into()).collect());
        let conflicts = self
            .conflicts
            .iter()
            .map(|(path, reason)| Object::from([("path", path.as_str().into()), ("reason", (*reason).into())]).into())
            .collect::<Vec<Value>>();
        let errors = self
            .errors
            .iter()
            .map(|problem| {
                let members: [(&str, Value); 3] = [
                    ("path", problem.path.as_str().into()),
                    ("code", problem.code.into()),
                    ("message", problem.message.as_str().into()),
                ];
                Object::from(members).into()
            })
            .collect::<Vec<Value>>();
        let members: [(&str, Value); 5] = [
            ("ok", self.ok.into()),
            ("restored", texts(&self.restored)),
            ("deleted", texts(&self.deleted)),
            ("conflicts", conflicts.into()),
            ("errors", errors.into()),
        ];
        Object::from(members).to_text()
    }
}
