//! The formatter.

use proptest::collection::vec;
use proptest::prelude::*;
use tussah_weave::{Punct, TokenKind, format, lex};

const PROGRAMS: &[&str] = &[
    include_str!("../good/web.weave"),
    include_str!("../good/lines.weave"),
    include_str!("../good/video.weave"),
    include_str!("../good/spaces.weave"),
];

#[test]
fn the_good_programs_are_formatted() {
    for program in PROGRAMS {
        assert_eq!(format(program).as_deref(), Ok(*program));
    }
}

#[test]
fn lines_are_broken_and_aligned() {
    let check = |text: &str, expected: &str| {
        let formatted = format(text).unwrap_or_else(|errors| panic!("{errors:?}"));
        assert_eq!(formatted, expected);
        assert_eq!(format(&formatted).as_deref(), Ok(expected));
    };
    check("", "");
    check("\n\n// a\n\n\n// b\n", "// a\n\n// b\n");
    check("use a::{ b,c , },d", "use a::{b, c}, d\n");
    check("graph A{}graph B{}", "graph A {\n}\n\ngraph B {\n}\n");
    check("graph A(a:count=1,){}", "graph A(a: count = 1) {\n}\n");
    check(
        "graph A(a:count /*x*/,b:size){}",
        "graph A(\n  a: count, /*x*/\n  b: size,\n) {\n}\n",
    );
    check(
        "graph A {\n  // first\n  a=B\n  /// doc\n  abc=D /*1*/ // 2\n\n  if a==1{b=C}else if!c{d=E}else{}\n // last\n}",
        "graph A {\n  // first\n  a   = B\n  /// doc\n  abc = D /*1*/ // 2\n\n  if a == 1 {\n    b = C\n  } else if !c {\n    d = E\n  } else {\n  }\n  // last\n}\n",
    );
    check(
        "graph A {\n  a = B(1, // one\n    // two\n    2) // three\n}",
        "graph A {\n  // one\n  // two\n  a = B(1, 2) // three\n}\n",
    );
    let long = "x".repeat(40);
    check(
        &format!("graph A {{ {long} -> {long} -> {long} }}"),
        &format!("graph A {{\n  {long} -> {long}\n      -> {long}\n}}\n"),
    );
    check(
        &format!("graph A {{ a = B({long} + {long} + {long},) }}"),
        &format!("graph A {{\n  a = B({long} + {long} + {long})\n}}\n"),
    );
    check("graph A(a: ::size::B){}", "graph A(a: ::size::B) {\n}\n");
    check(
        "test \"a\" of A(1){send b -1,\"x\" drain expect nothing at c within 2*(1 s)}",
        "test \"a\" of A(1) {\n  send b - 1, \"x\"\n  drain\n  expect nothing at c within 2 * (1 s)\n}\n",
    );
}

/// The time of the formatter grows with the length of the text. If it grew with the square of the
/// length, this test would take minutes instead of seconds.
#[test]
fn long_texts_are_formatted() {
    let check = |before: &str, part: &str, after: &str| {
        let count = (1 << 17) / part.len();
        let formatted = format(&format!("{before}{}{after}", part.repeat(count)));
        let formatted = formatted.unwrap_or_else(|errors| panic!("{errors:?}"));
        assert!(formatted.lines().count() >= count, "{part:?}");
    };
    check("graph A {", "a=B<C>()\n", "}");
    check("graph A {", "a=B ", "}");
    check("", "graph A(/**/a:B){}\n", "");
}

/// Returns the tokens without commas that are optional, and the comments in their order.
fn content(text: &str) -> (Vec<TokenKind>, Vec<String>) {
    let lexed = lex(text);
    let is_close = |kind: Option<&TokenKind>| {
        matches!(
            kind,
            Some(TokenKind::Punct(Punct::ParenClose | Punct::BraceClose))
        )
    };
    let kinds: Vec<TokenKind> = lexed.tokens.into_iter().map(|token| token.kind).collect();
    let is_optional = |index: usize| {
        kinds[index] == TokenKind::Punct(Punct::Comma) && is_close(kinds.get(index + 1))
    };
    let kept = (0..kinds.len()).filter(|&index| !is_optional(index));
    let kept = kept.map(|index| match kinds[index].clone() {
        TokenKind::Doc(doc) => TokenKind::Doc(doc.trim_end().to_owned()),
        kind => kind,
    });
    let mut comments: Vec<String> = lexed
        .comments
        .iter()
        .map(|comment| {
            text[comment.span.start as usize..comment.span.end as usize]
                .trim_end()
                .to_owned()
        })
        .collect();
    // A comment can move above the line that it is in.
    comments.sort();
    (kept.collect(), comments)
}

proptest! {
    /// Between tokens there can be anything.
    #[test]
    fn formatting_keeps_everything_and_is_idempotent(
        program in prop::sample::select(PROGRAMS),
        gaps in vec(prop::sample::select(GAPS), 1..40),
        seed in any::<usize>(),
    ) {
        let lexed = lex(program);
        let mut text = String::new();
        let mut end = 0;
        for (index, token) in lexed.tokens.iter().enumerate() {
            let (start, stop) = (token.span.start as usize, token.span.end as usize);
            match (index * 7 + seed) % 5 {
                0 => text.push_str(gaps[index % gaps.len()]),
                _ => text.push_str(&program[end..start]),
            }
            if matches!(token.kind, TokenKind::Doc(_)) {
                text.push('\n');
            }
            text.push_str(&program[start..stop]);
            if matches!(token.kind, TokenKind::Doc(_)) {
                text.push('\n');
            }
            end = stop;
        }
        let formatted = format(&text).map_err(|errors| TestCaseError::fail(format!("{errors:?}")))?;
        prop_assert_eq!(content(&formatted), content(&text), "{}", formatted);
        let again = format(&formatted).map_err(|errors| TestCaseError::fail(format!("{errors:?}")))?;
        prop_assert_eq!(again, formatted);
    }
}

#[test]
fn a_byte_order_mark_is_skipped_and_removed() {
    let text = "graph A { a = B() }";
    let marked = format!("{}{text}", '\u{feff}');
    assert_eq!(format(&marked), format(text));
    let wrong = format!("{}graph A ( }}", '\u{feff}');
    let error = &tussah_weave::parse(&wrong).diagnostics[0];
    let unmarked = &tussah_weave::parse("graph A ( }").diagnostics[0];
    assert_eq!(
        error.render("a.weave", &wrong),
        unmarked.render("a.weave", "graph A ( }")
    );
}

const GAPS: &[&str] = &[
    " ",
    "\n",
    "\n\n\n",
    "  // comment\n",
    "\n// own line\n",
    " /* block */",
    "\n /* own */ \n",
    " /* two\nlines */ ",
    "\t",
    " // a\n // b\n",
    "\n\n// after a blank\n\n",
];
