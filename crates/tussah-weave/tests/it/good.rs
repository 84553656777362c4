//! Programs that are right.

use std::collections::BTreeMap;

use tussah_weave::{Checked, Graph, Plan, PlanVia, Step, Value, check, format, parse};

use crate::modules::modules;

/// Checks a text that has no errors, with signatures and without.
pub fn checked(text: &str) -> Checked {
    let parsed = parse(text);
    assert!(parsed.diagnostics.is_empty(), "{:#?}", parsed.diagnostics);
    let trusted = check(&parsed.file, None);
    assert!(trusted.diagnostics.is_empty(), "{:#?}", trusted.diagnostics);
    let checked = check(&parsed.file, Some(&modules()));
    assert!(checked.diagnostics.is_empty(), "{:#?}", checked.diagnostics);
    checked
}

fn plan(graph: &Graph, args: &[(&str, Value)]) -> Plan {
    let args: BTreeMap<String, Value> = args
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    graph
        .instantiate(&args, 4)
        .unwrap_or_else(|errors| panic!("{errors:#?}"))
}

fn edges(plan: &Plan) -> Vec<String> {
    let edges = plan.edges.iter().map(|edge| {
        let back = if edge.back { " back" } else { "" };
        let item = edge
            .item
            .as_ref()
            .map_or("?".to_owned(), ToString::to_string);
        format!("{edge}: {item}{back}")
    });
    edges.collect()
}

#[test]
fn a_web_server() {
    let checked = checked(include_str!("../good/web.weave"));
    let web = &checked.graphs[0];
    assert_eq!(web.doc, "Serves the files of a directory.");
    assert_eq!(web.params[2].doc, "The memory for pages");
    let plan = plan(web, &[("root", Value::Text("www".into()))]);
    assert_eq!(
        edges(&plan),
        [
            "requests -> pages: Request",
            "pages -> reply: Answer",
            "requests.bad -> reply: Answer",
            "pages.miss -> read: Load",
            "read -> pages.loaded: Loaded back",
            "read.dropped -> lost: Load",
            "lost -> pages.loaded: Loaded back",
        ]
    );
    let pages = &plan.nodes[1];
    assert_eq!(pages.args[0].value, Value::Size(50 << 20));
    assert_eq!(pages.shards.as_ref().map(|shards| shards.count), Some(4));
    let requests = &plan.nodes[0];
    assert_eq!(
        requests.args[0].value,
        Value::Address("127.0.0.1:8080".into())
    );
    assert_eq!(plan.nodes[2].args[0].value, Value::Path("www".into()));
    assert_eq!(plan.sheds[0].above.as_millis(), 50);
}

/// A check that compares all pairs of arguments would take a minute. A text has at most 1 MiB.
#[test]
fn an_instance_has_a_great_number_of_arguments() {
    let list = |count: usize, of: &dyn Fn(usize) -> String| {
        let all: Vec<_> = (0..count).map(of).collect();
        all.join(",")
    };
    let args = list(100_000, &|number| format!("a{number}:1"));
    let of_module = format!("use M graph G() {{ a = M({args}) }}");
    let params = list(40_000, &|number| format!("a{number}:count"));
    let args = list(40_000, &|number| format!("a{number}:1"));
    let inner = format!("graph I({params}) {{ m = M(a7) }}");
    let of_graph = format!("use M {inner} graph G() {{ a = I({args}) }}");
    for text in [of_module, of_graph] {
        let parsed = parse(&text);
        assert!(
            parsed.diagnostics.is_empty(),
            "{:#?}",
            parsed.diagnostics[0]
        );
        let checked = check(&parsed.file, None);
        let mut errors = checked.diagnostics.iter().filter(|it| it.is_error());
        assert_eq!(errors.next(), None);
        let graph = checked.graphs.last().expect("there is a graph");
        assert!(!graph.nodes[0].args.is_empty());
    }
}

