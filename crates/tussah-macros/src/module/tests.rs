//! The messages for blocks that are no modules.

use syn::LitStr;

use super::*;

/// Returns the first message for a block.
fn error(arguments: &str, block: &str) -> Option<String> {
    let arguments = arguments.parse().expect("the arguments are tokens");
    let expanded = module(arguments, block.parse().expect("the block is tokens"));
    let file: syn::File = syn::parse2(expanded).expect("the expansion is made of items");
    file.items.into_iter().find_map(|item| match item {
        syn::Item::Macro(item) if item.mac.path.segments.last()?.ident == "compile_error" => {
            let message: LitStr = item.mac.parse_body().expect("compile_error has a string");
            Some(message.value())
        }
        _ => None,
    })
}

#[track_caller]
fn check(methods: &str, expected: &str) {
    let message = error("", &format!("impl M {{ {methods} }}"));
    assert_eq!(message.as_deref(), Some(expected));
}

#[track_caller]
fn is_module(methods: &str) {
    assert_eq!(error("", &format!("impl M {{ {methods} }}")), None);
}

#[test]
fn signatures_of_modules() {
    is_module("fn run(&self, item: u64) {}");
    is_module("fn run(&mut self, item: u64, out: &impl Out<u64>) -> Result<(), String> {}");
    is_module("async fn run(&self, state: &mut S, item: u64, out: &impl AsyncOut<u64>) {}");
    is_module("fn run(&self, item: &'static str, flow: &Flow, bad: Option<&impl Out<u64>>) {}");
    is_module(
        "fn run(&mut self, items: &mut Batch<u64>, out: &impl Out<u64>) -> Result<(), String> {}",
    );
    is_module("async fn run(&self, items: &mut Batch<'_, u64>, out: &impl AsyncOut<u64>) {}");
    is_module("fn run(&self, items: &mut Batch<u64>) {} #[port] fn b(&self, a: u64, f: &Flow) {}");
    is_module("fn run(&mut self, items: &mut Batch<u64>) {} fn tick(&mut self) {}");
    is_module(
        "fn run(&self, items: &mut Batch<u64>, s: &mut S, f: &Flow) {} fn end(&self, s: S) {}",
    );
    is_module("async fn start(&self, out: &impl AsyncOut<u64>) {}");
    is_module(
        "async fn start(&self, flow: &Flow, out: &impl AsyncOut<u64>) -> Result<(), String> {} fn run(&self, item: u64, state: &mut S, out: &impl Out<u64>) {} fn end(&self, state: S) {} fn tick(&self) {}",
    );
    is_module(
        "fn run(&self, item: u64, state: &mut S, wake: &Wake) {} fn wake(&self, state: &mut S) {} fn end(&self, state: S) {}",
    );
    is_module(
        "fn init(limit: usize) -> Self {} #[port] fn load(&self, item: u64) {} fn helper(&self) {}",
    );
}

