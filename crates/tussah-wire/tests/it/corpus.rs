//! Every request of the corpus has the outcome that its file name states.

use std::fs;
use std::path::Path;

use crate::session::{Event, run, same};

/// One file of the corpus.
pub struct Case {
    pub name: String,
    /// Like `ok+400`.
    pub expected: String,
    pub bytes: Vec<u8>,
}

/// Returns all files of the corpus, ordered by name.
pub fn cases() -> Vec<Case> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut cases = Vec::new();
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "http") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let (expected, _) = name.split_once('-').unwrap();
        cases.push(Case {
            expected: expected.to_owned(),
            bytes: fs::read(&path).unwrap(),
            name,
        });
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// Formats the events like the file names do.
pub fn outcome(events: &[Event]) -> String {
    let words: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Head(_) => Some("ok".to_owned()),
            Event::Body(_) => None,
            Event::Refused(refusal) => Some(refusal.status().code().to_string()),
            Event::More => Some("more".to_owned()),
        })
        .collect();
    words.join("+")
}

#[test]
fn each_message_has_the_outcome_in_its_name() {
    let cases = cases();
    assert!(cases.len() >= 250, "the corpus is not where it should be");
    let mut wrong = Vec::new();
    for case in &cases {
        let events = run([&case.bytes[..]]);
        let outcome = outcome(&events);
        if outcome != case.expected {
            wrong.push(format!("{}: {outcome}, {:?}", case.name, events.last()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_message_parses_the_same_byte_by_byte() {
    for case in cases() {
        let whole = run([&case.bytes[..]]);
        let dripping = run(case.bytes.chunks(1));
        let twos = run(case.bytes.chunks(2));
        assert!(
            same(&whole, &dripping),
            "{}: {whole:?} but {dripping:?}",
            case.name
        );
        assert!(same(&whole, &twos), "{}: {whole:?} but {twos:?}", case.name);
    }
}

/// Checks the full text of a few refusals.
#[test]
fn refusals_say_what_was_expected_and_what_came() {
    let check = |name: &str, expected: &str| {
        let case = cases()
            .into_iter()
            .find(|case| case.name == name)
            .unwrap_or_else(|| panic!("{name} is missing"));
        let Some(Event::Refused(refusal)) = run([&case.bytes[..]]).pop() else {
            panic!("{name} is not refused")
        };
        assert_eq!(refusal.to_string(), expected, "{name}");
    };
    check(
        "400-bare-lf",
        "byte 14: expected CR LF at the end of a line, found LF alone",
    );
    check(
        "400-tls-hello",
        "byte 0: expected a request in plain text, found the start of a TLS connection",
    );
    check(
        "400-value-nul",
        "byte 29: expected text in the value of the field, found 0x00",
    );
    check(
        "400-cl-te",
        "byte 75: expected Content-Length or Transfer-Encoding, found both",
    );
    check(
        "400-fold",
        "byte 31: expected the name of a field at the start of the line, found white space, a folded line",
    );
    check(
        "ok+400-chunk-trailer-fold",
        "byte 9: expected the name of a field at the start of the line, found white space, a folded line",
    );
    check(
        "505-http2",
        "byte 11: expected version 1 of HTTP, found another one",
    );
    check(
        "ok+400-chunk-size-negative",
        "byte 0: expected the size of a chunk in hexadecimal digits, found 0x2d",
    );
    check(
        "ok+400-chunk-data-longer",
        "byte 8: expected CR LF at the end of the chunk, found 0x21",
    );
    check(
        "ok+413-chunk-size-largest",
        "byte 16: expected a shorter body, found one that is over the limit",
    );
}
