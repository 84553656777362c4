//! Fused chains of which a module is closed.

use tussah::flow::{Out, Params, module, weave};

use super::Notes;
use super::fused::{Note, NoteDropped, Numbers, Shared};
use crate::runtime;

/// Sends each number on, one at a time.
#[derive(Default)]
struct Alone;

#[module]
impl Alone {
    fn run(&mut self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

/// Panics for all large numbers.
#[derive(Default)]
struct Weak;

#[module]
impl Weak {
    fn run(&mut self, number: u64, out: &impl Out<u64>) {
        assert!(number < 50, "{number}");
        out.send(number);
    }
}

weave! {
    use Numbers, Alone, Shared, Weak, Note, NoteDropped

    graph Gives(notes: Notes, dropped: Notes) {
        numbers = Numbers(200)
        first = Alone()
        second = Shared()
        weak = Weak()
        note = Note(notes)
        note_dropped = NoteDropped(dropped)
        numbers -> first
        fuse first -> second -> weak -> note
        weak.dropped -> note_dropped
    }
}

#[test]
fn a_chain_whose_module_is_closed_ends_the_rest_as_calls_do() {
    let results = |is_compiled| {
        let (notes, dropped) = (Notes::default(), Notes::default());
        runtime(1).block_on(async {
            let params = Params::new()
                .typed("notes", notes.clone())
                .typed("dropped", dropped.clone());
            let graph = match is_compiled {
                true => Gives::graph(&params),
                false => Gives::modules().graph("g.weave", Gives::TEXT, &params),
            };
            let graph = graph.expect("the text is right");
            let running = graph.start().expect("it is whole");
            running.drain().await;
            let stats = ["second", "weak", "note"].map(|name| running.stats(name));
            let stats = stats.map(|stats| stats.expect("it exists"));
            (
                notes.take(),
                dropped.take(),
                stats.map(|it| [it.called, it.panicked, it.lost]),
            )
        })
    };
    let (notes, dropped, stats) = results(true);
    assert!(stats[1][1] > 1, "{stats:?}");
    assert!(
        dropped.iter().any(|it| it.contains("ShutDown")),
        "{dropped:?}"
    );
    assert_eq!((notes, dropped, stats), results(false));
}
