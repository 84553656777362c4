//! The fields of items, by which graphs choose shards, and which modules compare.

use std::fmt;
use std::hash::Hasher;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tussah_weave::{Kind, Value};

use super::param::{Param, Rate, Size};

/// An item with fields that a graph can name. For example, `* 4 by path` in Weave chooses one of
/// four shards by the field `path`, and modules such as [`Filter`](crate::modules::Filter) compare
/// the value of a field.
///
/// `#[derive(Fields)]` implements this trait for a struct with named fields. Each field must be a
/// [`FieldValue`]; `#[fields(skip)]` excludes a field.
///
/// # Examples
/// ```
/// use std::time::Instant;
/// use tussah::flow::{Fields, Value};
///
/// #[derive(Fields)]
/// struct Request {
///     path: String,
///     bytes: Option<u64>,
///     #[fields(skip)]
///     begun: Instant,
/// }
///
/// let request = Request { path: "/".to_owned(), bytes: None, begun: Instant::now() };
/// assert_eq!(Request::NAMES, ["path", "bytes"]);
/// assert_eq!(request.field("path"), Some(Value::Text("/".to_owned())));
/// assert_eq!(request.field("bytes"), None);
/// ```
pub trait Fields {
    /// The names of the fields.
    const NAMES: &'static [&'static str];

    /// Returns the value of a field, or `None` if this item has no value for it.
    fn field(&self, name: &str) -> Option<Value>;

    /// Returns the number of the shard that handles this item, if the field itself contains this
    /// number. Numbers beyond the last shard wrap around: with four shards, 4 means shard 0, and
    /// 5 means shard 1.
    ///
    /// By default, this method returns `None`, and a hash of the field's value chooses the shard.
    /// With a hash, two different values can go to the same shard. If each shard stands for one
    /// resource, such as a disk, the item type should therefore override this method.
    fn shard(&self, name: &str) -> Option<usize> {
        let _ = name;
        None
    }
}

/// A type that a field of an item can have.
///
/// | type | kind |
/// |---|---|
/// | `bool` | flag |
/// | `u8`, `u16`, `u32`, `u64`, `usize` | count |
/// | `f64` | number |
/// | `String`, `&'static str`, `Arc<str>` | text |
/// | [`PathBuf`] | path |
/// | [`SocketAddr`] | address |
/// | [`Duration`] | duration |
/// | [`Size`] | size |
/// | [`Rate`] | rate |
/// | `Option` of one of these | the same kind; `None` means no value |
#[diagnostic::on_unimplemented(
    message = "a field of the type `{Self}` has no value in graphs",
    note = "`#[fields(skip)]` leaves a field out"
)]
pub trait FieldValue {
    /// Returns the value of the field, or `None` if it has no value.
    fn value(&self) -> Option<Value>;
}

macro_rules! values {
    ($($of:ty: $value:ident => $make:expr;)*) => {
        $(impl FieldValue for $of {
            fn value(&self) -> Option<Value> {
                let $value = self;
                Some($make)
            }
        })*
    };
}

values! {
    bool: it => Value::Flag(*it);
    u8: it => Value::Count((*it).into());
    u16: it => Value::Count((*it).into());
    u32: it => Value::Count((*it).into());
    u64: it => Value::Count(*it);
    usize: it => Value::Count(*it as u64);
    f64: it => Value::Number(*it);
    String: it => Value::Text(it.clone());
    &'static str: it => Value::Text((*it).to_owned());
    Arc<str>: it => Value::Text(it.as_ref().to_owned());
    PathBuf: it => Value::Path(it.to_string_lossy().into_owned());
    SocketAddr: it => Value::Address(it.to_string());
    Duration: it => Value::Duration(*it);
    Size: it => Value::Size(it.0);
    Rate: it => Value::Rate(it.0);
}

impl<T: FieldValue> FieldValue for Option<T> {
    fn value(&self) -> Option<Value> {
        self.as_ref()?.value()
    }
}

/// The name of a field of the item type `T`, as a parameter of a module.
///
/// `tussah check` and `weave!` report an argument that names no field of the items. With other
/// arguments, such as those from the command line, the graph does not start.
///
/// # Examples
/// ```
/// use tussah::flow::{FieldName, Fields, module};
///
/// /// Prints a field of each item.
/// struct Show<T> {
///     field: FieldName<T>,
/// }
///
/// #[module]
/// impl<T: Fields + Clone + Send + 'static> Show<T> {
///     fn init(field: FieldName<T>) -> Self {
///         Self { field }
///     }
///
///     fn run(&self, item: T) {
///         println!("{:?}", item.field(self.field.get()));
///     }
/// }
///
/// #[derive(Fields)]
/// struct Line {
///     text: String,
/// }
///
/// assert!(FieldName::<Line>::new("text").is_some());
/// assert!(FieldName::<Line>::new("txt").is_none());
/// ```
pub struct FieldName<T> {
    name: &'static str,
    of: PhantomData<fn(T)>,
}

impl<T: Fields> FieldName<T> {
    /// Creates the name of a field, or returns `None` if the items have no such field.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let name = T::NAMES.iter().find(|&&known| known == name)?;
        let of = PhantomData;
        Some(Self { name, of })
    }
}

impl<T> FieldName<T> {
    /// Returns the name.
    #[must_use]
    pub fn get(&self) -> &'static str {
        self.name
    }
}

impl<T> Clone for FieldName<T> {
    fn clone(&self) -> Self {
        let Self { name, of } = *self;
        Self { name, of }
    }
}

impl<T> fmt::Debug for FieldName<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FieldName").field(&self.name).finish()
    }
}

impl<T: Fields> Param for FieldName<T> {
    const KIND: Kind = Kind::Text;
    const WORDS: &'static [&'static str] = T::NAMES;

    fn read(value: &Value) -> Result<Self, String> {
        let name = match value {
            Value::Text(name) => Self::new(name),
            _ => None,
        };
        name.ok_or_else(|| format!("is {value}, but the items have no such field"))
    }
}

/// A function that hashes the value of a field.
pub type HashField<T> = fn(&T, &str, &mut dyn Hasher);

/// Writes the value of a field into a hash. Items without a value have the same hash.
/// A shard that the item itself names goes to `write_usize`, which no value of a field uses.
pub(crate) fn hash_field<T: Fields>(item: &T, field: &str, hasher: &mut dyn Hasher) {
    if let Some(shard) = item.shard(field) {
        return hasher.write_usize(shard);
    }
    match item.field(field) {
        None => {}
        Some(Value::Text(text)) => hasher.write(text.as_bytes()),
        Some(Value::Count(count)) => hasher.write_u64(count),
        Some(value) => hasher.write(value.to_string().as_bytes()),
    }
}
