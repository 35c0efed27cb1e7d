//! Values as a tree.

use super::write_string;
use crate::core::double;

/// A JSON value that keeps the text of its numbers and the order of its members.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as written.
    Number(Box<str>),
    /// A string, decoded.
    String(String),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Object),
}

/// The members of an object in their order; keys are unique.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Object(Vec<(String, Value)>);

impl Object {
    /// Returns a member.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Returns a member for changing.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.0.iter_mut().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Sets a member: in its place if it is there, else at the end.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.get_mut(key) {
            Some(slot) => *slot = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Removes a member and returns it.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.0.iter().position(|(k, _)| k == key)?;
        Some(self.0.remove(at).1)
    }

    /// Iterates in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// Iterates in order, values for changing.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Value)> {
        self.0.iter_mut().map(|(k, v)| (k.as_str(), v))
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Says whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a member without looking for an equal key; the caller knows that there is none.
    pub fn push_unchecked(&mut self, key: String, value: Value) {
        self.0.push((key, value));
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<K: Into<String>, const N: usize> From<[(K, Value); N]> for Object {
    fn from(members: [(K, Value); N]) -> Self {
        // By way of one list, so that the work exists once and not for every length.
        Object::of(members.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }
}

impl Object {
    fn of(members: Vec<(String, Value)>) -> Self {
        members.into_iter().collect()
    }
}

impl FromIterator<(String, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        let mut object = Object::default();
        for (key, value) in members {
            object.set(&key, value);
        }
        object
    }
}

impl Value {
    /// Returns a member, when this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// Returns what a chain of member names leads to.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Returns the text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(s) => Some(s),
            _ => None,
        }
    }

    /// Returns a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// Returns the text of a number.
    pub fn as_number(&self) -> Option<&str> {
        match self {
            Value::Number(n) => Some(n),
            _ => None,
        }
    }

    /// Returns the nearest double of a number.
    pub fn as_f64(&self) -> Option<f64> {
        double::parse(self.as_number()?)
    }

    /// Returns a number that is a whole number of at most 2^53, however it is written.
    pub fn as_i64(&self) -> Option<i64> {
        let text = self.as_number()?;
        if let Ok(n) = text.parse::<i64>() {
            return Some(n);
        }
        let n = double::parse(text)?;
        (n.fract() == 0.0 && n.abs() <= 9_007_199_254_740_992.0).then_some(n as i64)
    }

    /// Returns the items of an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the members of an object.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Returns the members of an object for changing.
    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Says whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Appends the shortest JSON text of this value.
    pub fn write(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(true) => out.push_str("true"),
            Value::Bool(false) => out.push_str("false"),
            Value::Number(n) => out.push_str(n),
            Value::String(s) => write_string(out, s),
            Value::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Value::Object(members) => members.write(out),
        }
    }

    /// Returns the shortest JSON text of this value.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

impl Object {
    /// Appends the shortest JSON text of this object.
    pub fn write(&self, out: &mut String) {
        out.push('{');
        for (i, (key, value)) in self.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            write_string(out, key);
            out.push(':');
            value.write(out);
        }
        out.push('}');
    }

    /// Returns the shortest JSON text of this object.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(text)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Value::Bool(b)
    }
}

impl From<f64> for Value {
    /// A number that is not finite becomes `null`, as JSON has no other word for it.
    fn from(n: f64) -> Self {
        if n.is_finite() { Value::Number(double::print(n).into()) } else { Value::Null }
    }
}

macro_rules! from_whole {
    ($($t:ty)+) => { $(impl From<$t> for Value {
        fn from(n: $t) -> Self { Value::Number(n.to_string().into()) }
    })+ };
}
from_whole!(i32 u32 i64 u64 usize);

impl From<Object> for Value {
    fn from(members: Object) -> Self {
        Value::Object(members)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Value::Array(items)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}
