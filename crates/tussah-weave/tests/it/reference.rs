//! The grammar of the reference, compared with the parser.

use std::collections::BTreeSet;

use tussah_weave::{Diagnostic, Type, format, parse};

use crate::ebnf::{Classes, Generator, Grammar};
use crate::good::checked;

const PAGE: &str = include_str!("../../../../docs/weave.md");

/// Returns the part of the page between two texts.
fn between(start: &str, end: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(start).expect(start);
    rest.split(end).next().unwrap_or(rest)
}

/// Returns the words in backticks.
fn quoted(text: &'static str) -> Vec<&'static str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The classes of tokens that the page defines below the grammar.
struct Page {
    keywords: Vec<&'static str>,
    /// Productions, with the words with which they must not begin.
    barred: Vec<(&'static str, Vec<&'static str>)>,
}

impl Page {
    fn read() -> Self {
        let rows = between("| production | does not begin with |\n|---|---|\n", "\n\n").lines();
        let barred = rows.flat_map(|row| {
            let (names, words) = row[1..].split_once('|').expect(row);
            let words = quoted(words);
            quoted(names)
                .into_iter()
                .map(move |name| (name, words.clone()))
        });
        Self {
            keywords: quoted(between("The keywords are ", ".\n")),
            barred: barred.collect(),
        }
    }

    fn is_class(&self, class: &str, token: &str) -> bool {
        let is_word = token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let is_unit = [COUNTS, TIMES, SIZES].concat().contains(&token);
        match class {
            "NAME" => is_word && !is_unit && !self.keywords.contains(&token),
            "WORD" => is_word,
            "UNIT" => is_unit,
            "COUNT_UNIT" => COUNTS.contains(&token),
            "TIME_UNIT" => TIMES.contains(&token),
            "NUMBER" => token.starts_with(|c: char| c.is_ascii_digit()),
            "STRING" => token.starts_with('"'),
            "DOC" => token.starts_with("///"),
            _ => panic!("unknown class {class}"),
        }
    }
}

const CLASSES: &[&str] = &[
    "NAME",
    "WORD",
    "UNIT",
    "COUNT_UNIT",
    "TIME_UNIT",
    "NUMBER",
    "STRING",
    "DOC",
    "RUST_TYPE",
];
const COUNTS: &[&str] = &["k", "M", "G"];
const TIMES: &[&str] = &["ns", "us", "ms", "s", "min", "h"];
/// The primitive types among the samples.
const PRIMITIVES: &[&str] = &["u8", "u32", "str"];
const SIZES: &[&str] = &[
    "B", "KB", "KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB",
];

impl Classes for Page {
    fn samples(&self, class: &str) -> &[&str] {
        match class {
            "NAME" => &[
                "a", "b", "reply", "nothing", "at", "within", "drain", "call", "queue",
            ],
            "WORD" => &[
                "a", "Log", "out", "in", "limit", "shed", "graph", "use", "ms", "by", "if",
            ],
            "UNIT" => &["k", "ms", "MiB", "s"],
            "COUNT_UNIT" => COUNTS,
            "TIME_UNIT" => TIMES,
            // Whole numbers, because a size has a whole number of bytes.
            "NUMBER" => &["10", "1_000", "2.0"],
            "STRING" => &["\"\"", "\"www/index.html\"", "\"\\\"\""],
            "DOC" => &["/// A comment."],
            "RUST_TYPE" | "PARAM_TYPE" => &[
                "u32",
                "Vec < ( u8 , A ) >",
                "& 'static str",
                "text :: Line",
                ":: size :: A",
                "[ std :: u8 ; 4 ]",
            ],
            _ => panic!("unknown class {class}"),
        }
    }

    fn ends(&self, class: &str, tokens: &[String], start: usize) -> Vec<usize> {
        let is_param = class == "PARAM_TYPE";
        if class != "RUST_TYPE" && !is_param {
            let next = tokens.get(start);
            let is_next = next.is_some_and(|next| self.is_class(class, next));
            return is_next.then_some(start + 1).into_iter().collect();
        }
        let is_type = |end: &usize| {
            let text = tokens[start..*end].join(" ");
            let is_lower = text.starts_with(|c: char| c.is_ascii_lowercase());
            let is_unknown = is_lower && *end == start + 1 && !PRIMITIVES.contains(&&*text);
            Type::parse(&text).is_ok() && !(is_param && is_unknown)
        };
        let ends = start + 1..=tokens.len().min(start + 20);
        ends.filter(is_type).collect()
    }

    fn is_barred(&self, production: &str, token: &str) -> bool {
        let mut rows = self.barred.iter();
        rows.any(|(name, words)| *name == production && words.contains(&token))
    }
}

fn grammar(page: &Page) -> Grammar<'_> {
    Grammar::read(between("```ebnf\n", "```"), page)
}

/// Returns the first error, with the text.
fn error(text: &str, found: &[Diagnostic]) -> Option<String> {
    found
        .first()
        .map(|error| error.render("sentence.weave", text))
}

