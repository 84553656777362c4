//! Facts about types that the expansion of `#[module]` needs, and its calls of plain methods.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use tussah_weave::Kind;

use super::args::Read;
use super::fields::{Fields, HashField, hash_field};
use super::param::Param;

/// Finds out what a type can do: `Probe::<T>::new().clone_fn()` is the method of this
/// type if `T: Clone`, and that of [`NoProbe`] otherwise.
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
    /// Returns the type's `clone`.
    #[must_use]
    pub fn clone_fn(&self) -> Option<fn(&T) -> T> {
        Some(T::clone)
    }
}

impl<T: Param> Probe<T> {
    /// The type's kind.
    pub const KIND: Option<Kind> = Some(T::KIND);

    /// Returns the type's `read`.
    #[must_use]
    pub fn read_fn(&self) -> Option<Read<T>> {
        Some(T::read)
    }
}

/// A type of modules with documentation, to which `#[module]` is applied.
pub trait Documented {
    /// The documentation.
    const DOC: &'static str;
}

impl<T: Documented> Probe<T> {
    /// Returns the type's documentation.
    #[must_use]
    pub fn doc(&self) -> &'static str {
        T::DOC
    }
}

impl<T: Fields> Probe<T> {
    /// Returns the function that hashes a field of the type.
    #[must_use]
    pub fn hash_fn(&self) -> Option<HashField<T>> {
        Some(hash_field::<T>)
    }

    /// Returns the names of the type's fields.
    #[must_use]
    pub fn fields(&self) -> &'static [&'static str] {
        T::NAMES
    }
}

impl<T: FromStr> Probe<T> {
    /// Returns the type's `from_str`.
    #[must_use]
    pub fn parse_fn(&self) -> Option<fn(&str) -> Option<T>> {
        Some(|text| text.parse().ok())
    }
}

impl<T: fmt::Display> Probe<T> {
    /// Returns the type's `to_string`.
    #[must_use]
    pub fn show_fn(&self) -> Option<fn(&T) -> String> {
        Some(T::to_string)
    }
}

impl<T: fmt::Debug> Probe<T> {
    /// Returns the function that shows the type by `Debug`.
    #[must_use]
    pub fn debug_fn(&self) -> Option<fn(&T) -> String> {
        Some(|item| format!("{item:?}"))
    }
}

/// The other half of [`Probe`]: no method finds anything.
pub trait NoProbe<T> {
    /// The type has no kind in Weave.
    const KIND: Option<Kind> = None;

    /// The type cannot be cloned.
    fn clone_fn(&self) -> Option<fn(&T) -> T> {
        None
    }

    /// The type cannot be made of text.
    fn parse_fn(&self) -> Option<fn(&str) -> Option<T>> {
        None
    }

    /// The type has no `Display`.
    fn show_fn(&self) -> Option<fn(&T) -> String> {
        None
    }

    /// The type has no `Debug`.
    fn debug_fn(&self) -> Option<fn(&T) -> String> {
        None
    }

    /// The type has no values in Weave.
    fn read_fn(&self) -> Option<Read<T>> {
        None
    }

    /// The type has no fields to choose a shard by.
    fn hash_fn(&self) -> Option<HashField<T>> {
        None
    }

    /// The type has no documentation.
    fn doc(&self) -> &'static str {
        ""
    }

    /// The type has no fields to choose a shard by.
    fn fields(&self) -> &'static [&'static str] {
        &[]
    }
}

impl<T> NoProbe<T> for Probe<T> {}

/// Calls a plain function of a module. The caller sends on what the function has sent before a
/// panic goes on.
///
/// # Errors
/// Returns the payload of a panic.
pub fn call<R>(f: impl FnOnce() -> R) -> std::thread::Result<R> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f))
}

/// Returns the result of [`call`], or continues its panic.
pub fn unwound<R>(result: std::thread::Result<R>) -> R {
    result.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}

/// The result of a method that can fail.
#[diagnostic::on_unimplemented(
    message = "the method of a module returns nothing or a `Result<(), E>`, not `{Self}`"
)]
pub trait Fails {
    /// The error, which goes to the port `failed`.
    type Error;
}

impl<E> Fails for Result<(), E> {
    type Error = E;
}
