//! Tests in Weave: what passes, and what the failures say.

use std::fmt;
use std::panic::catch_unwind;
use std::str::FromStr;
use std::time::Duration;

use tussah::flow::{AsyncOut, Modules, Out, module, run_tests};
use tussah::modules;
use tussah::time::sleep;

/// Sends the numbers from 1 to `count`.
struct Numbers(u64);

#[module]
impl Numbers {
    fn init(count: u64) -> Self {
        Self(count)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 1..=self.0 {
            out.send(number).await;
        }
        if self.0 == 0 {
            std::future::pending().await
        }
    }
}

/// Divides 100 by numbers.
#[derive(Default)]
struct Divide;

#[module]
impl Divide {
    fn run(&self, number: u64, out: &impl Out<u64>, bad: Option<&impl Out<String>>) {
        match (100_u64.checked_div(number), bad) {
            (Some(quotient), _) => out.send(quotient),
            (None, Some(bad)) => bad.send(format!("100 / {number}")),
            (None, None) => {}
        }
    }
}

/// Sends each number on after a time.
struct Wait(Duration);

#[module]
impl Wait {
    fn init(time: Duration) -> Self {
        Self(time)
    }

    async fn run(&self, number: u64, out: &impl AsyncOut<u64>) {
        sleep(self.0).await;
        out.send(number).await;
    }
}

/// Fails to start: a test does not need it.
struct Socket;

#[module]
impl Socket {
    fn init() -> Result<Self, String> {
        Err("the port is taken".to_owned())
    }

    fn run(&self, _number: u64) {}
}

/// Doubles numbers on an OS thread, and takes its time.
#[derive(Default)]
struct Blocks;

#[module(blocking)]
impl Blocks {
    fn run(&self, number: u64, out: &impl Out<u64>, _bad: Option<&impl Out<String>>) {
        (0..100).for_each(|_| std::thread::yield_now());
        out.send(2 * number);
    }
}

/// An item that has no text.
struct Opaque;

/// Makes opaque items.
#[derive(Default)]
struct Hide;

#[module]
impl Hide {
    fn run(&self, _number: u64, out: &impl Out<Opaque>) {
        out.send(Opaque);
    }
}

/// Takes opaque items.
#[derive(Default)]
struct Drop;

#[module]
impl Drop {
    fn run(&self, _item: Opaque) {}
}

const GRAPHS: &str = "
use Numbers, Divide, Wait, Socket, Hide, Drop

graph Quotients(wait: duration = 5 ms) {
  numbers = Numbers(3)
  divide  = Divide()
  later   = Wait(wait)
  socket  = Socket()
  bad     = Text()
  numbers -> divide -> later -> socket
  divide.bad -> bad after 10 ms
}

graph Part() {
  divide = Divide()
  in -> divide -> out after 1 s
}

graph Hidden() {
  numbers = Numbers(0)
  hide    = Hide()
  drop    = Drop()
  numbers -> hide -> drop
}
";

/// Takes texts.
#[derive(Default)]
struct Text;

#[module]
impl Text {
    fn run(&self, _text: String) {}
}

/// Runs one test, and returns the message if it fails.
fn test(head: &str, steps: &str) -> String {
    run(&format!(
        "use Text, Blocks, Delay, Logger, FaultInjector {GRAPHS}test \"one\" of {head} {{\n{steps}\n}}\n"
    ))
}

/// Runs the tests of a text, and returns the message if one fails.
fn run(text: &str) -> String {
    let modules = Modules::new()
        .with::<Numbers>("Numbers")
        .with::<Divide>("Divide")
        .with::<Wait>("Wait")
        .with::<Socket>("Socket")
        .with::<Hide>("Hide")
        .with::<Drop>("Drop")
        .with::<Text>("Text")
        .with::<Blocks>("Blocks")
        .and(modules::generic::<u64>())
        .and(modules::generic::<String>());
    let file = tempfile::Builder::new().suffix(".weave").tempfile();
    let file = file.expect("a file");
    std::fs::write(file.path(), text).expect("a file");
    let result = catch_unwind(|| run_tests(file.path(), &modules));
    let Err(payload) = result else {
        return String::new();
    };
    let message = payload.downcast::<String>().expect("a message");
    let name = file.path().display().to_string();
    message.replace(&name, "f.weave")
}

