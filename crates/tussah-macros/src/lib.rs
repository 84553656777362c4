//! The attribute macros of tussah; use them through the `tussah` crate.
//!
//! Each macro only calls one function in a private module. These functions work on the token
//! streams of `proc_macro2`, so tests can call the functions.
#![forbid(unsafe_code)]

mod expand;
mod fields;
mod module;
mod weave;

use proc_macro::TokenStream;

use crate::expand::Entry;

/// Runs an `async fn main` as the first thread of a runtime.
///
/// The body runs as a thread on the workers, and `main` waits for it. Everything that the body
/// holds across an `.await` must therefore be `Send`. The return type need not be `Send`: it can be
/// any type that a plain `main` can return, such as `Result<(), Box<dyn Error>>`. If the body
/// panics, `main` panics.
///
/// The expanded `main` returns an `ExitCode` if the body has a return type.
///
/// When the body returns, the runtime ends without a grace period: it drops other threads, and
/// leaves work such as a file copy unfinished.
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
/// The attribute takes the same arguments as `#[tussah::main]`, but starts 2 workers by default.
/// Other attributes of the function, such as `#[should_panic]`, still apply.
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

/// Turns a struct into a module for flow graphs. Apply the attribute to an `impl` block of the
/// struct.
///
/// | method | meaning |
/// |---|---|
/// | `init` | creates an instance; its arguments are the module's parameters. It may return a `Result`. Without `init`, `Default` creates the instance |
/// | `run` | handles an item of the default input port |
/// | `#[port] fn name` | handles an item of the input port `name` |
/// | `start` | an `async fn` that produces items. If the module also has `run` or another port, `start` runs concurrently with them, and all methods take `&self` |
/// | `tick` | runs once per period, which the module's parameter `every` sets; its only arguments are outputs |
/// | `wake`, `end` | for modules that keep state for each flow: `wake` handles the alarm of a flow, and `end` its end |
///
/// All other items in the block are left unchanged. A method that handles items takes these
/// arguments, in any order:
///
/// | argument | meaning |
/// |---|---|
/// | `item: T` | the item |
/// | `items: &mut Batch<T>` | a batch of items, in place of `item`; with `state`, all items belong to the same flow |
/// | `state: &mut S` | the state of the item's flow; it begins as `S::default()` |
/// | `name: &impl Out<T>` | the output port `name`, in a plain `fn` |
/// | `name: &impl AsyncOut<T>` | the output port `name`, in an `async fn` |
/// | `name: Option<&impl Out<T>>` | an optional output port, which needs no edge |
///
/// ```ignore
/// #[module]
/// impl Parse {
///     fn run(&self, text: String, out: &impl Out<u64>, bad: &impl Out<String>) {
///         match text.parse() {
///             Ok(number) => out.send(number),
///             Err(_) => bad.send(text),
///         }
///     }
/// }
/// ```
///
/// | argument of the attribute | meaning |
/// |---|---|
/// | `blocking` | the methods block their OS threads |
/// | `serial` | the module handles one item at a time |
/// | `ordered` | the module handles items in parallel, but sends its output in the order of the items |
/// | `flows` | adds two parameters that limit the open flows of each output port. `flows` is the maximum number; a further flow ends the one that has been idle for longest. `idle` is the time after which a flow without new items ends |
///
/// The documentation of the block becomes the module's documentation. If the block has no
/// documentation, apply `#[module]` to the struct as well, so that the module takes the struct's
/// documentation.
#[proc_macro_attribute]
pub fn module(arguments: TokenStream, item: TokenStream) -> TokenStream {
    module::module(arguments.into(), item.into()).into()
}

/// Compiles the graphs in a Weave file into the program. The argument is the path of the file,
/// relative to the source file that calls the macro.
///
/// Each graph without ports becomes a unit struct that has the graph's name and two functions:
///
/// | function | meaning |
/// |---|---|
/// | `modules() -> Modules` | the modules that the graph uses |
/// | `graph(&Params) -> Result<Graph, WeaveError>` | the graph with these values of its parameters |
///
/// The file's other graphs and its tests may use modules that a graph's `modules()` does not
/// return. Of the tests, the compiler checks only the ports; `tussah::flow::run_tests` runs them.
///
/// Rust resolves the paths of modules at the macro's call site. The compiler checks that the ports
/// of every edge exist, and that both ends have the same type. At least one edge must lead to each
/// instance that has inputs, and at least one edge must begin at each required output. A field by
/// which a graph chooses a shard must exist. A call in a graph must not lead to a module that
/// awaits or blocks. The compiler also checks that the arguments of each instance fit the module's
/// parameters. A constant must fit into the integer type of its parameter, even if it reaches the
/// parameter through inner graphs. The compiler's messages point to the location of the error in
/// the Weave file. If a module does not exist or lacks its item type, a note contains the line, as
/// in `line_5_of_web_weave`. Warnings about the file appear as warnings of a deprecated constant,
/// because a macro cannot warn.
///
/// A parameter of the graph can have a Rust type, such as `server: Arc<Server>`. Rust resolves the
/// type, including type aliases, at the macro's call site, and `Params::typed` sets the parameter's
/// value.
///
/// ```ignore
/// tussah::flow::weave_file!("web.weave");
///
/// let graph = Web::graph(&Params::new())?;
/// ```
#[proc_macro]
pub fn weave_file(input: TokenStream) -> TokenStream {
    weave::file(input.into()).into()
}

/// Compiles Weave graphs that are written inline in the program. In all other respects, the macro
/// works like `weave_file!`. Error messages point to the part of the graph that contains the error.
///
/// ```ignore
/// tussah::flow::weave! {
///     use Numbers, Print
///     graph Count(below: count = 10) {
///       numbers = Numbers(below)
///       print   = Print()
///       numbers -> print
///     }
/// }
///
/// let graph = Count::graph(&Params::new())?;
/// ```
#[proc_macro]
pub fn weave(input: TokenStream) -> TokenStream {
    weave::inline(input.into()).into()
}

/// Implements `Fields` for a struct with named fields, so that Weave graphs can refer to these
/// fields: `pages = Pages() * 4 by path`.
///
/// The type of each field must be a `FieldValue`; `#[fields(skip)]` excludes a field.
#[proc_macro_derive(Fields, attributes(fields))]
pub fn derive_fields(input: TokenStream) -> TokenStream {
    fields::derive(input.into()).into()
}
