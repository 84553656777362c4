//! Random texts: nothing panics, and what is accepted has the promised properties.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tussah_weave::{Kind, Value, check, format, parse};

use crate::modules::modules;

/// Words and operators of Weave, with names that the good programs use.
const WORDS: &[&str] = &[
    "use",
    "graph",
    "test",
    "if",
    "else",
    "in",
    "out",
    "shed",
    "fuse",
    "limit",
    "via",
    "after",
    "when",
    "by",
    "workers",
    "true",
    "false",
    "call",
    "queue",
    "when_full",
    "wait",
    "drop_oldest",
    "p90",
    "of",
    "replace",
    "with",
    "send",
    "expect",
    "nothing",
    "at",
    "within",
    "advance",
    "drain",
    "a",
    "b",
    "Web",
    "http",
    "Listen",
    "flow",
    "Retry",
    "Sink",
    "pages",
    "read",
    "reply",
    "path",
    "size",
    "count",
    "duration",
    "flag",
    "ms",
    "MiB",
    "k",
    "s",
    "%",
    "0",
    "1",
    "8192",
    "0.5",
    "\"x\"",
    "/// doc\n",
    "// comment\n",
    "'a",
    "->",
    "=",
    ".",
    ",",
    ":",
    "::",
    "(",
    ")",
    "{",
    "}",
    "*",
    "/",
    "+",
    "-",
    "<",
    ">",
    "<=",
    ">=",
    "==",
    "!=",
    "&&",
    "||",
    "!",
    "&",
    "[",
    "]",
    ";",
    "?",
    "\"",
];

const PROGRAMS: &[&str] = &[
    include_str!("../good/web.weave"),
    include_str!("../good/lines.weave"),
    include_str!("../good/video.weave"),
];

/// Does everything that can be done with a text.
fn use_all(text: &str) {
    let parsed = parse(text);
    for diagnostic in &parsed.diagnostics {
        assert!(!diagnostic.message.is_empty());
        let _ = diagnostic.render("random.weave", text);
    }
    if let Ok(formatted) = format(text) {
        assert_eq!(format(&formatted).as_ref(), Ok(&formatted), "{text:?}");
    }
    let modules = modules();
    for modules in [None, Some(&modules)] {
        let checked = check(&parsed.file, modules);
        for diagnostic in &checked.diagnostics {
            let _ = diagnostic.render("random.weave", text);
        }
        let is_right = parsed.diagnostics.is_empty()
            && checked
                .diagnostics
                .iter()
                .all(|diagnostic| !diagnostic.is_error());
        for graph in &checked.graphs {
            let args: BTreeMap<String, Value> = graph
                .params
                .iter()
                .map(|param| (param.name.clone(), example(&param.kind)))
                .collect();
            let plan = graph.instantiate(&args, 2);
            if let Ok(plan) = plan
                .as_ref()
                .map_err(|_| ())
                .and_then(|plan| is_right.then_some(plan).ok_or(()))
            {
                let nodes = plan.nodes.len();
                assert!(
                    plan.edges
                        .iter()
                        .all(|edge| edge.from.node < nodes && edge.to.node < nodes)
                );
                assert!(plan.limits.iter().all(|limit| limit.count > 0));
            }
        }
    }
}

fn example(kind: &Kind) -> Value {
    match kind {
        Kind::Flag => Value::Flag(true),
        Kind::Count => Value::Count(3),
        Kind::Number => Value::Number(0.5),
        Kind::Size => Value::Size(1 << 20),
        Kind::Duration => Value::Duration(std::time::Duration::from_millis(5)),
        Kind::Rate => Value::Rate(10.0),
        Kind::Text => Value::Text("x".into()),
        Kind::Path => Value::Path("x".into()),
        Kind::Address => Value::Address("127.0.0.1:80".into()),
        Kind::Rust(_) => Value::Rust("value".into()),
    }
}

/// A change of a program: where, how many words to remove, and the words to add.
fn mutation() -> impl Strategy<Value = (prop::sample::Index, usize, Vec<&'static str>)> {
    (
        any::<prop::sample::Index>(),
        0..3_usize,
        vec(prop::sample::select(WORDS), 0..3),
    )
}

/// Splits a text into words and single other characters.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let len = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let word;
        (word, rest) = rest.split_at(len);
        words.push(word);
    }
    words
}

