//! Rust types as trees, so that the types of connected ports can be unified.

use std::error::Error;
use std::fmt;

use crate::expr::LONG;

/// Bound, in levels: the maximum depth of a type; a deeper one is an error. Deeper types are not
/// written by hand, and the parser recurses.
const DEPTH_MAX: usize = 32;

/// A Rust type: a name and its type arguments.
///
/// The name is `&`, `&mut` or `&'a` for a reference, `()` for a tuple, `[]` for a slice, and
/// `[; 4]` for an array of four elements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Type {
    /// The name. The parts of a path are separated by `::`.
    pub name: String,
    /// The arguments.
    pub args: Vec<Type>,
}

/// The error for a string that [`Type::parse`] does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError {
    text: String,
    what: &'static str,
}

impl fmt::Display for TypeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` is not a type: {}", self.text, self.what)
    }
}

impl Error for TypeError {}

impl Type {
    /// Creates a type without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            args: Vec::new(),
        }
    }

    /// Parses a type in Rust's syntax: a path with arguments, a reference, a tuple, a slice or an
    /// array.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a type in a supported form. For example, function
    /// pointers are not supported.
    ///
    /// ```
    /// use tussah_weave::Type;
    ///
    /// let ty = Type::parse("Vec<(u32, &'static str)>")?;
    /// assert_eq!(ty.args[0].args[0], Type::new("u32"));
    /// assert_eq!(ty.to_string(), "Vec<(u32, &'static str)>");
    /// # Ok::<(), tussah_weave::TypeError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, TypeError> {
        let mut parser = Parser { rest: text };
        let parsed = parser.ty(0).and_then(|ty| match parser.rest.trim_start() {
            "" => Ok(ty),
            _ => Err("expected its end"),
        });
        parsed.map_err(|what| TypeError {
            text: text.to_owned(),
            what,
        })
    }

    /// Returns whether two spellings can denote the same type. One spelling may omit leading
    /// segments of a path, such as module names.
    ///
    /// ```
    /// use tussah_weave::Type;
    ///
    /// let [short, long] = ["Vec<Line>", "alloc::vec::Vec<logs::Line>"].map(Type::parse);
    /// assert!(short?.fits(&long?));
    /// # Ok::<(), tussah_weave::TypeError>(())
    /// ```
    #[must_use]
    pub fn fits(&self, other: &Self) -> bool {
        is_same_name(&self.name, &other.name)
            && self.args.len() == other.args.len()
            && (self.args.iter().zip(&other.args)).all(|(one, other)| one.fits(other))
    }

    /// Returns the number of names in the type. A long name counts as several.
    pub(crate) fn size(&self) -> usize {
        1 + self.name.len() / LONG + self.args.iter().map(Self::size).sum::<usize>()
    }

    /// Replaces names without arguments.
    pub(crate) fn replace(&self, find: &dyn Fn(&str) -> Option<Self>) -> Self {
        match find(&self.name) {
            Some(found) if self.args.is_empty() => found,
            _ => Self {
                name: self.name.clone(),
                args: self.args.iter().map(|arg| arg.replace(find)).collect(),
            },
        }
    }

    /// Returns the type without the modules in its paths: `Vec` for `std::vec::Vec`.
    #[must_use]
    pub fn short(&self) -> Self {
        let name = self.name.rsplit("::").next().unwrap_or_default();
        Self {
            name: name.to_owned(),
            args: self.args.iter().map(Self::short).collect(),
        }
    }
}

