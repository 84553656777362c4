//! The attribute macros of tussah; use them through the `tussah` crate.
//!
//! Each is one call into `expand`, whose tests work on token streams.
#![forbid(unsafe_code)]

mod expand;

use proc_macro::TokenStream;

use crate::expand::Entry;

/// Runs an `async fn main` as the first thread of a runtime.
///
/// The body runs as a thread on the workers, and `main` waits for it. Everything the body holds
/// across an await, and its return value, must therefore be `Send`, as in
/// `Result<(), Box<dyn Error + Send + Sync>>`. If the body panics, `main` panics.
///
/// The runtime ends when the body returns, without a grace period: other threads are dropped, and
/// unfinished work such as a file copy stays incomplete.
///
/// | argument | meaning | default |
/// |---|---|---|
/// | `workers = 4` | number of workers, at least 1 | one per CPU |
/// | `name = "web"` | prefix of the workers' names | the builder's default |
///
/// ```ignore
/// #[tussah::main(workers = 2, name = "web")]
/// async fn main() -> std::io::Result<()> {
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::entry(Entry::Main, arguments.into(), item.into()).into()
}

/// Runs an `async fn` as a test, in its own runtime.
///
/// It takes the arguments of `#[tussah::main]`; the default is 2 workers. Further attributes, such
/// as `#[should_panic]`, are kept.
///
/// ```ignore
/// #[tussah::test]
/// async fn one_thread_waits_for_another() {
///     assert_eq!(tussah::spawn(async { 7 }).await.unwrap(), 7);
/// }
/// ```
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::entry(Entry::Test, arguments.into(), item.into()).into()
}