proptest! {
    #[test]
    fn any_text_is_read(text in any::<String>()) {
        use_all(&text);
    }

    #[test]
    fn any_words_are_read(words in vec(prop::sample::select(WORDS), 0..120)) {
        use_all(&words.join(" "));
        use_all(&format!("graph A {{ {} }}", words.join(" ")));
    }

    #[test]
    fn changed_programs_are_read(
        program in prop::sample::select(PROGRAMS),
        mutations in vec(mutation(), 1..4),
    ) {
        let mut words = words(program);
        for (at, removed, added) in mutations {
            let at = at.index(words.len() + 1);
            let end = (at + removed).min(words.len());
            words.splice(at..end, added);
        }
        use_all(&words.concat());
    }
}

#[test]
fn deep_and_long_texts_end_with_errors() {
    let check = |text: String| {
        let parsed = parse(&text);
        assert!(!parsed.diagnostics.is_empty(), "{}", &text[..40]);
        use_all(&text);
    };
    for part in [
        "(",
        "-",
        "!",
        "1 + ",
        "if true {",
        "a::{",
        "&",
        "a -> ",
        "[",
        "x<",
        "else if a {",
    ] {
        check(format!("graph A {{ x = B({}", part.repeat(20_000)));
        check(format!("graph A {{ {}", part.repeat(20_000)));
        check(format!("graph A(x: {}", part.repeat(20_000)));
        check(format!("use {}", part.repeat(20_000)));
    }
    check("/*".repeat(100_000));
    check("x".repeat(2 << 20));
}

/// Graphs inside graphs multiply; the bound on parts stops them.
#[test]
fn graphs_that_multiply_are_refused() {
    let mut text = "use a::M\ngraph G0(n: count) { m = M(n) in -> m m -> out }\n".to_owned();
    for level in 1..40 {
        let inner = level - 1;
        let previous = format!("G{inner}(n + n)");
        text.push_str(&format!(
            "graph G{level}(n: count) {{ a = {previous} b = {previous} in -> a -> b -> out }}\n"
        ));
    }
    let parsed = parse(&text);
    assert!(parsed.diagnostics.is_empty());
    let checked = check(&parsed.file, None);
    let errors = checked.diagnostics.iter();
    let too_large = errors.filter(|error| error.message.contains("more than 4096"));
    assert_eq!(too_large.count(), 1);
    assert!(checked.graphs.iter().all(|graph| graph.nodes.len() <= 4096));
}

/// A chain of graphs does not multiply, but each of them contains all before it.
#[test]
fn copies_of_graphs_are_bounded() {
    let of_chain = |chain: usize| {
        let mut text = "use M\ngraph X0() { a = M() in -> a -> out }\n".to_owned();
        for level in 1..chain {
            let inner = level - 1;
            text.push_str(&format!(
                "graph X{level}() {{ a = X{inner}() in -> a -> out }}\n"
            ));
        }
        let checked = check(&parse(&text).file, None);
        let errors = checked.diagnostics.iter().filter(|it| it.is_error());
        errors
            .map(|error| error.message.clone())
            .collect::<Vec<_>>()
    };
    let error = "the graphs inside other graphs have more than 262144 instances and edges";
    assert_eq!(of_chain(200), [""; 0]);
    assert_eq!(of_chain(2000), [error]);
    let of_copies = |inner: &str| {
        let copies =
            (0..2000).map(|number| format!(" graph B{number}() {{ a = A() in -> a -> out }}"));
        let text = format!("use M graph A() {{ {inner} }}") + &copies.collect::<String>();
        let checked = check(&parse(&text).file, None);
        let errors = checked.diagnostics.iter().filter(|it| it.is_error());
        errors
            .map(|error| error.message.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of_copies("a = M() in -> a -> out"), [""; 0]);
    // Long names, types and expressions count as several.
    let long = "n".repeat(10_000);
    let types = "u8, ".repeat(200);
    let sum = "1 + ".repeat(90);
    for inner in [
        format!("{long} = M() in -> {long} -> out"),
        format!("a = M() in -> a a.{long} -> out"),
        format!("a = M<({types})>() in -> a -> out"),
        format!("a = M({sum} 1) in -> a -> out"),
        format!("a = M() in -> a via queue({sum} 1) a -> out"),
    ] {
        assert_eq!(of_copies(&inner), [error]);
    }
}

#[test]
fn a_graph_with_too_many_parts_is_reported_once() {
    let check = |statements: String| {
        let text = format!("use M\ngraph A {{ {statements} }}\n");
        let checked = check(&parse(&text).file, None);
        let messages: Vec<_> = checked.diagnostics.iter().map(|it| &it.message).collect();
        assert_eq!(
            messages,
            ["the graph has more than 4096 instances and edges"]
        );
    };
    check(
        (0..5000)
            .map(|number| format!("m{number} = M() "))
            .collect(),
    );
    let ports = (0..5000).map(|number| format!("a.p{number} -> b.p{number} "));
    check(format!("a = M() b = M() {}", ports.collect::<String>()));
}
