//! The modules for items of any type.

use tussah::flow::{AsyncOut, Dropped, Modules, Out, Params, Value, module};
use tussah::modules::{self, Attempt, FilePart};

use super::{Given, Notes, Request, all, graph, items, step};
use crate::{by_hand, runtime};

/// Runs a graph on a clock that is moved by hand until it has this number of notes, and returns all
/// notes that it has when it is drained.
#[track_caller]
fn by_hand_with(text: &str, modules: &Modules, params: Params, count: usize) -> Vec<String> {
    let (clock, runtime) = by_hand();
    let notes = Notes::default();
    let params = params.typed("to", notes.clone());
    let graph = graph(text, modules, &params);
    let noted = notes.clone();
    runtime.block_on_spawned(async move {
        let running = graph.start().expect("it is whole");
        while noted.0.lock().len() < count {
            step(&clock).await;
        }
        let draining = tussah::spawn(async move { running.drain().await });
        while !draining.is_finished() {
            step(&clock).await;
        }
    });
    notes.take()
}

/// Fails at each number until it was tried as often as the number says.
struct Fragile(Notes);

#[module]
impl Fragile {
    fn init(notes: Notes) -> Self {
        Self(notes)
    }

    fn run(&self, number: u64, out: &impl Out<u64>) -> Result<(), Attempt<u64>> {
        match number {
            0 => out.send(number),
            _ => return Err(Attempt::first(number, "not yet")),
        }
        Ok(())
    }

    #[port]
    fn again(&self, attempt: Attempt<u64>, out: &impl Out<u64>) -> Result<(), Attempt<u64>> {
        self.0
            .add(format!("{} after {}", attempt.item, attempt.failures));
        if u64::from(attempt.failures) < attempt.item {
            return Err(attempt.failed("still not"));
        }
        out.send(attempt.item);
        Ok(())
    }
}

