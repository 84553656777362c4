//! Graphs from text: interpreted, and compiled into the program.

use std::num::NonZeroU8;

use tussah::flow::{Kind, Modules, Param, Params, Share, Value, module};

use super::flows::{Numbers, Sums};
use super::{Note as AnyNote, Notes};
use crate::runtime;

type Note = AnyNote<String>;

tussah::flow::weave_file!("numbers.weave");

/// The same graph in the program itself, with two shards.
mod inline {
    use super::{Note, Notes, Numbers, Sums};

    /// Another name of the type that `Note` takes.
    type Noted = Notes;

    tussah::flow::weave! {
        use Numbers, Sums, Note

        /// Adds the numbers of each flow.
        graph Twice(below: count = 12, notes: Noted) {
          numbers = Numbers(below)
          sums    = Sums()
          note    = Note(notes) * 2
          numbers -> sums -> note via queue(5, when_full: drop_oldest)
        }
    }
}

/// Graphs and a test, each with modules of its own.
mod apart {
    use super::{Note, Notes, Numbers, Sums};

    type Print = super::AnyNote<u64>;

    #[derive(Default)]
    struct Ignore;

    #[tussah::flow::module]
    impl Ignore {
        fn run(&self, _number: u64) {}
    }

    tussah::flow::weave! {
        use Numbers, Sums, Note, Print, Ignore, Unknown

        graph Printed(notes: Notes) {
          numbers = Numbers(4)
          printed = Inside(notes)
          numbers -> printed
        }

        graph Inside(notes: Notes) {
          if workers > 0 { print = Print(notes) } else { print = Print(notes) }
          in -> print
        }

        graph Added(notes: Notes) {
          numbers = Numbers(4)
          sums    = Sums()
          note    = Note(notes)
          numbers -> sums -> note
        }

        graph Ignored() {
          numbers = Numbers(4)
          ignore  = Ignore()
          numbers -> ignore
        }

        test "only the test has this module" of Ignored {
          replace numbers with Unknown()
          drain
        }
    }
}

fn error(text: &str, params: &Params) -> String {
    let modules = Modules::new()
        .with::<Numbers>("Numbers")
        .with::<Sums>("Sums");
    let graph = modules.graph("a.weave", text, params);
    graph.expect_err("the text is wrong").to_string()
}

#[test]
fn a_compiled_graph_runs() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let params = Params::new().typed("notes", notes.clone());
        let graph = Add::graph(&params).expect("the text is right");
        let running = graph.start().expect("it is whole");
        while notes.0.lock().len() < 3 {
            tussah::yield_now().await;
        }
        running.drain().await;
    });
    let expected = [
        r#""0: [0, 3, 6, 9]""#,
        r#""1: [1, 4, 7, 10]""#,
        r#""2: [2, 5, 8, 11]""#,
    ];
    assert_eq!(notes.sorted(), expected);
}

#[test]
fn a_wrong_value_is_refused_at_its_place() {
    let params = Params::new().typed("notes", Notes::default());
    let params = params.with("below", Value::Text("many".to_owned()));
    let error = Add::graph(&params)
        .expect_err("it is no number")
        .to_string();
    assert!(error.contains("numbers.weave:4:25"), "{error}");
    let error = Add::graph(&Params::new()).expect_err("a value is missing");
    assert!(error.to_string().contains("notes"), "{error}");
}

/// A module with a word, and with numbers of a limited range.
struct Strict;

/// A word.
#[derive(Clone)]
enum Mode {
    Fast,
    Safe,
}

impl Param for Mode {
    const KIND: Kind = Kind::Text;
    const WORDS: &'static [&'static str] = &["fast", "safe"];

    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(word) if word == "fast" => Ok(Self::Fast),
            Value::Text(word) if word == "safe" => Ok(Self::Safe),
            other => panic!("{other} is neither of the words"),
        }
    }
}

#[module]
impl Strict {
    fn init(mode: Mode, times: Option<NonZeroU8>, share: Option<Share>) -> Result<Self, String> {
        let mode = match mode {
            Mode::Fast => "fast",
            Mode::Safe => "safe",
        };
        Err(format!("{mode}, {times:?}, {share:?}"))
    }

    fn run(&self, _number: u64) {}
}

#[test]
fn a_value_that_a_parameter_does_not_accept_is_refused_before_anything_is_made() {
    let text = "\
use Numbers, Strict
graph A(mode: text, times: count, share: number) {
  numbers = Numbers(3)
  strict  = Strict(mode, times, share)
  numbers -> strict
}
";
    let modules = Modules::new()
        .with::<Numbers>("Numbers")
        .with::<Strict>("Strict");
    let check = |mode: &str, times, share, expected: &str| {
        let params = Params::new()
            .with("mode", Value::Text(mode.to_owned()))
            .with("times", Value::Count(times))
            .with("share", Value::Number(share));
        let graph = modules.graph("a.weave", text, &params);
        let graph = graph.expect("the text is right");
        let error = runtime(1).block_on(async { graph.start().expect_err("it cannot start") });
        assert!(error.to_string().ends_with(expected), "{error}");
    };
    check("fast", 255, 0.0, "fast, Some(255), Some(Share(0.0))");
    check("safe", 1, 1.0, "safe, Some(1), Some(Share(1.0))");
    check(
        "fats",
        1,
        1.0,
        "`mode` is \"fats\": expected \"fast\" or \"safe\"",
    );
    check("fast", 0, 1.0, "`times` is 0: expected at least 1");
    check("fast", 256, 1.0, "`times` is 256: expected at most 255");
    check("fast", 1, -0.1, "`share` is -0.1: expected at least 0");
    check("fast", 1, f64::NAN, "`share` is NaN: expected at least 0");
}

#[test]
fn all_errors_of_a_text_are_found() {
    let text = "\
use Numbers, Sums
graph Add() {
  numbers = Numbers(below: 50 ms)
  sums    = Sum()
  numbers -> sums
  numbers.rest -> sums
}
";
    let error = error(text, &Params::new());
    for place in ["a.weave:3:", "a.weave:4:", "a.weave:6:"] {
        assert!(error.contains(place), "{place}: {error}");
    }
}

#[test]
fn a_graph_in_the_program_runs() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let params = Params::new().typed("notes", notes.clone());
        let graph = inline::Twice::graph(&params).expect("the text is right");
        let running = graph.start().expect("it is whole");
        running.drain().await;
    });
    let expected = [
        r#""0: [0, 3, 6, 9]""#,
        r#""1: [1, 4, 7, 10]""#,
        r#""2: [2, 5, 8, 11]""#,
    ];
    assert_eq!(notes.sorted(), expected);
}

#[test]
fn a_compiled_graph_needs_only_its_own_modules() {
    let notes = Notes::default();
    let params = Params::new().typed("notes", notes.clone());
    runtime(2).block_on(async {
        for graph in [apart::Printed::graph(&params), apart::Added::graph(&params)] {
            let running = graph.expect("the text is right").start();
            running.expect("it is whole").drain().await;
        }
    });
    let expected = [
        r#""0: [0, 3]""#,
        r#""1: [1]""#,
        r#""2: [2]""#,
        "0",
        "1",
        "2",
        "3",
    ];
    assert_eq!(notes.sorted(), expected);
}
