//! The values of the fields of items, which modules compare.

use tussah_weave::Value;

/// An item whose fields have values that modules can compare, as in `Split(by: "client")`. `Fields`
/// is for shards, and needs no values.
///
/// # Examples
/// ```
/// use tussah::flow::{FieldValues, Value};
///
/// struct Request {
///     client: String,
///     bytes: u64,
/// }
///
/// impl FieldValues for Request {
///     const FIELDS: &'static [&'static str] = &["client", "bytes"];
///
///     fn field(&self, name: &str) -> Option<Value> {
///         match name {
///             "client" => Some(Value::Text(self.client.clone())),
///             "bytes" => Some(Value::Count(self.bytes)),
///             _ => None,
///         }
///     }
/// }
/// ```
pub trait FieldValues {
    /// The names of the fields.
    const FIELDS: &'static [&'static str];

    /// Returns the value of a field, or `None` if this item has none.
    fn field(&self, name: &str) -> Option<Value>;
}
