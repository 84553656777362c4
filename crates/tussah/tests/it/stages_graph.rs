//! The graph of a network, drawn.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;
use tussah::Runtime;
use tussah::stage::host::ConcurrentHost;
use tussah::stage::net::SocketEvent;
use tussah::stage::observe::EdgeKind;
use tussah::stage::{Batch, BuildError, Call, Handler, Network, Sender, TrySender};

struct End;

impl Handler for End {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        for _ in batch.drain() {}
    }
}

/// Sends each event on by three ways.
struct Thrice {
    queue: Sender<u64>,
    offer: TrySender<u64>,
    call: Call<u64, ConcurrentHost<End>>,
}

impl Handler for Thrice {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        while let Some(event) = batch.next() {
            self.queue.send(event).await.expect("it is open");
            self.offer.try_send(event).expect("there is room");
            self.call.send(event).await.expect("it is open");
        }
    }
}

/// Three stages behind one, with names that have to be escaped.
fn network(runtime: &Runtime) -> Result<Network, BuildError> {
    let network = Network::on(runtime.handle(), "net \"1\" \\");
    let one = network.stage("queue -> [me];").handler(|_| Ok(End))?;
    let two = network.stage("offer\nme").handler(|_| Ok(End))?;
    let three = network
        .stage("\"call\" <me> &amp; \\")
        .handler(|_| Ok(End))?;
    network.stage::<u64>("first").handler(|edges| {
        Ok(Thrice {
            queue: edges.to(&one).queue(10)?,
            offer: edges.to(&two).offer(1000)?,
            call: edges.to(&three).call()?,
        })
    })?;
    Ok(network)
}

fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().expect("a runtime")
}

#[test]
fn the_network_lists_all_its_stages() -> Result<(), BuildError> {
    let runtime = runtime();
    let network = network(&runtime)?;
    let first = network.find::<u64>("first")?;
    runtime.block_on(async {
        for event in 0..100 {
            first.sender().send(event).await.expect("it is open");
        }
        first.drain().await;
        for name in ["queue -> [me];", "offer\nme"] {
            network
                .find::<u64>(name)
                .expect("it is there")
                .drain()
                .await;
        }
    });
    let stats = network.stats();
    let seen: Vec<_> = stats
        .iter()
        .map(|stage| (&*stage.name, stage.finished, stage.called))
        .collect();
    let expected = [
        ("queue -> [me];", 100, 0),
        ("offer\nme", 100, 0),
        ("\"call\" <me> &amp; \\", 0, 100),
        ("first", 100, 0),
    ];
    assert_eq!(seen, expected);
    Ok(())
}

#[test]
fn the_graph_as_json() -> Result<(), BuildError> {
    let runtime = runtime();
    let graph = network(&runtime)?.graph();
    let json: Value = serde_json::from_str(&graph.to_json()).expect("JSON");
    assert_eq!(json["network"], "net \"1\" \\");
    let names: Vec<_> = (0..4)
        .map(|at| json["stages"][at]["name"].clone())
        .collect();
    let expected = [
        "queue -> [me];",
        "offer\nme",
        "\"call\" <me> &amp; \\",
        "first",
    ];
    assert_eq!(names, expected);
    let kinds: Vec<_> = (0..3).map(|at| json["edges"][at]["kind"].clone()).collect();
    assert_eq!(kinds, ["queue", "offer", "call"]);
    let stage = &json["stages"][0];
    assert_eq!(stage["event"], "u64");
    assert_eq!(stage["gate"], "open");
    assert_eq!(stage["queue_max"], 1024);
    assert_eq!(stage["queued_by_class"], serde_json::json!([0]));
    assert!(stage["controllers"][0]["decides"].is_string());
    Ok(())
}

#[test]
fn the_graph_as_dot() -> Result<(), BuildError> {
    let runtime = runtime();
    let graph = network(&runtime)?.graph();
    let dot = graph.to_dot();
    let (nodes, edges) = read_dot(&dot);
    assert_eq!(nodes.len(), 4);
    for (at, node) in graph.nodes.iter().enumerate() {
        let label = &nodes[&format!("s{at}")];
        assert!(label.starts_with(&*node.name), "{label}");
    }
    let style = |to: usize| edges[&("s3".to_owned(), format!("s{to}"))].as_str();
    assert_eq!(style(0), "style=solid, label=queue");
    assert_eq!(style(1), "style=dashed, label=offer");
    assert_eq!(style(2), "style=bold, arrowhead=empty, label=call");
    assert_eq!(graph.edges[2].kind, EdgeKind::Call);
    Ok(())
}

