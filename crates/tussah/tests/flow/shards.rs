//! Shards: instances that share the items of an input port.

use std::collections::BTreeMap;

use tussah::flow::{Args, Fields, Graph, Modules, Out, Value, Via, WhenFull, module};

use super::Notes;
use crate::runtime;

/// A page, or a part of one.
#[derive(Clone, Fields)]
struct Page {
    path: String,
    #[fields(skip)]
    _weight: f64,
}

impl Page {
    fn of(number: u64) -> Self {
        Self {
            path: format!("/{number}"),
            _weight: 0.5,
        }
    }
}

/// Notes the pages of each instance; the first page is its name.
struct Pages(Notes, Option<String>);

#[module]
impl Pages {
    fn init(notes: Notes) -> Self {
        Self(notes, None)
    }

    fn run(&mut self, page: Page) {
        let own = self.1.get_or_insert_with(|| page.path.clone());
        self.0.add(format!("{own} {}", page.path));
    }

    #[port]
    fn loaded(&mut self, page: Page) {
        self.run(page);
    }
}

/// Returns the paths and the instances, under the names of their first pages, that had them.
fn instances(notes: &Notes) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for note in notes.sorted() {
        let (own, path) = note.split_once(' ').expect("a note has two parts");
        all.entry(path.to_owned()).or_default().push(own.to_owned());
    }
    all
}

/// Sends each of 64 pages to both ports.
async fn send_all(graph: Graph) {
    let running = graph.start().expect("it is whole");
    let pages = running.input("pages").expect("it takes pages");
    let loaded = running.input("pages.loaded").expect("it takes pages");
    for number in 0..64 {
        pages.send(Page::of(number)).await;
    }
    for number in 0..64 {
        loaded.send(Page::of(number)).await;
    }
    running.drain().await;
}

#[test]
fn a_field_chooses_the_shard_for_all_ports() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add_shards::<Pages>("pages", 4, Some("path"), notes.args())
            .expect("the name is free");
        send_all(graph).await;
    });
    let all = instances(&notes);
    assert_eq!(all.len(), 64);
    // Both pages of a path had the same instance.
    assert!(all.values().all(|of| of.len() == 2 && of[0] == of[1]));
    // 64 paths leave none of 4 shards without a page, except once in ten million runs.
    let used: std::collections::BTreeSet<_> = all.values().flatten().collect();
    assert_eq!(used.len(), 4);
}

/// A read of a disk, which has a shard of its own.
struct Read(usize);

impl Fields for Read {
    const NAMES: &'static [&'static str] = &["disk"];

    fn field(&self, _: &str) -> Option<Value> {
        Some(Value::Count(self.0 as u64))
    }

    fn shard(&self, _: &str) -> Option<usize> {
        Some(self.0)
    }
}

/// Notes the disks of each instance.
struct Disk(Notes, Vec<usize>);

#[module]
impl Disk {
    fn init(notes: Notes) -> Self {
        Self(notes, Vec::new())
    }

    fn run(&mut self, read: Read) {
        self.1.push(read.0);
        if self.1.len() == 4 {
            self.0.add(format!("{:?}", self.1));
        }
    }
}

#[test]
fn an_item_can_name_its_shard() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add_shards::<Disk>("disk", 8, Some("disk"), notes.args())
            .expect("the name is free");
        let running = graph.start().expect("it is whole");
        let disk = running.input("disk").expect("it takes reads");
        for number in 0..32 {
            disk.send(Read(number)).await;
        }
        running.drain().await;
    });
    let expected = (0..8).map(|n| format!("{:?}", [n, n + 8, n + 16, n + 24]));
    let mut expected: Vec<_> = expected.collect();
    expected.sort();
    assert_eq!(notes.sorted(), expected);
}

#[test]
fn without_a_field_the_shards_take_turns() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add_shards::<Pages>("pages", 4, None, notes.args())
            .expect("the name is free");
        send_all(graph).await;
    });
    let mut counts = BTreeMap::new();
    for own in instances(&notes).values().flatten() {
        *counts.entry(own.clone()).or_insert(0) += 1;
    }
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [32, 32, 32, 32]);
}

#[test]
fn a_text_divides_an_instance() {
    let text = |shards: &str| {
        format!(
            "use Pages\ngraph G(notes: Notes) {{\n  pages = Pages(notes) * {shards}\n  \
             in -> pages\n  in.loaded -> pages.loaded\n}}\n"
        )
    };
    let modules = Modules::new().with::<Pages>("Pages");
    assert_eq!(
        modules.signatures().items.values().next(),
        Some(&vec!["path".to_owned()])
    );
    let check = |text: &str| errors(text, &modules).join("\n");
    assert_eq!(check(&text("workers by path")), "");
    let wrong = check(&text("2 by weight"));
    assert!(wrong.contains("weight"), "{wrong}");
}

/// Returns the messages for a text.
fn errors(text: &str, modules: &Modules) -> Vec<String> {
    let parsed = tussah_weave::parse(text);
    let checked = tussah_weave::check(&parsed.file, Some(modules.signatures()));
    let all = parsed.diagnostics.iter().chain(&checked.diagnostics);
    let errors = all.filter(|diagnostic| diagnostic.is_error());
    errors.map(|error| error.render("a.weave", text)).collect()
}

#[test]
fn one_shard_has_statistics_but_no_limit() {
    runtime(1).block_on(async {
        let mut graph = Graph::new("g");
        let added = graph.add_shards::<Pages>("pages", 2, None, Notes::default().args());
        added.expect("the name is free");
        let error = graph.limit(1, &["pages#0"]).expect_err("it is one shard");
        let expected =
            "`pages#0` could not be made: it is one shard: expected a limit for all, as `pages`";
        assert!(error.to_string().contains(expected), "{error}");
        graph.limit(1, &["pages"]).expect("these are all shards");
        let running = graph.start().expect("it is whole");
        let error = running.stats("pages").expect_err("it has two shards");
        let expected = "`pages` has shards: expected one of `pages#0`, `pages#1`";
        assert_eq!(error.to_string(), expected);
        assert_eq!(running.stats("pages#1").expect("it exists").finished, 0);
        running.stop().await;
    });
}

/// Passes pages on.
#[derive(Default)]
struct Relay;

#[module]
impl Relay {
    fn run(&self, page: Page, out: &impl Out<Page>) {
        out.send(page);
    }
}

/// A graph must start and end in a time that is about proportional to the number of its shards. A
/// quadratic time would be minutes here.
#[test]
fn thousands_of_shards_start_and_end() {
    for (shards, is_cycle) in [(4096, false), (1024, true)] {
        runtime(2).block_on(async {
            let mut graph = Graph::new("g");
            let added = graph
                .add::<Relay>("first", Args::new())
                .and_then(|()| graph.add_shards::<Relay>("shards", shards, None, Args::new()))
                .and_then(|()| graph.add::<Pages>("last", Notes::default().args()))
                .and_then(|()| graph.add::<Relay>("again", Args::new()));
            added.expect("the names are free");
            let sheds = Via::queue(8).when_full(WhenFull::Shed);
            let connected = graph
                .connect("first", "shards")
                .and_then(|()| graph.connect("shards", "last"))
                .and_then(|()| match is_cycle {
                    true => graph
                        .connect("shards", "again")
                        .and_then(|()| graph.connect_via("again", "shards", sheds)),
                    false => graph.connect("again", "last"),
                });
            connected.expect("the ports exist");
            let running = graph.start().expect("it is whole");
            running.drain().await;
        });
    }
}
