//! Generic modules in graphs from text: the edges determine their types.

use std::marker::PhantomData;

use tussah::flow::{AsyncOut, Modules, Out, Params, module};

use super::{Note, Notes};
use crate::runtime;

/// Sends the numbers below 3.
#[derive(Default)]
struct Numbers;

#[module]
impl Numbers {
    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..3 {
            out.send(number).await;
        }
    }
}

/// Makes a text of a number.
#[derive(Default)]
struct Spell;

#[module]
impl Spell {
    fn run(&self, number: u64, out: &impl Out<String>) {
        out.send(format!("number {number}"));
    }
}

/// Sends each item with a copy.
struct Pair<T>(PhantomData<fn(T)>);

#[module]
impl<T: Clone + Send + 'static> Pair<T> {
    fn init() -> Self {
        Self(PhantomData)
    }

    fn run(&self, item: T, out: Option<&impl Out<Vec<T>>>, one: Option<&impl Out<T>>) {
        if let Some(one) = one {
            one.send(item.clone());
        }
        if let Some(out) = out {
            out.send(vec![item.clone(), item]);
        }
    }
}

/// Takes the items that a module has dropped.
struct Lost<T>(PhantomData<fn(T)>);

#[module]
impl<T: Send + 'static> Lost<T> {
    fn init() -> Self {
        Self(PhantomData)
    }

    fn run(&self, _item: tussah::flow::Dropped<T>) {}
}

mod a {
    #[derive(Clone)]
    pub(super) struct Line;
}

mod b {
    #[derive(Clone)]
    pub(super) struct Line;
}

fn modules() -> Modules {
    Modules::new()
        .with::<Numbers>("Numbers")
        .with::<Spell>("Spell")
        .with::<Pair<u64>>("Pair")
        .with::<Pair<String>>("Pair")
        .with::<Pair<a::Line>>("Pair")
        .with::<Pair<b::Line>>("Pair")
        .with::<Lost<u64>>("Lost")
        .with::<Note<Vec<u64>>>("Note")
        .with::<Note<Vec<String>>>("Note")
}

#[track_caller]
fn error(text: &str) -> String {
    let params = match text.contains("notes") {
        true => Params::new().typed("notes", Notes::default()),
        false => Params::new(),
    };
    let graph = modules().graph("a.weave", text, &params);
    let error = graph.expect_err("the text is wrong").to_string();
    // `check` finds the same errors before anything runs.
    let (file, modules) = (tussah_weave::parse(text).file, modules());
    let checked = tussah_weave::check(&file, Some(modules.signatures()));
    let checked = checked.diagnostics.iter();
    let checked: Vec<String> = checked.map(|it| it.render("a.weave", text)).collect();
    assert_eq!(checked.join("\n"), error);
    error
}

#[test]
fn one_module_has_two_types_in_one_graph() {
    let text = "
        use Numbers, Spell, Pair, Lost, Note
        graph Both(notes: Notes) {
          numbers = Numbers()
          pairs = Pair()
          spell = Spell()
          texts = Pair()
          lost  = Lost()
          note  = Note(notes)
          other = Note(notes)
          numbers -> pairs -> note
          pairs.one -> spell -> texts -> other
          pairs.dropped -> lost
        }
    ";
    let notes = Notes::default();
    let params = Params::new().typed("notes", notes.clone());
    let graph = modules().graph("a.weave", text, &params);
    let graph = graph.unwrap_or_else(|error| panic!("{error}"));
    runtime(2).block_on(async {
        graph.start().expect("it is whole").drain().await;
    });
    let expected = [
        r#"["number 0", "number 0"]"#,
        r#"["number 1", "number 1"]"#,
        r#"["number 2", "number 2"]"#,
        "[0, 0]",
        "[1, 1]",
        "[2, 2]",
    ];
    assert_eq!(notes.sorted(), expected);
}

#[test]
fn a_type_that_is_not_registered_is_an_error() {
    let error = error(
        "use Numbers, Spell, Lost
graph Both() {
  numbers = Numbers()
  spell = Spell()
  lost = Lost()
  numbers -> spell -> lost
}",
    );
    let expected = "`spell` sends `alloc::string::String`, but `lost` expects `tussah::flow::dropped::Dropped<";
    assert!(error.contains(expected), "{error}");
    let error = self::error(
        "use Numbers, Spell, Lost
graph Both() {
  numbers = Numbers()
  spell = Spell()
  rest = Spell()
  lost = Lost()
  numbers -> spell -> rest
  spell.dropped -> lost
}",
    );
    assert!(error.contains("a.weave:7:"), "{error}");
}

#[test]
fn an_instance_without_its_type_is_an_error() {
    let check = |text: &str, place: &str, message: &str| {
        let error = error(text);
        assert!(error.contains(place) && error.contains(message), "{error}");
    };
    check(
        "use Numbers, Spell, Pair, Lost, Note
graph Both(notes: Notes) {
  numbers = Numbers()
  spell   = Spell()
  pairs   = Pair()
  pairs2  = Pair()
  note    = Note(notes)
  numbers -> spell -> pairs -> pairs2 -> note
}",
        "a.weave:6:",
        "the program has no `Pair` for `alloc::vec::Vec<alloc::string::String>`: \
         expected one of `u64`, `alloc::string::String`",
    );
    check(
        "use Numbers, Pair
graph Both() {
  numbers = Numbers()
  pairs = Pair()
  other = Pair()
  numbers -> pairs
  pairs.one -> other
  other -> pairs
}",
        "a.weave:8:",
        "but `pairs` expects",
    );
    check(
        "use Pair
graph Both() {
  a = Pair<Line>()
  b = Pair<Line>()
  a.one -> b
  b.one -> a via queue(1, when_full: shed)
}",
        "a.weave:3:",
        "expected more of the path of its type",
    );
}