#[test]
fn retry_tries_until_the_attempts_are_used_up() {
    let text = "
        use Items, Fragile, Retry, Stamp
        graph Tries(given: Given, to: Notes) {
          items   = Items<u64>(given)
          fragile = Fragile(to)
          retry   = Retry(attempts: 4, first: 100 ms, longest: 300 ms)
          done    = Stamp(to)
          lost    = Stamp(to)
          items -> fragile -> done
          fragile.failed -> retry
          retry -> fragile.again via queue(10, when_full: shed)
          fragile.again_failed -> retry
          retry.lost -> lost
        }
    ";
    let modules = all().with::<Fragile>("Fragile");
    let params = Params::new().typed("given", Given::new(vec![0u64, 2, 9]));
    let mut notes = by_hand_with(text, &modules, params, 7);
    notes.sort();
    let expected = [
        "0 ms: 0",
        "2 after 1",
        "2 after 2",
        "300 ms: 2",
        r#"600 ms: Attempt { item: 9, failures: 4, why: "still not" }"#,
        "9 after 1",
        "9 after 2",
        "9 after 3",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn the_seed_determines_the_jitter_of_retry() {
    let pauses = |seed: &str| {
        let text = format!(
            "
            use Items, Fragile, Retry, Stamp
            graph Tries(given: Given, to: Notes) {{
              items   = Items<u64>(given)
              fragile = Fragile(to)
              retry   = Retry(attempts: 2, first: 1 s, jitter: 0.5{seed})
              done    = Stamp(to)
              lost    = Stamp(to)
              items -> fragile -> done
              fragile.failed -> retry
              retry -> fragile.again via queue(10, when_full: shed)
              fragile.again_failed -> retry
              retry.lost -> lost
            }}
            "
        );
        let modules = all().with::<Fragile>("Fragile");
        let params = Params::new().typed("given", Given::new(vec![9u64, 9, 9]));
        let notes = by_hand_with(&text, &modules, params, 6);
        let stamps = notes.into_iter().filter(|note| note.contains("ms:"));
        let stamps = stamps.map(|note| note.split_once(' ').expect("a time").0.to_owned());
        stamps.collect::<Vec<_>>()
    };
    let given = pauses("");
    assert_eq!(given.len(), 3);
    for pause in &given {
        let ms: u64 = pause.parse().expect("a number");
        assert!((500..=1000).contains(&ms), "{ms}");
    }
    assert!(given.iter().any(|pause| *pause != given[0]), "{given:?}");
    // Under virtual time, the seed is 0.
    assert_eq!(pauses(", seed: 0"), given);
    assert_ne!(pauses(", seed: 1"), given);
}

#[test]
fn a_throttle_lets_a_burst_pass_and_then_keeps_the_rate() {
    let text = "
        use Items, Throttle, Stamp
        graph Slow(given: Given, to: Notes) {
          items = Items<u64>(given)
          slow  = Throttle(10/s, burst: 2)
          notes = Stamp(to)
          items -> slow -> notes
        }
    ";
    let params = Params::new().typed("given", Given::new(vec![1u64, 2, 3, 4]));
    let notes = by_hand_with(text, &all(), params, 4);
    assert_eq!(notes, ["0 ms: 1", "0 ms: 2", "100 ms: 3", "200 ms: 4"]);
}

#[test]
fn a_timer_is_delayed_and_counted() {
    let text = "
        use Timer, Delay, Counter, Logger, Stamp
        graph Timed(to: Notes) {
          timer = Timer(every: 1 s, count: 3)
          late  = Delay(500 ms)
          count = Counter(every: 900 ms)
          log   = Logger(label: \"timed\")
          items = Stamp(to)
          total = Stamp(to)
          timer -> late -> count -> log -> items
          count.total -> total
        }
    ";
    let mut notes = by_hand_with(text, &all(), Params::new(), 6);
    notes.truncate(6);
    let expected = [
        "500 ms: 0",
        "900 ms: 1",
        "1500 ms: 1",
        "1800 ms: 2",
        "2500 ms: 2",
        "2700 ms: 3",
    ];
    assert_eq!(notes, expected);
}

/// Sums up the bytes of each flow.
#[derive(Default)]
struct Sum;

#[module]
impl Sum {
    fn run(&self, request: Request, sum: &mut u64) {
        *sum += request.1;
    }

    fn end(&self, sum: u64, flow: &tussah::flow::Flow, out: &impl Out<String>) {
        let client = flow.key().expect("it is the end of a flow");
        out.send(format!("{client} {sum}"));
    }
}

fn requests() -> Vec<Request> {
    let request = |(client, bytes)| Request(Some(client), bytes);
    let mut requests: Vec<_> = [("a", 1), ("b", 2), ("a", 4), ("c", 8), ("b", 16)]
        .map(request)
        .into();
    requests.push(Request(None, 32));
    requests
}

#[test]
fn a_split_ends_the_flow_that_was_idle_for_the_longest_time() {
    let text = "
        use Items, Split, Sum, Note
        graph Sums(given: Given, to: Notes) {
          items = Items<Request>(given)
          split = Split(by: \"client\", flows: 2)
          sum   = Sum()
          notes = Note(to)
          items -> split -> sum -> notes
        }
    ";
    let modules = all().with::<Sum>("Sum");
    let params = Params::new().typed("given", Given::new(requests()));
    let mut notes = by_hand_with(text, &modules, params, 2);
    notes.sort();
    // `c` ends `b`, and then `b` ends `a`. The flows of `c` and the second `b` are still open.
    assert_eq!(notes, [r#""a 5""#, r#""b 2""#]);
}

#[test]
fn filters_sort_items_by_their_fields() {
    let text = "
        use Items, Filter, Note
        graph Sorted(given: Given, to: Notes) {
          items = Items<Request>(given)
          large = Filter(field: \"bytes\", at_least: 4, at_most: 16)
          b     = Filter(field: \"client\", is: \"b\")
          notes = Note(to)
          items -> large -> b -> notes
        }
    ";
    let params = Params::new().typed("given", Given::new(requests()));
    let notes = by_hand_with(text, &all(), params.clone(), 1);
    assert_eq!(notes, [r#"Request(Some("b"), 16)"#]);
    let rest = text.replace("large -> b -> notes", "large -> b\n b.rest -> notes");
    let rest = rest.replace("notes = Note(to)", "notes = Note(to) x = Note(to)");
    let rest = rest.replace("-> b\n", "-> b -> x\n");
    let mut notes = by_hand_with(&rest, &all(), params, 3);
    notes.sort();
    let expected = [
        r#"Request(Some("a"), 4)"#,
        r#"Request(Some("b"), 16)"#,
        r#"Request(Some("c"), 8)"#,
    ];
    assert_eq!(notes, expected);
}

#[test]
fn a_wrong_field_is_an_error() {
    let check = |module: &str, expected: &str| {
        let text = format!(
            "use Items, Filter, Split, Note, Logger
            graph Sorted(given: Given, any: text = \"client\") {{
              items = Items<Request>(given)
              sort  = {module}
              log   = Logger()
              items -> sort -> log
            }}"
        );
        let params = Params::new().typed("given", Given::new(requests()));
        let params = params.with("any", Value::Text("size".to_owned()));
        let error = match all().graph("test.weave", &text, &params) {
            Ok(graph) => runtime(1)
                .block_on(async { graph.start().map(|_| ()) })
                .expect_err("an argument is wrong")
                .to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("test.weave:4:"), "{error}");
    };
    // `check` finds constants, and the start finds all others.
    let fields = "fields: `client`, `bytes`";
    check("Filter(field: \"size\", at_least: 1)", fields);
    check("Split(by: \"size\")", fields);
    let started = "is \"size\": expected \"client\" or \"bytes\"";
    check("Filter(field: any, at_least: 1)", started);
    check("Split(by: any)", started);
    check("Filter(field: \"bytes\")", "there is no condition");
}

#[test]
fn times_that_must_not_be_zero_are_checked_with_the_text() {
    let check = |module: &str, expected: &str| {
        let text = format!(
            "use Items, Timer, Counter, Opens, TcpListen, Logger
            graph Timed() {{
              source = {module}
              log    = Logger()
              source -> log
            }}"
        );
        let all = all().with::<Opens>("Opens");
        let error = all.graph("test.weave", &text, &Params::new());
        let error = error.map(|_| ()).expect_err("an argument is wrong");
        assert!(error.to_string().contains(expected), "{error}");
    };
    let least = "is 0 s: expected at least 1 ns";
    check("Timer(0 s)", &format!("`every` of `Timer` {least}"));
    check(
        "Counter<u64>(every: 1 ms - 1 ms)",
        &format!("`every` of `Counter` {least}"),
    );
    check(
        "TcpListen(\"127.0.0.1:0\", idle: 0 s)",
        &format!("`idle` of `TcpListen` {least}"),
    );
    check("Opens(idle: 0 s)", &format!("`idle` of `Opens` {least}"));
    check(
        "Opens(flows: 0)",
        "`flows` of `Opens` is 0: expected at least 1",
    );
}

/// A source whose flows have bounds.
#[derive(Default)]
struct Opens;

#[module(flows)]
impl Opens {
    async fn start(&self, out: &impl AsyncOut<u64>) {
        out.to(0u64, 1).await;
    }
}

/// Sends numbers in two flows, and ends these.
#[derive(Default)]
struct Flows;

#[module]
impl Flows {
    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..6 {
            out.to(number % 2, number).await;
        }
        (0..2u64).for_each(|flow| out.close(flow));
    }
}

/// Makes requests of all numbers but the last.
#[derive(Default)]
struct Ask;

#[module]
impl Ask {
    fn run(&self, number: u64, out: &impl Out<Request>) {
        if number < 5 {
            out.send(Request(None, number));
        }
    }
}

#[test]
fn a_join_makes_pairs_within_a_flow() {
    let text = "
        use Flows, Ask, Join, Note
        graph Pairs(to: Notes) {
          flows = Flows()
          ask   = Ask()
          join  = Join()
          pairs = Note(to)
          alone = Note(to)
          flows -> join -> pairs
          flows -> ask -> join.other
          join.alone -> alone
        }
    ";
    let modules = all().with::<Flows>("Flows").with::<Ask>("Ask");
    let mut notes = by_hand_with(text, &modules, Params::new(), 6);
    notes.sort();
    let pair = |number| format!("({number}, Request(None, {number}))");
    assert_eq!(notes[..5], [0, 1, 2, 3, 4].map(pair));
    assert_eq!(notes[5..], ["5"]);
}

#[test]
fn a_join_keeps_only_as_many_items_as_have_room() {
    let text = "
        use Items, Join, Note
        graph Pairs(given: Given, more: Given, to: Notes) {
          numbers  = Items<u64>(given)
          join     = Join<u64, Request>(room: 2)
          notes    = Note(to)
          alone    = Note(to)
          requests = Items(more)
          numbers -> join -> notes
          requests -> join.other
          join.alone -> alone
        }
    ";
    let params = Params::new()
        .typed("given", Given::new(vec![1u64, 2, 3]))
        .typed("more", Given::new(Vec::<Request>::new()));
    assert_eq!(by_hand_with(text, &all(), params, 1), ["1"]);
}

/// Notes the reasons of dropped items.
struct Reasons(Notes);

#[module]
impl Reasons {
    fn init(notes: Notes) -> Self {
        Self(notes)
    }

    fn run(&mut self, dropped: Dropped<u64>) {
        self.0
            .add(format!("{}: {:?}", dropped.reason, dropped.item));
    }
}

#[test]
fn injected_faults_lose_slow_down_and_panic() {
    let text = |arguments: &str| {
        format!(
            "use Items, FaultInjector, Stamp, Reasons
            graph Faulty(given: Given, to: Notes) {{
              items  = Items<u64>(given)
              faulty = FaultInjector({arguments})
              good   = Stamp(to)
              lost   = Stamp(to)
              panics = Reasons(to)
              items -> faulty -> good
              faulty.lost -> lost
              faulty.dropped -> panics
            }}"
        )
    };
    let modules = all().with::<Reasons>("Reasons");
    let faulty = |arguments: &str, items: Vec<u64>| {
        let count = items.len();
        let params = Params::new().typed("given", Given::new(items));
        by_hand_with(&text(arguments), &modules, params, count)
    };
    assert_eq!(faulty("", vec![1]), ["0 ms: 1"]);
    assert_eq!(faulty("slow: 100 %, delay: 70 ms", vec![1]), ["70 ms: 1"]);
    assert_eq!(
        faulty("panic: 1", vec![1]),
        ["its handler panicked: Some(1)"]
    );
    assert_eq!(faulty("lose: 1", vec![1, 2]).len(), 2);
    let half = |seed: u64| {
        let arguments = format!("slow: 50 %, delay: 10 ms, seed: {seed}");
        faulty(&arguments, (0..100).collect())
    };
    let slow = half(1)
        .iter()
        .filter(|note| note.starts_with("10 ms"))
        .count();
    assert!((30..70).contains(&slow), "{slow}");
    assert_eq!(half(1), half(1));
    assert_ne!(half(1), half(2));
}

#[test]
fn a_dead_letter_is_a_line_with_the_reason() {
    let root = tempfile::tempdir().expect("there is room for temporary files");
    let file = root.path().join("lost");
    let text = format!(
        "use Items, FaultInjector, DeadLetter, Note
        graph Lost(given: Given, to: Notes) {{
          items = Items<u64>(given)
          a     = FaultInjector(panic: 1)
          b     = FaultInjector(lose: 1)
          note  = Note(to)
          dead  = DeadLetter({file:?})
          items -> a -> note
          a.dropped -> dead
          items -> b -> note
          b.lost -> dead.lost
        }}"
    );
    let params = Params::new().typed("given", Given::new(vec![7u64]));
    let notes = by_hand_with(&text, &all(), params, 0);
    assert_eq!(notes, [""; 0]);
    let text = std::fs::read_to_string(file).expect("it was written");
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["7", "its handler panicked: 7"]);
}

#[test]
fn standard_modules_send_items_that_can_be_logged() {
    let check = |ports: &[&str], instances: &str| {
        let log = |port: &&str| format!("log_{port} = Logger() it.{port} -> log_{port}\n");
        let logs: String = ports.iter().map(log).collect();
        let text = format!(
            "use TcpListen, UdpListen, FileLines, DirectoryList, ReadFile, DeadLetter, SendFile,
               Timer, Items, Logger
             graph Log(items: Given) {{ {instances}\n{logs} }}"
        );
        let params = Params::new().typed("items", Given::new(Vec::<FilePart>::new()));
        let modules = modules::standard().and(items::<FilePart>());
        graph(&text, &modules, &params);
    };
    check(&["out", "listening"], "it = TcpListen(\"127.0.0.1:0\")");
    check(&["out", "listening"], "it = UdpListen(\"127.0.0.1:0\")");
    check(&["out", "error"], "it = FileLines(\"/dev/null\")");
    check(&["out", "error"], "it = DirectoryList(\".\")");
    let files = "files = DirectoryList(\".\") it = ReadFile(\".\") files -> it";
    check(&["out", "failed"], files);
    let lost = "timer = Timer(1 h) it = DeadLetter(\"/dev/null\") timer -> it.lost";
    check(&["failed"], lost);
    let parts = "parts = Items(items) it = SendFile(\".\") parts -> it";
    check(&["sent", "failed"], parts);
}