/// Returns a file with a random statement, a random step or anything.
fn sentence(generator: &mut Generator, seed: u64) -> Vec<String> {
    let (before, name, after) = match seed % 3 {
        0 => ("graph a {", "statement", "}"),
        1 => ("test \"\" of a {", "step", "}"),
        _ => ("", "file", ""),
    };
    let mut sentence = vec![before.to_owned()];
    sentence.append(&mut generator.sentence(name));
    sentence.push(after.to_owned());
    sentence
}

/// Returns the tokens as a text, and again as tokens: a sample can consist of several.
fn spell(sentence: &[String]) -> (String, Vec<String>) {
    let spaced = |token: &String| match token.starts_with("//") {
        true => format!("{token}\n"),
        false => format!("{token} "),
    };
    let text: String = sentence.iter().map(spaced).collect();
    let lexed = tussah_weave::lex(&text);
    let spans = lexed.tokens.iter().map(|token| token.span);
    let tokens = spans.map(|span| text[span.start as usize..span.end as usize].to_owned());
    let tokens = tokens.collect();
    (text, tokens)
}

/// Panics with the shortest failures.
fn report(failures: &[String]) {
    let mut shortest: Vec<&str> = failures.iter().map(String::as_str).collect();
    shortest.sort_by_key(|failure| failure.len());
    shortest.truncate(8);
    let (count, shortest) = (failures.len(), shortest.join("\n"));
    assert!(failures.is_empty(), "{count} failures:\n{shortest}");
}

#[test]
fn the_example_of_graphs_inside_graphs_is_right() {
    let section = between("## Graphs inside graphs\n", "## Values");
    let start = section.find("```text\n").expect("an example") + "```text\n".len();
    let text = &section[start..];
    let text = &text[..text.find("```").expect("the end of the example")];
    checked(text);
    assert_eq!(format(text).as_deref(), Ok(text));
}

/// The number of sentences that each test tries.
const SENTENCES: u64 = 1500;

#[test]
fn the_parser_accepts_each_sentence_of_the_grammar() {
    let page = Page::read();
    let grammar = grammar(&page);
    let mut failures = Vec::new();
    let (mut words, mut used) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..SENTENCES {
        let mut generator = Generator::new(&grammar, seed);
        let (text, tokens) = spell(&sentence(&mut generator, seed));
        used.append(&mut generator.used);
        if let Some(error) = error(&text, &parse(&text).diagnostics) {
            failures.push(format!("the parser refuses a sentence:\n{error}"));
            continue;
        }
        assert!(grammar.accepts("file", &tokens), "{text}");
        let formatted = format(&text).expect("a text without errors can be formatted");
        assert_eq!(format(&formatted).as_ref(), Ok(&formatted), "{text}");
        // The formatter adds and removes commas at the ends of lists.
        let words_of = |tokens: &[String]| tokens.iter().filter(|token| *token != ",").count();
        assert_eq!(
            words_of(&spell(&[formatted]).1),
            words_of(&tokens),
            "{text}"
        );
        words.extend(tokens);
    }
    report(&failures);
    let missing: Vec<&str> = grammar
        .words()
        .into_iter()
        .filter(|word| !words.contains(*word))
        .collect();
    assert!(missing.is_empty(), "in no sentence: {missing:?}");
    assert_eq!(
        used,
        grammar.productions(),
        "some productions are in no sentence"
    );
}

/// Drops, repeats or replaces a token, or exchanges it with the next one.
fn mutate(sentence: &[String], generator: &mut Generator, words: &[&str]) -> Vec<String> {
    let mut tokens = sentence.to_vec();
    let at = generator.below(tokens.len());
    match generator.below(5) {
        0 => drop(tokens.remove(at)),
        1 => tokens.insert(at, tokens[at].clone()),
        2 | 3 => tokens[at] = words[generator.below(words.len())].to_owned(),
        _ => {
            let next = (at + 1) % tokens.len();
            tokens.swap(at, next);
        }
    }
    tokens
}

#[test]
fn the_parser_refuses_what_the_grammar_refuses() {
    let page = Page::read();
    let grammar = grammar(&page);
    let mut failures = Vec::new();
    let samples = CLASSES.iter().flat_map(|class| page.samples(class));
    let words: Vec<&str> = grammar
        .words()
        .into_iter()
        .chain(samples.copied())
        .collect();
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..SENTENCES {
        let mut generator = Generator::new(&grammar, seed);
        let (_, sentence) = spell(&sentence(&mut generator, seed));
        for _ in 0..sentence.len().min(3) {
            let (text, tokens) = spell(&mutate(&sentence, &mut generator, &words));
            let is_sentence = grammar.accepts("file", &tokens);
            match (is_sentence, error(&text, &parse(&text).diagnostics)) {
                (true, None) => accepted += 1,
                (false, Some(_)) => refused += 1,
                (true, Some(error)) => failures.push(format!("only the parser refuses:\n{error}")),
                (false, None) => failures.push(format!("only the grammar refuses:\n{text}\n")),
            }
        }
    }
    report(&failures);
    assert!(accepted > 100 && refused > 1000, "{accepted} {refused}");
}
