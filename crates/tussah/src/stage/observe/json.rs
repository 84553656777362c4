//! A JSON writer for objects, lists, numbers and strings, which is all that the graph and the
//! traces need.

use std::fmt::Write;

/// An object that is being written, field by field.
pub(crate) struct Object<'a> {
    out: &'a mut String,
    empty: bool,
}

impl<'a> Object<'a> {
    pub(crate) fn new(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, empty: true }
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        text(self.field(name), value);
        self
    }

    pub(crate) fn number(&mut self, name: &str, value: u64) -> &mut Self {
        number(self.field(name), value);
        self
    }

    /// Adds a field whose value the closure `write` writes.
    pub(crate) fn with(&mut self, name: &str, write: impl FnOnce(&mut String)) -> &mut Self {
        write(self.field(name));
        self
    }

    pub(crate) fn end(&mut self) {
        self.out.push('}');
    }

    fn field(&mut self, name: &str) -> &mut String {
        if !std::mem::take(&mut self.empty) {
            self.out.push(',');
        }
        text(self.out, name);
        self.out.push(':');
        self.out
    }
}

/// Writes a list whose items the closure `write` writes.
pub(crate) fn list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

pub(crate) fn number(out: &mut String, value: u64) {
    write!(out, "{value}").expect("a string takes whatever is written");
}

/// Writes a string, escaped as in RFC 8259 §7.
pub(crate) fn text(out: &mut String, value: &str) {
    out.push('"');
    for letter in value.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control if control < ' ' => {
                write!(out, "\\u{:04x}", control as u32)
                    .expect("a string takes whatever is written");
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{Object, list, number, text};

    #[test]
    fn written_json_reads_back_unchanged() {
        let every: String = (0..=0x2ff).filter_map(char::from_u32).collect();
        let all = every + "\u{2028}\u{10ffff}\"\\/";
        let mut out = String::new();
        let mut object = Object::new(&mut out);
        object
            .text(&all, &all)
            .number("most", u64::MAX)
            .with("list", |out| list(out, [1, 2], number))
            .with("none", |out| list(out, [""; 0], text))
            .end();
        let read: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(read[&all], *all);
        assert_eq!(read["most"], u64::MAX);
        assert_eq!(read["list"], serde_json::json!([1, 2]));
        assert_eq!(read["none"], serde_json::json!([]));
    }
}