#[track_caller]
fn passes(head: &str, steps: &str) {
    assert_eq!(test(head, steps), "");
}

#[track_caller]
fn fails(head: &str, steps: &str, expected: &str) {
    let message = test(head, steps);
    assert!(message.contains(expected), "{message}");
}

#[test]
fn a_test_takes_the_place_of_a_source_and_of_a_sink() {
    passes(
        "Quotients()",
        "send numbers 5, 20\nexpect socket 20, 5 within 5 ms\nexpect nothing at socket within 1 h",
    );
    // Instances in the middle stay.
    passes(
        "Quotients()",
        "replace numbers with Numbers(0)\nsend divide 4\nexpect divide 25\nexpect later.run 25\nexpect nothing at socket",
    );
    passes(
        "Part()",
        "send in 4\nexpect nothing at out within 999 ms\nexpect out 25 within 1 ms",
    );
}

#[test]
fn time_is_virtual_and_exact() {
    passes(
        "Quotients(wait: 10 h)",
        "send numbers 1\nexpect nothing at socket within 9 h\nexpect socket 100 within 1 h",
    );
    passes(
        "Quotients()",
        "send numbers 0\nexpect nothing at socket\nadvance 9 ms\nexpect nothing at bad\nadvance 1 ms\nexpect bad \"100 / 0\"",
    );
    fails(
        "Quotients()",
        "send numbers 1\nexpect socket 100 within 4 ms",
        "items are missing at `socket`\n  --> f.weave:27:8",
    );
}

#[test]
fn nothing_is_expected_until_blocking_modules_are_idle() {
    let steps = "replace later with Blocks()\nsend numbers 4\nexpect nothing at socket";
    fails("Quotients()", steps, "items have arrived at `socket`");
    let (two, send) = (
        "replace divide with Blocks()\nreplace later with Blocks()",
        "send numbers 4",
    );
    fails(
        "Quotients()",
        &format!("{two}\n{send}\nexpect nothing at socket within 1 ms"),
        "items have arrived at `socket`",
    );
    passes(
        "Quotients()",
        &format!("{two}\n{send}\nexpect socket 16\nexpect nothing at socket within 1 ms"),
    );
}

#[test]
fn doubles_replace_modules() {
    passes(
        "Quotients()",
        "replace numbers with Numbers(2)\nexpect socket 100, 50 within 5 ms\nexpect nothing at socket",
    );
    passes(
        "Quotients()",
        "replace later with Divide()\nsend numbers 4\nexpect socket 4",
    );
    fails(
        "Quotients()",
        "replace later with Hide()\nsend numbers 4\nexpect socket 4",
        "sends `flow::testing::Opaque`, but `socket` expects `u64`\n  --> f.weave:26:20",
    );
}

#[test]
fn the_edges_of_an_instance_determine_the_type_of_its_double() {
    passes(
        "Quotients()",
        "replace later with Delay(2 ms)\nsend numbers 4, 0\nexpect nothing at socket within 1 ms\nexpect socket 25 within 1 ms",
    );
    passes(
        "Quotients()",
        "replace later with FaultInjector<u64>(lose: 1.0)\nreplace bad with Logger()\nsend numbers 4, 0\ndrain\nexpect nothing at socket\nexpect bad.run \"100 / 0\"",
    );
    passes(
        "Part()",
        "replace divide with Logger()\nsend in 4\nexpect out 4 within 1 s",
    );
    fails(
        "Quotients()",
        "replace later with Delay<String>(2 ms)",
        "`divide` sends `u64`, but `later` expects `String`\n  --> f.weave:26:20",
    );
    // The program does not know the module for this type.
    fails(
        "Hidden()",
        "replace drop with Logger()\nsend numbers 1",
        "the program has no `Logger` for",
    );
}

#[test]
fn drain_waits_for_all_items() {
    passes(
        "Quotients(wait: 1 min)",
        "send numbers 4\nexpect nothing at socket\ndrain\nexpect socket 25",
    );
    passes("Hidden()", "drain");
    fails(
        "Quotients(wait: 2 h)",
        "send numbers 4\nexpect nothing at socket\ndrain",
        "after 1 h",
    );
}

