//! The attribute macros of tussah; use them through the `tussah` crate.
//!
//! Each is one call into `expand`, which is tested on token streams.
#![forbid(unsafe_code)]

mod expand;

use proc_macro::TokenStream;

use crate::expand::Entry;

/// Makes an `async fn main` the first thread of a runtime.
///
/// The body runs as a thread on the runtime's workers, and `main` waits for it: so what the body keeps across its awaits and
/// what it returns are `Send`, as in `Result<(), Box<dyn Error + Send + Sync>>`. A panic of the body is a panic of `main`. What
/// still runs when the body ends gets no time to end: threads are dropped with the runtime, and what is being copied stays half.
///
/// | argument | meaning | default |
/// |---|---|---|
/// | `workers = 4` | how many workers, at least 1 | one per CPU |
/// | `name = "web"` | the first part of the workers' names | that of the builder |
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

/// Runs an `async fn` as a test, in a runtime of its own.
///
/// As `#[tussah::main]`, with 2 workers unless told otherwise. Further attributes, like `#[should_panic]`, stay.
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