#[test]
fn what_is_no_module() {
    check(
        "fn stop(&self) {}",
        "a module handles items in `run`, or produces them in `start`; found neither",
    );
    check(
        "fn run(&self) {}",
        "`run` takes no item; expected an argument by value",
    );
    check(
        "fn run(item: u64) {}",
        "`run` must take `&self` or `&mut self`",
    );
    check(
        "fn run(self, item: u64) {}",
        "`run` must take `&self` or `&mut self`",
    );
    check(
        "fn run(&self, a: u64, b: u64) {}",
        "a method takes one item; expected one argument by value",
    );
    check(
        "fn run(&self, a: &u64) {}",
        "an item is taken by value, the state of a flow by `&mut`, and an output by \
         `&impl Out<..>` or `&impl AsyncOut<..>`",
    );
    check(
        "fn run(&self, a: u64, s: &mut S, t: &mut S) {}",
        "a flow has one state; expected one argument by `&mut`",
    );
    check(
        "fn run(&mut self, a: u64, s: &mut S) {}",
        "a method of `&mut self` handles one item at a time, so state for each flow is of no use",
    );
    check(
        "fn run(&self, items: &mut Batch<u64>, flow: &Flow) {}",
        "a batch has items of several flows; expected `items.flow()`, the flow of the last one",
    );
    check(
        "fn run<T>(&self, a: T) {}",
        "the methods of a module have no parameters of their own; expected them on the `impl`",
    );
    check(
        "fn run(&self, (a, b): (u64, u64), out: &impl AsyncOut<u64>) {}",
        "an output of a plain `fn` is `&impl Out<T>`",
    );
    check(
        "fn run(&self, a: u64, out: impl Out<u64>) {}",
        "an output of a plain `fn` is `&impl Out<T>`",
    );
    check(
        "fn run(&self, out: Option<impl Out<u64>>, a: u64) {}",
        "an output of a plain `fn` is `&impl Out<T>`",
    );
    check(
        "async fn run(&self, a: u64, out: &impl Out<u64>) {}",
        "an output of an `async fn` is `&impl AsyncOut<T>`",
    );
    check(
        "fn run(&self, a: u64, out: &impl Out<u64>) {} #[port] fn b(&self, a: u64, out: &impl Out<u8>) {}",
        "the output `out` sends `u8` here and `u64` elsewhere; expected one type",
    );
    check(
        "fn run(&self, a: u64, dropped: &impl Out<u64>) {}",
        "every module has the output `dropped` for items that were not handled; expected another name",
    );
    check(
        "async fn init() -> Self {} fn run(&self, a: u64) {}",
        "`init` cannot wait; expected a plain `fn`",
    );
    check(
        "fn init(&self) -> Self {} fn run(&self, a: u64) {}",
        "`init` makes the module; expected no `self`",
    );
    check(
        "fn start(&self) {}",
        "`start` must be an `async fn` of `&self`",
    );
    check(
        "async fn start(&self, a: u64) {} fn run(&self, a: u64) {}",
        "`start` takes outputs only: `out: &impl AsyncOut<T>`",
    );
    check(
        "async fn start(&self, s: &mut S) {} fn run(&self, a: u64, s: &mut S) {}",
        "`start` takes outputs only: `out: &impl AsyncOut<T>`",
    );
    check(
        "async fn start(&self, wake: &Wake) {} fn run(&self, a: u64, s: &mut S) {}",
        "`start` takes outputs only: `out: &impl AsyncOut<T>`",
    );
    check(
        "async fn start(&self) {} fn run(&mut self, a: u64) {}",
        "`start` runs beside `run`, and both cannot have `&mut self` at once; expected `&self`, a lock around what changes, and `#[module(serial)]` for one item at a time",
    );
    check(
        "async fn start(&self) {} fn run(&self, a: u64) {} fn tick(&mut self) {}",
        "`start` runs beside `tick`, and both cannot have `&mut self` at once; expected `&self`, a lock around what changes, and `#[module(serial)]` for one item at a time",
    );
    check(
        "async fn start(&self) {} fn tick(&self) {}",
        "a module with `start` and without `run` is a source; expected no other method of a module",
    );
    check(
        "fn run(&self, a: u64) {} fn end(&self, s: S) {}",
        "`end` is for modules with state for each flow; expected an argument by `&mut`",
    );
    check(
        "fn run(&self, a: u64, s: &mut S) {} fn tick(&self, s: &mut S) {}",
        "`tick` is for all flows, without state; expected `wake`, which is for one flow",
    );
    check(
        "fn run(&self, a: u64) {} fn tick(&self, a: u64) {}",
        "`tick` takes outputs only",
    );
    check(
        "fn run(&self, a: u64, s: &mut S) {} fn wake(&self) {}",
        "`wake` takes the state of the flow by `&mut`, and no item",
    );
    check(
        "fn run(&self, a: u64, s: &mut S) {} fn end(&self, s: &mut S) {}",
        "`end` takes the state of the flow by value",
    );
}

#[test]
fn arguments_and_places_of_the_attribute() {
    let run = "impl M { fn run(&self, item: u64) {} }";
    assert_eq!(error("serial", run), None);
    assert_eq!(error("blocking", run), None);
    let message = error("fast", run);
    assert_eq!(
        message.as_deref(),
        Some("unknown argument; expected `blocking`, `serial`, `flows` or `ordered`")
    );
    assert_eq!(error("ordered", run), None);
    let expected =
        "a module keeps the order of all of its items, or of each flow; expected no `ordered`";
    for ordered in ["&mut self, item: u64", "&self, item: u64, state: &mut S"] {
        let message = error("ordered", &format!("impl M {{ fn run({ordered}) {{}} }}"));
        assert_eq!(message.as_deref(), Some(expected));
    }
    let message = error("ordered, serial", run);
    assert_eq!(message.as_deref(), Some(expected));
    let message = error("blocking", "impl M { async fn run(&self, item: u64) {} }");
    let expected =
        "a module that blocks has plain methods of `&self` without state, and no `start`";
    assert_eq!(message.as_deref(), Some(expected));
    let start = "async fn start(&self) {}";
    for methods in [start, &format!("{start} fn run(&self, item: u64) {{}}")] {
        let message = error("blocking", &format!("impl M {{ {methods} }}"));
        assert_eq!(message.as_deref(), Some(expected));
    }
    let unread = "impl M { fn run(&self, item: u64) { let a = ; } }";
    let unread = module(TokenStream::new(), unread.parse().expect("tokens"));
    let expected = "#[module] cannot read this `impl` block: expected an expression";
    assert!(unread.to_string().contains(expected), "{unread}");
    let message = error("", "trait M {}");
    let expected = "#[module] must be applied to the `impl` block of a struct";
    assert_eq!(message.as_deref(), Some(expected));
    let message = error("", "impl Handler for M { fn run(&self, item: u64) {} }");
    let expected = "#[module] must be applied to the `impl` block of a struct, not of a trait";
    assert_eq!(message.as_deref(), Some(expected));
}
