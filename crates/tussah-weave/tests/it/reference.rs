//! The grammar of the reference, compared with the parser.

use std::collections::BTreeSet;

use tussah_weave::{lex, parse};

const PROGRAMS: &[&str] = &[
    include_str!("../good/web.weave"),
    include_str!("../good/lines.weave"),
    include_str!("../good/video.weave"),
    include_str!("../good/spaces.weave"),
    "graph All(a: flag, b: count, c: number, d: size, e: duration, f: rate, g: text, p: path,
       i: address = \"a:1\") {
       if b != 1 || b <= 2 && b >= 3 == false { in -> out via queue(1, when_full: wait) }
       fuse in -> out
     }
     test \"all\" of All { drain }",
];

fn grammar() -> &'static str {
    let page = include_str!("../../../../docs/weave.md");
    let (_, rest) = page
        .split_once("```ebnf\n")
        .expect("the page has a grammar");
    rest.split_once("```").expect("the grammar ends").0
}

/// Returns the words between quotes.
fn terminals() -> BTreeSet<&'static str> {
    grammar().split('"').skip(1).step_by(2).collect()
}

#[test]
fn the_parser_accepts_each_word_of_the_grammar() {
    let mut used = BTreeSet::new();
    for program in PROGRAMS {
        let parsed = parse(program);
        assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
        let spans = lex(program).tokens.into_iter().map(|token| token.span);
        used.extend(spans.map(|span| &program[span.start as usize..span.end as usize]));
    }
    let missing: Vec<_> = terminals()
        .into_iter()
        .filter(|word| !used.contains(word))
        .collect();
    assert!(missing.is_empty(), "in no program: {missing:?}");
}

#[test]
fn each_production_is_defined_and_used() {
    let lines = grammar().lines();
    let rules: Vec<(&str, &str)> = lines
        .map(|line| line.split_once(" = ").expect(line))
        .collect();
    let defined: BTreeSet<&str> = rules.iter().map(|(name, _)| name.trim()).collect();
    let mut used = BTreeSet::from(["file"]);
    for (_, rule) in &rules {
        let outside_quotes: String = rule.split('"').step_by(2).collect::<Vec<_>>().join(" ");
        for word in outside_quotes
            .split(|c: char| !c.is_ascii_lowercase())
            .filter(|word| !word.is_empty())
        {
            used.insert(
                *defined
                    .get(word)
                    .unwrap_or_else(|| panic!("`{word}` is not defined")),
            );
        }
    }
    assert_eq!(used, defined);
}
