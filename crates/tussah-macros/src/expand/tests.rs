//! Tests of the expansions, as text.

use super::*;

fn expand_text(entry: Entry, arguments: &str, item: &str) -> String {
    let arguments = arguments.parse().expect("the arguments are tokens");
    super::entry(entry, arguments, item.parse().expect("the item is tokens")).to_string()
}

/// Returns the expansion of an item, ignoring white space.
fn check(entry: Entry, arguments: &str, item: &str, expected: &str) {
    let expected: TokenStream = expected.parse().expect("the expectation is tokens");
    assert_eq!(expand_text(entry, arguments, item), expected.to_string());
}

/// Returns the messages, in order.
fn errors(entry: Entry, arguments: &str, item: &str) -> Vec<String> {
    let arguments = arguments.parse().expect("the arguments are tokens");
    let text = super::entry(entry, arguments, item.parse().expect("the item is tokens"));
    let file: syn::File = syn::parse2(text).expect("the expansion is made of items");
    let messages = file.items.into_iter().filter_map(|item| match item {
        syn::Item::Macro(item) if item.mac.path.segments.last()?.ident == "compile_error" => Some(
            item.mac
                .parse_body::<LitStr>()
                .expect("compile_error has a string")
                .value(),
        ),
        _ => None,
    });
    messages.collect()
}

#[test]
fn main_with_nothing() {
    check(
        Entry::Main,
        "",
        "async fn main() { work().await; }",
        r#"
        fn main() {
            async fn main() { work().await; }
            let runtime = ::tussah::Runtime::builder().build().unwrap_or_else(|error| ::core::panic!("cannot start the runtime: {error}"));
            runtime.block_on_spawned(main())
        }
        "#,
    );
}

#[test]
fn main_with_everything() {
    check(
        Entry::Main,
        r#"workers = 3, name = "web","#,
        "/** Doc. */ pub async fn main() -> Result<(), E> { #![allow(unused)] serve().await }",
        r#"
        /** Doc. */
        #[allow(unused)]
        pub fn main() -> ::std::process::ExitCode {
            async fn main() -> Result<(), E> { serve().await }
            let runtime = ::tussah::Runtime::builder()
                .workers(3)
                .name("web")
                .build()
                .unwrap_or_else(|error| ::core::panic!("cannot start the runtime: {error}"));
            runtime.block_on_spawned(async { ::std::process::Termination::report(main().await) })
        }
        "#,
    );
}

#[test]
fn test_has_two_workers_and_keeps_attributes() {
    check(
        Entry::Test,
        "",
        "#[should_panic] async fn t() { panic!() }",
        r#"
        #[should_panic]
        #[::core::prelude::v1::test]
        fn t() {
            async fn t() { panic!() }
            let runtime = ::tussah::Runtime::builder()
                .workers(2)
                .build()
                .unwrap_or_else(|error| ::core::panic!("cannot start the runtime: {error}"));
            runtime.block_on_spawned(t())
        }
        "#,
    );
    let five = expand_text(Entry::Test, "workers = 5", "async fn t() {}");
    assert!(
        five.contains(". workers (5)") && !five.contains(". workers (2)"),
        "{five}"
    );
}

#[test]
fn mistakes_in_the_function() {
    let check = |entry, item: &str, expected: &[&str]| {
        assert_eq!(errors(entry, "", item), expected, "{item}");
    };
    let main = Entry::Main;
    check(
        main,
        "fn main() {}",
        &["#[tussah::main] needs an `async fn`"],
    );
    check(
        Entry::Test,
        "fn t() {}",
        &["#[tussah::test] needs an `async fn`"],
    );
    check(
        main,
        "async fn main(arguments: Vec<String>) {}",
        &["#[tussah::main] needs a function without arguments"],
    );
    check(
        Entry::Test,
        "async fn t(&self) {}",
        &["#[tussah::test] needs a function without arguments"],
    );
    check(
        main,
        "async fn start() {}",
        &["#[tussah::main] must be applied to the function `main`"],
    );
    check(
        Entry::Test,
        "async fn t<T>() where T: Copy {}",
        &[
            "#[tussah::test] needs a function without generic parameters",
            "#[tussah::test] needs a function without a where clause",
        ],
    );
    check(
        main,
        "async unsafe fn main() {}",
        &["#[tussah::main] cannot be used with `unsafe`"],
    );
    check(
        main,
        "async extern \"C\" fn main() {}",
        &["#[tussah::main] cannot be used with `extern`"],
    );
    check(
        Entry::Test,
        "#[test] async fn t() {}",
        &["#[tussah::test] already makes this a test; remove this attribute"],
    );
    check(
        main,
        "struct Main;",
        &["#[tussah::main] must be applied to an `async fn` with a body"],
    );
    check(
        main,
        "async fn main();",
        &["#[tussah::main] must be applied to an `async fn` with a body"],
    );
}

#[test]
fn mistakes_in_the_arguments() {
    let unknown = "unknown argument; expected `workers = 4` or `name = \"web\"`";
    let workers = "`workers` needs a whole number of at least 1, like `workers = 4`";
    let name = "`name` needs a string without null characters, like `name = \"web\"`";
    let check = |arguments: &str, expected: &[&str]| {
        assert_eq!(
            errors(Entry::Main, arguments, "async fn main() {}"),
            expected,
            "{arguments}"
        );
    };
    check("threads = 4", &[unknown]);
    check("tussah::workers = 4", &[unknown]);
    check("workers = \"4\"", &[workers]);
    check("workers = 0", &[workers]);
    check("workers = -1", &[workers]);
    check("workers = 4u8", &[workers]);
    check("workers = 2 + 2", &[workers]);
    check("workers = 99999999999999999999999", &[workers]);
    check("name = web", &[name]);
    check(r#"name = "we\0b""#, &[name]);
    check(
        "workers = 1, workers = 2",
        &["this argument is given twice"],
    );
    check("workers = 0, name = 1, size = 2", &[workers, name, unknown]);
    check("workers", &["expected `=`"]);
    check("workers(4)", &["expected `=`"]);
    check("workers = 1 name = \"a\"", &["expected `,`"]);
}

#[test]
fn all_mistakes_at_once() {
    let found = errors(Entry::Main, "threads = 1", "fn main(x: u8) {}");
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn code_after_a_mistake_still_compiles() {
    let text = expand_text(Entry::Main, "", "#[cold] fn main(x: u8) -> u8 { x }");
    assert!(
        text.ends_with("# [allow (dead_code)] fn main () { }"),
        "{text}"
    );
}