#[test]
fn types_of_events_are_shown_without_their_modules() -> Result<(), BuildError> {
    fn add<E: Send + 'static>(network: &Network, name: &str) -> Result<(), BuildError> {
        let stage = network.stage::<E>(name);
        stage.blocking(|_| Ok(|_: &mut Batch<E>| {}))?;
        Ok(())
    }
    let runtime = runtime();
    let network = Network::on(runtime.handle(), "types");
    add::<SocketEvent>(&network, "sockets")?;
    add::<Vec<(Option<SocketEvent>, [u8; 4])>>(&network, "many")?;
    add::<Box<dyn Fn(String) -> Box<str> + Send>>(&network, "boxed")?;
    let expected = [
        "SocketEvent",
        "Vec<(Option<SocketEvent>, [u8; 4])>",
        "Box<dyn Fn(String) -> Box<str> + Send>",
    ];
    let graph = network.graph();
    let (nodes, _) = read_dot(&graph.to_dot());
    let shown = nodes.values().map(|label| label.lines().nth(1));
    assert_eq!(shown.collect::<Vec<_>>(), expected.map(Some));
    let json: Value = serde_json::from_str(&graph.to_json()).expect("JSON");
    let shown = (0..3).map(|at| json["stages"][at]["event"].clone());
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    Ok(())
}

#[test]
fn a_stage_that_is_only_called_shows_its_calls() -> Result<(), BuildError> {
    let runtime = runtime();
    let network = network(&runtime)?;
    let first = network.find::<u64>("first")?;
    runtime.block_on(async {
        for event in 0..100 {
            first.sender().send(event).await.expect("it is open");
        }
        first.drain().await;
    });
    let (nodes, _) = read_dot(&network.graph().to_dot());
    let called = &nodes["s2"];
    assert!(called.contains("\n0 finished, 100 called, "), "{called}");
    let sent = &nodes["s3"];
    assert!(sent.contains("\n100 finished, 0 refused"), "{sent}");
    Ok(())
}

/// Graphviz itself, where it is installed.
#[test]
fn graphviz_takes_the_graph() -> Result<(), BuildError> {
    let runtime = runtime();
    let dot = network(&runtime)?.graph().to_dot();
    let started = Command::new("dot")
        .arg("-Tplain")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        return Ok(());
    };
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(dot.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    let count = |word| text.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!((count("node "), count("edge ")), (4, 3), "{text}");
    Ok(())
}

type Read = (BTreeMap<String, String>, BTreeMap<(String, String), String>);

/// Reads as much of DOT as the graph uses: one statement a line, quoted labels. Gives labels by
/// node, and attributes by edge.
fn read_dot(text: &str) -> Read {
    let mut lines = text.lines();
    let head = lines.next().expect("a first line");
    assert!(
        head.starts_with("digraph \"") && head.ends_with("\" {"),
        "{head}"
    );
    let (mut nodes, mut edges) = (BTreeMap::new(), BTreeMap::new());
    for line in lines {
        let line = line.trim();
        if line == "}" {
            return (nodes, edges);
        }
        let line = line.strip_suffix(';').expect("a statement ends so");
        let Some((what, attributes)) = line.split_once(" [") else {
            continue;
        };
        let attributes = attributes.strip_suffix(']').expect("attributes end so");
        if let Some((from, to)) = what.split_once(" -> ") {
            edges.insert((from.to_owned(), to.to_owned()), attributes.to_owned());
        } else if what != "node" {
            let label = attributes.strip_prefix("label=\"").expect("a label");
            nodes.insert(what.to_owned(), read_label(label));
        }
    }
    panic!("the graph has no end");
}

/// Reads up to the closing quote.
fn read_label(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    loop {
        match letters.next().expect("a closing quote") {
            '"' => return out.replace("&amp;", "&"),
            '\\' => match letters.next().expect("an escaped letter") {
                'n' => out.push('\n'),
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
}
