//! The domains of parameters: ranges of numbers, lists of words, and names of fields.

use std::time::Duration;

use crate::suggest;
use crate::types::Type;
use crate::value::{Kind, Value};

/// The values that a parameter accepts. The default domain contains all values of the parameter's
/// kind.
///
/// ```
/// use tussah_weave::{Domain, Kind, Value};
///
/// let domain = Domain {
///     least: Some(1.0),
///     ..Domain::default()
/// };
/// assert_eq!(domain.describe(&Kind::Count).as_deref(), Some("at least 1"));
/// assert_eq!(domain.check(&Value::Count(1)), Ok(()));
/// assert_eq!(domain.check(&Value::Count(0)), Err("at least 1".to_owned()));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Domain {
    /// The least number: of items, bytes, seconds, or items per second.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub least: Option<f64>,
    /// The greatest number.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub most: Option<f64>,
    /// The accepted texts. If the list is empty, any text is accepted.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub words: Vec<String>,
    /// The item type whose fields the accepted texts name. It can contain type parameters of the
    /// module.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub field_of: Option<Type>,
}

impl Domain {
    /// Returns a description of the values, or `None` if the domain contains all values.
    #[must_use]
    pub fn describe(&self, kind: &Kind) -> Option<String> {
        let shown = |number| of_kind(kind, number);
        if let Some(item) = &self.field_of {
            return Some(format!("a field of `{}`", item.short()));
        }
        match (self.least, self.most) {
            _ if !self.words.is_empty() => Some(or(&self.words)),
            (None, None) => None,
            (Some(least), None) => Some(format!("at least {}", shown(least))),
            (None, Some(most)) => Some(format!("at most {}", shown(most))),
            (Some(least), Some(most)) => Some(format!("{} to {}", shown(least), shown(most))),
        }
    }

    /// Checks a value of the parameter's kind. Does not check names of fields, because the edges of
    /// an instance determine the type of its items.
    ///
    /// # Errors
    /// If the domain does not contain the value, returns the description of a value that it
    /// contains, such as `at least 1`.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        if let Value::Text(text) = value {
            return match self.words.is_empty() || self.words.contains(text) {
                true => Ok(()),
                false => Err(or(&self.words)),
            };
        }
        let Some(number) = value.number() else {
            return Ok(());
        };
        let shown = |number| of_kind(&value.kind(), number);
        match (self.least, self.most) {
            (Some(least), _) if !(least..).contains(&number) => {
                Err(format!("at least {}", shown(least)))
            }
            (_, Some(most)) if !(..=most).contains(&number) => {
                Err(format!("at most {}", shown(most)))
            }
            _ => Ok(()),
        }
    }

    /// Returns a hint for a value outside of the domain: the word that it resembles.
    pub(crate) fn help(&self, value: &Value) -> Option<String> {
        let Value::Text(text) = value else {
            return None;
        };
        let near = suggest::nearest(text, self.words.iter().map(String::as_str))?;
        Some(format!("did you mean \"{near}\"?"))
    }
}

/// Returns a number as a value of this kind.
fn of_kind(kind: &Kind, number: f64) -> Value {
    match kind {
        Kind::Count => Value::Count(number as u64),
        Kind::Size => Value::Size(number as u64),
        Kind::Rate => Value::Rate(number),
        Kind::Duration => {
            Value::Duration(Duration::try_from_secs_f64(number).unwrap_or(Duration::MAX))
        }
        _ => Value::Number(number),
    }
}

/// Returns a list of words, each in quotes.
fn or(words: &[String]) -> String {
    let quoted = |word: &String| format!("{word:?}");
    match words {
        [first @ .., last] if !first.is_empty() => {
            let first: Vec<_> = first.iter().map(quoted).collect();
            format!("{} or {last:?}", first.join(", "))
        }
        words => words.iter().map(quoted).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_described_in_the_unit_of_their_kind() {
        let check = |least, most, words: &[&str], kind: Kind, expected: Option<&str>| {
            let words = words.iter().map(|&word| word.to_owned()).collect();
            let domain = Domain {
                least,
                most,
                words,
                field_of: None,
            };
            assert_eq!(domain.describe(&kind).as_deref(), expected);
        };
        check(None, None, &[], Kind::Count, None);
        check(Some(1.0), None, &[], Kind::Count, Some("at least 1"));
        check(Some(0.0), Some(1.0), &[], Kind::Number, Some("0 to 1"));
        check(None, Some(2e-3), &[], Kind::Duration, Some("at most 2 ms"));
        check(Some(1024.0), None, &[], Kind::Size, Some("at least 1 KiB"));
        check(None, None, &["a"], Kind::Text, Some("\"a\""));
        let three = Some("\"a\", \"b\" or \"c\"");
        check(None, None, &["a", "b", "c"], Kind::Text, three);
        let field = Domain {
            field_of: Type::parse("logs::Line").ok(),
            ..Domain::default()
        };
        let described = field.describe(&Kind::Text);
        assert_eq!(described.as_deref(), Some("a field of `Line`"));
    }

    #[test]
    fn bounds_belong_to_their_domain() {
        let domain = Domain {
            least: Some(1.0),
            most: Some(u64::MAX as f64),
            ..Domain::default()
        };
        for (count, expected) in [(0, false), (1, true), (u64::MAX, true)] {
            assert_eq!(
                domain.check(&Value::Count(count)).is_ok(),
                expected,
                "{count}"
            );
        }
        let second = Value::Duration(Duration::from_secs(1));
        assert_eq!(domain.check(&second), Ok(()));
        let less = Value::Duration(Duration::from_millis(999));
        assert_eq!(domain.check(&less), Err("at least 1 s".to_owned()));
    }
}
