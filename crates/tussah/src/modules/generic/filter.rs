//! A module that selects items by a field.

use crate::flow::{FieldName, Fields, Out, Value, module};

/// Sends each item to one of two ports, depending on the value of one of its fields.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `field` | text, a field of `T` | the field |
/// | `is` | text, optional | the value of the field |
/// | `at_least`, `at_most` | number, optional | the range of the field; sizes in bytes, durations in seconds |
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | `T` with [`Fields`] | an item |
/// | output `out` | `T` | the items that meet all given conditions |
/// | output `rest`, optional | `T` | all other items, including those without the field |
///
/// The module handles any number of items at a time. To sort items into more than two groups,
/// connect `rest` to another filter.
#[module]
pub struct Filter<T> {
    field: FieldName<T>,
    is: Option<String>,
    at_least: f64,
    at_most: f64,
}

#[module]
impl<T: Fields + Clone + Send + 'static> Filter<T> {
    fn init(
        field: FieldName<T>,
        is: Option<String>,
        at_least: Option<f64>,
        at_most: Option<f64>,
    ) -> Result<Self, String> {
        if is.is_none() && at_least.is_none() && at_most.is_none() {
            return Err("there is no condition: expected `is`, `at_least` or `at_most`".to_owned());
        }
        Ok(Self {
            field,
            is,
            at_least: at_least.unwrap_or(f64::NEG_INFINITY),
            at_most: at_most.unwrap_or(f64::INFINITY),
        })
    }

    fn run(&self, item: T, out: &impl Out<T>, rest: Option<&impl Out<T>>) {
        if item
            .field(self.field.get())
            .is_some_and(|value| self.fits(&value))
        {
            out.send(item);
        } else if let Some(rest) = rest {
            rest.send(item);
        }
    }
}

impl<T> Filter<T> {
    fn fits(&self, value: &Value) -> bool {
        let has_range = self.at_least.is_finite() || self.at_most.is_finite();
        let is_in_range = || {
            value
                .number()
                .is_some_and(|it| self.at_least <= it && it <= self.at_most)
        };
        self.is.as_ref().is_none_or(|is| text(value) == *is) && (!has_range || is_in_range())
    }
}

/// Returns a value as text, without quotes.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Path(text) | Value::Address(text) => text.clone(),
        other => other.to_string(),
    }
}
