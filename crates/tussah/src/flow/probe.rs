//! Facts about types that the expansion of `#[module]` needs, and its calls of plain methods.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use tussah_weave::Kind;

use super::args::Read;
use super::fields::{FieldName, Fields, HashField, hash_field};
use super::param::{Param, read};
use super::tap::Show;

/// A probe for the capabilities of a type: `Probe::<T>::new().clone_fn()` calls `Probe::clone_fn`
/// if `T: Clone`, and [`NoProbe::clone_fn`] otherwise.
pub struct Probe<T>(PhantomData<fn() -> T>);

impl<T> Probe<T> {
    #[expect(clippy::new_without_default, reason = "only expansions use it")]
    /// Creates a probe.
    #[must_use]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: Clone> Probe<T> {
    /// True: the type implements `Clone`.
    pub const CLONES: bool = true;

    /// Returns `T::clone`.
    #[must_use]
    pub fn clone_fn(&self) -> Option<fn(&T) -> T> {
        Some(T::clone)
    }
}

impl<T: Param> Probe<T> {
    /// The type's kind.
    pub const KIND: Option<Kind> = Some(T::KIND);

    /// The least and the greatest number that the type accepts.
    pub const RANGE: (f64, f64) = (T::LEAST, T::MOST);

    /// The texts that the type accepts.
    pub const WORDS: &'static [&'static str] = T::WORDS;

    /// Returns the function that converts a Weave value to the type.
    #[must_use]
    pub fn read_fn(&self) -> Option<Read<T>> {
        Some(read::<T>)
    }
}

impl<T: Fields> Probe<FieldName<T>> {
    /// True: the parameter names a field of the items.
    pub const NAMES_FIELD: bool = true;
}

/// A module type with a documentation comment. `#[module]` implements this trait for the type.
pub trait Documented {
    /// The documentation.
    const DOC: &'static str;
}

impl<T: Documented> Probe<T> {
    /// Returns the documentation of the type.
    #[must_use]
    pub fn doc(&self) -> &'static str {
        T::DOC
    }
}

impl<T: Fields> Probe<T> {
    /// The names of the fields of the type.
    pub const FIELDS: &'static [&'static str] = T::NAMES;

    /// Returns the function that hashes a field of the type.
    #[must_use]
    pub fn hash_fn(&self) -> Option<HashField<T>> {
        Some(hash_field::<T>)
    }
}

impl<T: FromStr> Probe<T> {
    /// Returns a function that parses a value of the type with `FromStr`.
    #[must_use]
    pub fn parse_fn(&self) -> Option<fn(&str) -> Option<T>> {
        Some(|text| text.parse().ok())
    }
}

impl<T: fmt::Display> Probe<T> {
    /// Returns a function that formats a value of the type with `Display`.
    #[must_use]
    pub fn show_fn(&self) -> Option<Show<T>> {
        Some(<T as fmt::Display>::fmt)
    }
}

impl<T: fmt::Debug> Probe<T> {
    /// Returns a function that formats a value of the type with `Debug`.
    #[must_use]
    pub fn debug_fn(&self) -> Option<Show<T>> {
        Some(<T as fmt::Debug>::fmt)
    }
}

/// The fallback for types without a capability that [`Probe`] looks for: its methods return `None`
/// or an empty value.
pub trait NoProbe<T> {
    /// Returns `None`: the type has no kind in Weave.
    const KIND: Option<Kind> = None;

    /// All numbers: the type has no kind in Weave.
    const RANGE: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

    /// An empty slice: the type has no kind in Weave.
    const WORDS: &'static [&'static str] = &[];

    /// False: the type is not a [`FieldName`].
    const NAMES_FIELD: bool = false;

    /// False: the type does not implement `Clone`.
    const CLONES: bool = false;

    /// An empty slice: the type has no fields.
    const FIELDS: &'static [&'static str] = &[];

    /// Returns `None`: the type does not implement `Clone`.
    fn clone_fn(&self) -> Option<fn(&T) -> T> {
        None
    }

    /// Returns `None`: the type does not implement `FromStr`.
    fn parse_fn(&self) -> Option<fn(&str) -> Option<T>> {
        None
    }

    /// Returns `None`: the type does not implement `Display`.
    fn show_fn(&self) -> Option<Show<T>> {
        None
    }

    /// Returns `None`: the type does not implement `Debug`.
    fn debug_fn(&self) -> Option<Show<T>> {
        None
    }

    /// Returns `None`: the type has no values in Weave.
    fn read_fn(&self) -> Option<Read<T>> {
        None
    }

    /// Returns `None`: the type has no fields.
    fn hash_fn(&self) -> Option<HashField<T>> {
        None
    }

    /// Returns an empty string: the type has no documentation.
    fn doc(&self) -> &'static str {
        ""
    }
}

impl<T> NoProbe<T> for Probe<T> {}

/// Calls a plain function of a module, and catches a panic. The caller can then send the function's
/// items before it resumes the panic.
///
/// # Errors
/// Returns the panic's payload if the function panics.
pub fn call<R>(f: impl FnOnce() -> R) -> std::thread::Result<R> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f))
}

/// Returns the result of [`call`], or resumes its panic.
pub fn unwound<R>(result: std::thread::Result<R>) -> R {
    result.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}

/// The return type of a method that can fail.
#[diagnostic::on_unimplemented(
    message = "the method of a module returns nothing or a `Result<(), E>`, not `{Self}`"
)]
pub trait Fails {
    /// The type of the error, which goes to the `failed` port.
    type Error;

    /// Returns the value as a `Result`.
    ///
    /// # Errors
    /// Returns the error that the value contains, if any.
    fn result(self) -> Result<(), Self::Error>;
}

impl<E> Fails for Result<(), E> {
    type Error = E;

    #[inline(always)]
    fn result(self) -> Self {
        self
    }
}