/// Returns whether two names can be of one type: one may be written with more of its path.
pub(crate) fn is_same_name(left: &str, right: &str) -> bool {
    let is_end = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
    };
    is_end(left, right) || is_end(right, left)
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.trim_start();
        let after = rest.strip_prefix(text);
        self.rest = after.unwrap_or(rest);
        after.is_some()
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let word;
        (word, self.rest) = rest.split_at(end);
        word
    }

    fn ty(&mut self, depth: usize) -> Result<Type, &'static str> {
        if depth > DEPTH_MAX {
            return Err("it is nested too deeply");
        }
        if self.eat("&") {
            return self.reference(depth);
        }
        if self.eat("(") {
            let args = self.list(")", depth)?;
            return Ok(Type {
                name: "()".into(),
                args,
            });
        }
        if self.eat("[") {
            let item = self.ty(depth + 1)?;
            let name = if self.eat(";") {
                let len = self.word();
                if len.is_empty() {
                    return Err("expected the length of an array");
                }
                format!("[; {len}]")
            } else {
                "[]".to_owned()
            };
            if !self.eat("]") {
                return Err("expected `]`");
            }
            let args = vec![item];
            return Ok(Type { name, args });
        }
        if self.eat("'") {
            return match self.word() {
                "" => Err("expected a lifetime"),
                name => Ok(Type::new(format!("'{name}"))),
            };
        }
        self.path(depth)
    }

    fn path(&mut self, depth: usize) -> Result<Type, &'static str> {
        let mut name = String::new();
        if self.eat("::") {
            name.push_str("::");
        }
        loop {
            match self.word() {
                word if !word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
                    return Err("expected a name");
                }
                "dyn" | "impl" | "fn" | "for" | "unsafe" | "extern" => {
                    return Err("expected a path, a reference, a tuple, a slice or an array");
                }
                word => name.push_str(word),
            }
            if self.eat("<") {
                let args = self.list(">", depth)?;
                return Ok(Type { name, args });
            }
            if !self.eat("::") {
                return Ok(Type::new(name));
            }
            name.push_str("::");
        }
    }

    fn reference(&mut self, depth: usize) -> Result<Type, &'static str> {
        let mut name = "&".to_owned();
        if self.eat("'") {
            match self.word() {
                "" => return Err("expected a lifetime"),
                lifetime => name.push_str(&format!("'{lifetime}")),
            }
        }
        let before = self.rest;
        if self.word() == "mut" {
            name.push_str(if name == "&" { "mut" } else { " mut" });
        } else {
            self.rest = before;
        }
        let args = vec![self.ty(depth + 1)?];
        Ok(Type { name, args })
    }

    /// Parses types up to a delimiter.
    fn list(&mut self, end: &str, depth: usize) -> Result<Vec<Type>, &'static str> {
        let mut types = Vec::new();
        while !self.eat(end) {
            types.push(self.ty(depth + 1)?);
            if !self.eat(",") {
                if self.eat(end) {
                    break;
                }
                return Err("expected `,` or its end");
            }
        }
        Ok(types)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |out: &mut fmt::Formatter<'_>| {
            for (index, arg) in self.args.iter().enumerate() {
                let comma = if index == 0 { "" } else { ", " };
                write!(out, "{comma}{arg}")?;
            }
            Ok(())
        };
        match (self.name.as_str(), self.args.as_slice()) {
            ("()", [single]) => write!(out, "({single},)"),
            ("()", _) => {
                out.write_str("(")?;
                list(out)?;
                out.write_str(")")
            }
            ("&", [to]) => write!(out, "&{to}"),
            (name, [to]) if name.starts_with('&') => write!(out, "{name} {to}"),
            ("[]", [item]) => write!(out, "[{item}]"),
            (name, [item]) if name.starts_with("[;") => {
                write!(out, "[{item}{}", &name[1..])
            }
            (name, []) => out.write_str(name),
            (name, _) => {
                write!(out, "{name}<")?;
                list(out)?;
                out.write_str(">")
            }
        }
    }
}

#[cfg(feature = "serde")]
mod json {
    //! In JSON, a type is a string in Rust's syntax.

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::Type;

    impl Serialize for Type {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }

    impl<'de> Deserialize<'de> for Type {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            Self::parse(&text).map_err(de::Error::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_printed_as_it_is_read() {
        let check = |text: &str, expected: &str| {
            let printed = match Type::parse(text) {
                Ok(ty) => ty.to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(printed, expected);
        };
        check("u32", "u32");
        check(" std :: vec::Vec < u8 > ", "std::vec::Vec<u8>");
        check("::http::Map<K,V,>", "::http::Map<K, V>");
        check("(A,B)", "(A, B)");
        check("(A,)", "(A,)");
        check("()", "()");
        check("&'static mut [u8;4]", "&'static mut [u8; 4]");
        check("&mut [T]", "&mut [T]");
        check("&'a str", "&'a str");
        check("Cow<'a, str>", "Cow<'a, str>");
        check("Vec<", "`Vec<` is not a type: expected a name");
        check("5", "`5` is not a type: expected a name");
        check(
            "Vec<A B>",
            "`Vec<A B>` is not a type: expected `,` or its end",
        );
        check("A B", "`A B` is not a type: expected its end");
        let deep = "&".repeat(50) + "A";
        assert!(Type::parse(&deep).is_err());
        assert_eq!(
            Type::parse("a::B<c::D>").unwrap().short().to_string(),
            "B<D>"
        );
    }
}