#[test]
fn a_fused_chain_consists_of_calls() {
    let text = "\
use lines::{Accept, Parse, Write}, flow::Log

graph Fused() {
  lines = Accept(\"127.0.0.1:80\")
  log   = Log()
  parse = Parse()
  write = Write(\"dead\")

  fuse lines -> log -> parse
  parse.bad -> write
}
";
    let parsed = parse(text);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let graph = &tussah_weave::check(&parsed.file, None).graphs[0];
    let plan = plan(graph, &[]);
    let vias: Vec<_> = plan.edges.iter().map(|edge| edge.via).collect();
    assert_eq!(vias[..2], [PlanVia::Call, PlanVia::Call]);
    assert!(matches!(vias[2], PlanVia::Queue { .. }));
    assert_eq!(format(text).as_deref(), Ok(text));
    let dot = tussah_weave::draw::dot(graph, None);
    assert_eq!(dot.matches("fused").count(), 2, "{dot}");
}

#[test]
fn a_pipeline_of_lines() {
    let checked = checked(include_str!("../good/lines.weave"));
    let lines = &checked.graphs[0];
    let args = [
        ("table", Value::Path("users".into())),
        ("to", Value::Address("127.0.0.1:9000".into())),
    ];
    let plan = plan(lines, &args);
    assert_eq!(
        edges(&plan),
        [
            "deliver.send_out.failed -> deliver.retry: Record",
            "deliver.retry -> deliver.send_out: Record back",
            "lines -> parse: Line",
            "parse -> enrich: Record",
            "enrich -> deliver.send_out: Record",
            "parse.bad -> dead_letters: Dead",
            "enrich.failed -> dead_letters: Dead",
            "deliver.retry.exhausted -> dead_letters: Dead",
        ]
    );
    let modules: Vec<&str> = plan.nodes.iter().map(|node| node.module.as_str()).collect();
    assert!(modules.contains(&"lines::Accept") && !modules.contains(&"lines::Files"));
    assert_eq!(
        plan.edges[1].after.map(|after| after.as_millis()),
        Some(200)
    );
    assert_eq!(plan.limits[0].count, 1000);
    assert_eq!(checked.tests[0].steps.len(), 5);
}

#[test]
fn a_video_server() {
    let checked = checked(include_str!("../good/video.weave"));
    let plan = plan(&checked.graphs[0], &[("root", Value::Path("films".into()))]);
    assert!(edges(&plan).contains(&"streams.tick -> streams.tick: Tick back".to_owned()));
    assert_eq!(
        plan.nodes[2].args[1].value,
        Value::Duration(std::time::Duration::from_millis(40))
    );
    assert_eq!(
        plan.nodes[2].doc,
        "One flow a client: the position in its film, and what is read ahead."
    );
}

#[test]
fn a_wrong_edge_leaves_no_port_without_an_edge() {
    let text = "use lines::Files, flow::Sink
        graph Two(files: path, room: count) {
          a = Files(files)
          b = Sink()
          a -> b via queue(room)
        }";
    let checked = checked(text);
    let files = ("files".to_owned(), Value::Path(String::new()));
    let args = BTreeMap::from([files, ("room".to_owned(), Value::Count(0))]);
    let errors = checked.graphs[0].instantiate(&args, 1);
    let errors = errors.expect_err("the room is 0");
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(messages, ["the room of a queue is 0, expected at least 1"]);
}

#[test]
fn parameters_need_values_of_their_kinds() {
    let checked = checked(include_str!("../good/web.weave"));
    let web = &checked.graphs[0];
    let check = |args: &[(&str, Value)], workers: u64, expected: &str| {
        let args: BTreeMap<String, Value> = args
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let errors = web.instantiate(&args, workers).expect_err(expected);
        let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
        assert_eq!(messages, [expected]);
    };
    let root = ("root", Value::Path(String::new()));
    check(&[], 1, "the parameter `root: path` has no value");
    check(
        &[root.clone(), ("cache", Value::Count(1))],
        1,
        "the parameter `cache`: 1 is a count, expected a size",
    );
    check(
        &[root.clone(), ("cash", Value::Count(1))],
        1,
        "`Web` has no parameter `cash`",
    );
    check(
        &[root, ("listen", Value::Text("here".into()))],
        1,
        "the parameter `listen`: \"here\" is not an address, expected a host and a port such as \"127.0.0.1:8080\"",
    );
}

#[test]
fn conditions_may_not_give_rejected_items_two_ways() {
    let checked = checked(
        "use flow::{Rate, Sink, Source}
        graph A(rule: flag, edge: flag) {
          a = Source<Line>() b = Rate(1/s) c = Sink() d = Sink()
          a -> b -> c
          a -> d
          if rule { shed b when p90 > 5 ms -> d }
          if edge { b.dropped -> d }
        }",
    );
    for (rule, edge) in [(false, true), (true, false), (true, true)] {
        let args = [("rule", rule), ("edge", edge)];
        let args = args.map(|(name, flag)| (name.to_owned(), Value::Flag(flag)));
        let plan = checked.graphs[0].instantiate(&BTreeMap::from(args), 4);
        let messages = plan.map(drop).map_err(|errors| errors[0].message.clone());
        let expected = match rule && edge {
            true => Err("the rejected items of `b` would arrive twice".to_owned()),
            false => Ok(()),
        };
        assert_eq!(messages, expected);
    }
}

#[test]
fn a_parameter_gives_a_bounded_number_of_shards() {
    let checked = checked(
        "use flow::{Sink, Source}
        graph A(n: count) {
          a = Source<Line>() b = Sink() * n
          a -> b
        }",
    );
    for (count, expected) in [
        (0, Some("the number of shards is 0, expected at least 1")),
        (1, None),
        (4096, None),
        (
            4097,
            Some("the number of shards is 4097, expected at most 4096"),
        ),
    ] {
        let args = BTreeMap::from([("n".to_owned(), Value::Count(count))]);
        let plan = checked.graphs[0].instantiate(&args, 1);
        let message = plan.err().map(|errors| errors[0].message.clone());
        assert_eq!(message.as_deref(), expected);
    }
}

#[test]
fn conditions_may_not_make_an_edge_twice() {
    let checked = checked(
        "use flow::{Sink, Source}
        graph A(one: flag, other: flag) {
          a = Source<Line>() b = Sink() c = Sink()
          a -> b
          if one { a -> c }
          if other { a -> c via queue(5) }
        }",
    );
    for (one, other) in [(false, true), (true, false), (true, true)] {
        let args = [("one", one), ("other", other)];
        let args = args.map(|(name, flag)| (name.to_owned(), Value::Flag(flag)));
        let plan = checked.graphs[0].instantiate(&BTreeMap::from(args), 4);
        let messages = plan.map(drop).map_err(|errors| errors[0].message.clone());
        let expected = match one && other {
            true => Err("this edge exists twice with these parameters".to_owned()),
            false => Ok(()),
        };
        assert_eq!(messages, expected);
    }
}

#[test]
fn edges_determine_the_types_of_doubles() {
    let text = "\
use lines::{Accept, Parse, Enrich, Write, Send}, flow::{Log, Delay}

graph Lines() {
  lines = Accept(\"127.0.0.1:80\")
  log   = Log()
  parse = Parse()
  write = Write(\"dead\")
  send  = Send(\"127.0.0.1:81\")
  lines -> log -> parse -> send
  parse.bad -> write
}

graph Part() {
  enrich = Enrich(\"table\")
  in -> enrich -> out
}

test \"two doubles\" of Lines() {
  replace send with Log()
  replace log with Delay(1 s)
}

test \"the ports of the graph\" of Part() {
  replace enrich with Log()
}

test \"a type that is written\" of Part() {
  replace enrich with Log<Record>(level: \"info\")
}
";
    let checked = checked(text);
    let types = |test: usize| {
        let steps = checked.tests[test].steps.iter();
        let types = steps.map(|step| match step {
            Step::Replace { types, .. } => types.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        });
        types.collect::<Vec<_>>()
    };
    assert_eq!(types(0), [["Record"], ["Line"]]);
    assert_eq!([types(1), types(2)], [[["Record"]], [["Record"]]]);
}

#[test]
fn limits_in_different_branches_may_contain_the_same_instances() {
    let checked = checked(
        "use flow::{Source, Sink, Log}
        graph G(few: flag) {
          a = Source<Line>() log = Log() b = Sink()
          a -> log -> b
          if few { limit 5 in { log } } else { limit 500 in { log, b } }
        }",
    );
    for (few, expected) in [(true, 5), (false, 500)] {
        let plan = plan(&checked.graphs[0], &[("few", Value::Flag(few))]);
        let counts: Vec<u64> = plan.limits.iter().map(|limit| limit.count).collect();
        assert_eq!(counts, [expected]);
    }
}

#[test]
fn a_limit_may_apply_only_in_the_cases_that_have_its_cycle() {
    checked(
        "use flow::{Log, Delay}
        graph G(retries: flag, few: flag, n: count) {
          a = Log<Line>() b = Log()
          in -> a -> b -> out
          if retries && n > 1 {
            b -> a
            if few { limit 5 in { a, b } } else { limit 500 in { a, b } }
          }
        }
        graph H(few: flag) {
          a = Log<Line>()
          if few { b = Log() } else { b = Delay(1 s) }
          in -> a -> b -> out
          b -> a
          if few { limit 5 in { a, b } } else { limit 500 in { a, b } }
        }",
    );
}
