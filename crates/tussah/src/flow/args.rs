//! The arguments of an instance.

use std::any::{Any, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::compiled::ParamSpec;
use super::open_file::making;

/// The arguments of an instance, keyed by the names of the module's parameters.
///
/// # Examples
/// ```
/// use tussah::flow::Args;
///
/// let args = Args::new().with("limit", 100usize).with("name", "cache".to_owned());
/// assert_eq!(args.names().collect::<Vec<_>>(), ["limit", "name"]);
/// ```
#[derive(Clone, Default)]
pub struct Args {
    values: BTreeMap<String, Value>,
    /// The name of the instance, for messages about files.
    instance: Option<Arc<str>>,
}

/// A conversion of a value from Weave.
pub(crate) type Read<T> = fn(&tussah_weave::Value) -> Result<T, String>;

/// A value of any type. It can be read again when the instance is created again.
#[derive(Clone)]
struct Value {
    of: &'static str,
    value: Arc<dyn Any + Send + Sync>,
}

impl Args {
    /// Creates an empty set of arguments.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an argument. The value must have the type of the parameter.
    #[must_use]
    pub fn with<T: Clone + Send + Sync + 'static>(mut self, name: &str, value: T) -> Self {
        let value = Value {
            of: type_name::<T>(),
            value: Arc::new(value),
        };
        self.values.insert(name.to_owned(), value);
        self
    }

    /// Returns an iterator over the names of the arguments.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// Adds the arguments of another set.
    #[must_use]
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.values.extend(other.values);
        self
    }

    /// Returns a set with a single argument of this set, under a new name.
    pub(crate) fn copy(&self, from: &str, to: &str) -> Option<Self> {
        let value = self.values.get(from)?.clone();
        Some(Self {
            values: BTreeMap::from([(to.to_owned(), value)]),
            instance: None,
        })
    }

    /// Sets the instance that has these arguments.
    #[must_use]
    pub(crate) fn of(mut self, instance: &str) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Calls `f`, which creates an instance from these arguments.
    #[doc(hidden)]
    pub fn making<R>(&self, f: impl FnOnce() -> R) -> R {
        making(self.instance.clone(), f)
    }

    /// Returns the value of an argument. `read` converts a value that is written in Weave.
    ///
    /// # Errors
    /// Returns an error if the argument is missing or is not a valid `T`.
    #[doc(hidden)]
    pub fn get<T: Clone + 'static>(&self, name: &str, read: Option<Read<T>>) -> Result<T, String> {
        let value = self.values.get(name).ok_or_else(|| {
            format!(
                "the argument `{name}` is missing: expected a `{}`",
                type_name::<T>()
            )
        })?;
        if let (Some(weave), Some(read)) = (value.value.downcast_ref(), read) {
            return read(weave).map_err(|why| format!("the argument `{name}` {why}"));
        }
        let typed = value.value.downcast_ref::<T>().ok_or_else(|| {
            format!(
                "the argument `{name}` is a `{}`: expected a `{}`",
                value.of,
                type_name::<T>()
            )
        })?;
        Ok(typed.clone())
    }

    /// Returns the value of an argument, or `None` if it is missing.
    ///
    /// # Errors
    /// Returns an error if the argument is not a valid `T`.
    #[doc(hidden)]
    pub fn get_if<T: Clone + 'static>(
        &self,
        name: &str,
        read: Option<Read<T>>,
    ) -> Result<Option<T>, String> {
        match self.values.contains_key(name) {
            true => self.get(name, read).map(Some),
            false => Ok(None),
        }
    }

    /// Checks that each argument has a parameter.
    ///
    /// # Errors
    /// Returns an error if an argument has no parameter.
    pub(crate) fn check(&self, params: &[ParamSpec]) -> Result<(), String> {
        let names = || params.iter().map(|param| param.name);
        match self.names().find(|name| !names().any(|it| it == *name)) {
            None => Ok(()),
            Some(name) if params.is_empty() => {
                Err(format!("the argument `{name}` is unknown: expected none"))
            }
            Some(name) => Err(format!(
                "the argument `{name}` is unknown: expected `{}`",
                names().collect::<Vec<_>>().join("`, `")
            )),
        }
    }
}

impl fmt::Debug for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let args = self.values.iter().map(|(name, value)| (name, value.of));
        f.debug_map().entries(args).finish()
    }
}
