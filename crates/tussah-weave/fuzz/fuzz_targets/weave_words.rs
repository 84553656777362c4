//! Sequences of words of the language, which reach further into the parser than bytes do.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tussah_weave::{check, draw, format, parse};

const WORDS: &[&str] = &[
    "use", "graph", "test", "if", "else", "in", "out", "shed", "limit", "fuse", "via", "after", "when",
    "by", "workers", "true", "call", "queue", "when_full", "drop_oldest", "p90", "of", "replace",
    "with", "send", "expect", "nothing", "at", "within", "advance", "drain", "a", "b", "c", "M",
    "N", "size", "count", "flag", "ms", "MiB", "0", "1", "0.5", "\"x\"", "->", "=", ".", ",", ":",
    "::", "(", ")", "{", "}", "*", "/", "+", "-", "<", ">", "==", "&&", "!", "%", "/// doc\n",
    "// comment\n", "\n",
    // Whole phrases make right graphs likely.
    "use m::{M, N}", "graph A {", "graph B(a: count = 1) {", "a = M(b)", "b = N * workers by c",
    "c = A", "a -> b", "b -> a via queue(1, when_full: shed)", "in -> a", "b -> out",
    "limit 1 in { a, b }", "if a < 1 {", "} else {",
];

fuzz_target!(|bytes: &[u8]| {
    let words: Vec<&str> = bytes.iter().map(|&byte| WORDS[usize::from(byte) % WORDS.len()]).collect();
    let text = words.join(" ");
    let parsed = parse(&text);
    let checked = check(&parsed.file, None);
    for diagnostic in parsed.diagnostics.iter().chain(&checked.diagnostics) {
        let _ = diagnostic.render("fuzz.weave", &text);
    }
    if let Ok(formatted) = format(&text) {
        assert_eq!(format(&formatted), Ok(formatted));
    }
    for graph in &checked.graphs {
        let _ = graph.instantiate(&Default::default(), 2);
        let _ = draw::svg(graph, None);
    }
});
