//! Texts: nothing panics, and formatting is idempotent.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tussah_weave::{check, draw, format, parse};

fuzz_target!(|text: &str| {
    let parsed = parse(text);
    let checked = check(&parsed.file, None);
    for diagnostic in parsed.diagnostics.iter().chain(&checked.diagnostics) {
        let _ = diagnostic.render("fuzz.weave", text);
    }
    if let Ok(formatted) = format(text) {
        assert_eq!(format(&formatted), Ok(formatted));
    }
    for graph in &checked.graphs {
        let _ = graph.instantiate(&Default::default(), 2);
        let _ = draw::svg(graph, None);
    }
});