#[test]
fn failures_show_the_place_and_a_diff() {
    fails(
        "Quotients()",
        "send numbers 5, 20, 25\nexpect socket 20, 6, 4 within 5 ms",
        "test \"one\" failed\nerror: other items have arrived at `socket`\n  --> f.weave:27:8\n   |\n\
         27 | expect socket 20, 6, 4 within 5 ms\n   |        ^^^^^^\n    20\n  - 6\n  + 5\n    4\n",
    );
    fails(
        "Quotients()",
        "send numbers 5\nexpect socket 20, 5 within 5 ms",
        "items are missing at `socket`",
    );
    fails(
        "Quotients()",
        "send numbers 5\nexpect nothing at socket within 5 ms",
        "items have arrived at `socket`",
    );
    fails(
        "Quotients()",
        "expect nothing at socket\nsend numbers \"five\"",
        "\"five\" is not a `u64`",
    );
    fails(
        "Quotients()",
        "send numbers 5",
        "`socket` could not be made: the port is taken\n --> f.weave:8:3",
    );
    fails(
        "Hidden()",
        "expect drop 1",
        "the items of `drop` have no text",
    );
}

/// An item with all texts.
#[derive(Clone, Debug)]
struct Ticket(u64);

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ticket {}", self.0)
    }
}

impl FromStr for Ticket {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Ticket)
    }
}

/// Sends each ticket on.
#[derive(Default)]
struct Gate;

#[module]
impl Gate {
    fn run(&self, ticket: Ticket, out: &impl Out<Ticket>) {
        out.send(ticket);
    }
}

#[test]
fn a_generic_module_hides_no_text_of_a_type() {
    let text = "use Gate, Logger
        graph G() { gate = Gate() log = Logger() in -> gate -> log -> out }
        test \"one\" of G() { send in 1 expect gate \"ticket 1\" expect out \"ticket 1\" }";
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("a file");
    let generic = modules::generic::<Ticket>;
    run_tests(file.path(), &generic().with::<Gate>("Gate"));
    run_tests(
        file.path(),
        &Modules::new().with::<Gate>("Gate").and(generic()),
    );
}

/// A graph with two outputs.
const TWO: &str = "use Divide
    graph Two() {
      one = Divide() two = Divide()
      in -> one -> out
      in.two -> two -> out.two
    }
";

#[test]
fn a_test_may_leave_out_ports_of_its_graph() {
    let test = "test \"one\" of Two() { send in.two 4 send in 5 expect out.two 25 drain }";
    assert_eq!(run(&format!("{TWO}{test}")), "");
    let test = "test \"one\" of Two() { replace one with Divide() send in 4 drain }";
    assert_eq!(run(&format!("{TWO}{test}")), "");
}

/// A graph inside a graph inside a graph.
const NESTED: &str = "use Divide, Wait
    graph Inner() { divide = Divide() in -> divide -> out }
    graph Middle() { i = Inner() later = Wait(5 ms) in -> i -> later -> out }
    graph Outer() { m = Middle() in -> m -> out }
";

#[test]
fn a_test_reaches_the_instances_inside_nested_graphs() {
    for steps in [
        "replace m.i.divide with Wait(1 ms) send in 4 expect out 4 within 6 ms",
        "send m.i.divide 4 expect m.i.divide 25 expect out 25 within 5 ms",
        "send m.i 4 expect m.i 25 expect m.later 25 within 5 ms",
        "send in 4 expect m.later.run 25 expect nothing at m.i.divide.bad",
    ] {
        let text = format!("{NESTED}test \"one\" of Outer() {{ {steps} }}");
        assert_eq!(run(&text), "", "{steps}");
    }
}

#[test]
fn a_step_names_an_instance_that_the_parameters_leave_out() {
    let graph = "use Divide
        graph Choice(b: flag = false) {
          a = Divide() in -> a -> out
          if b { d = Divide() in.two -> d -> out.two }
        }
    ";
    for (step, name) in [
        ("replace d with Divide()", "d"),
        ("send d 1", "d"),
        ("expect d 1", "d"),
        ("expect nothing at d", "d"),
        ("send in.two 1", "in.two"),
        ("expect out.two 1", "out.two"),
    ] {
        let message = run(&format!("{graph}test \"one\" of Choice() {{ {step} }}"));
        let expected = format!("there is no `{name}` with these parameters");
        assert!(message.contains(&expected), "{step}: {message}");
    }
}
