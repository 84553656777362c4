//! The examples, run as their users run them.

use std::collections::HashMap;
use std::env::consts::EXE_EXTENSION;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;

/// The program of an example. `cargo test` builds it beside the tests; `cargo test --test it` does
/// not, then we do.
pub(crate) fn example(name: &str) -> Command {
    let test = std::env::current_exe().expect("the test knows its own path");
    let profile = test
        .ancestors()
        .nth(2)
        .expect("it lies in target/PROFILE/deps");
    let program = profile
        .join("examples")
        .join(name)
        .with_extension(EXE_EXTENSION);
    if !program.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--package", "tussah", "--examples"]);
        cargo.args(["--features", "cli"]);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let target = profile
            .parent()
            .expect("the profile lies in the target directory");
        let built = cargo
            .arg("--target-dir")
            .arg(target)
            .status()
            .expect("cargo starts");
        assert!(built.success(), "the examples were not built");
    }
    Command::new(program)
}

/// Returns the messages of a program on standard error, without those of its watchdog: on a busy
/// machine a worker may not run for a second.
pub(crate) fn complaints(stderr: &str) -> String {
    let of_watchdog = |line: &&str| line.starts_with("tussah: worker ");
    let lines = stderr.split_inclusive('\n');
    lines.filter(|line| !of_watchdog(line)).collect()
}

fn run(command: &mut Command) -> (Output, String) {
    let output = command.output().expect("the example starts");
    let text = String::from_utf8(output.stdout.clone()).expect("the output is text");
    (output, text)
}

/// Files with words, in directories; deleted with the value.
fn corpus() -> (tempfile::TempDir, HashMap<String, u64>) {
    let root = tempfile::tempdir().expect("there is room for temporary files");
    let mut expected = HashMap::new();
    let mut words = |text: &str| {
        for word in text.split_whitespace() {
            *expected.entry(word.to_lowercase()).or_default() += 1;
        }
    };
    for n in 0..60u32 {
        let directory = root.path().join(format!("{}", n % 3)).join("deep");
        fs::create_dir_all(&directory).expect("a directory");
        let text = format!("The quick żółw {n} the\nword{} ", n % 7).repeat(n as usize);
        words(&text);
        fs::write(directory.join(format!("{n}.txt")), text).expect("a file");
    }
    // Larger than many chunks, with words over their borders.
    let text: String = (0..200_000u64)
        .map(|n| format!("Ąword{} ", n * n % 101))
        .collect();
    words(&text);
    fs::write(root.path().join("large"), text).expect("a file");
    fs::write(root.path().join("empty"), "").expect("a file");
    fs::write(
        root.path().join("binary"),
        [0xff, b' ', b'o', b'n', b'e', 0xfe],
    )
    .expect("a file");
    words("one");
    (root, expected)
}

fn count(paths: &[&Path], workers: &str) -> (Option<i32>, Value, String) {
    let mut command = example("word_count");
    command
        .args(["--json", "--top", "1000000", "--workers", workers])
        .args(paths);
    let (output, text) = run(&mut command);
    let json = serde_json::from_str(&text).expect("one JSON object");
    (
        output.status.code(),
        json,
        complaints(&String::from_utf8_lossy(&output.stderr)),
    )
}

fn words_of(report: &Value) -> HashMap<String, u64> {
    let words = report["top"].as_array().expect("a list").iter();
    let word = |word: &Value| {
        (
            word["word"].as_str().expect("a text").to_owned(),
            word["count"].as_u64().expect("a number"),
        )
    };
    words.map(word).collect()
}

#[test]
fn word_count_is_right_on_one_and_on_many_workers() {
    let (root, expected) = corpus();
    for workers in ["1", "2", "8"] {
        let (code, report, errors) = count(&[root.path()], workers);
        assert_eq!((code, errors.as_str()), (Some(0), ""), "{workers} workers");
        assert_eq!(words_of(&report), expected, "{workers} workers");
        assert_eq!(report["words"].as_u64(), Some(expected.values().sum()));
        assert_eq!(report["distinct"].as_u64(), Some(expected.len() as u64));
        assert_eq!(report["files"].as_u64(), Some(63));
    }
}

#[test]
fn word_count_goes_on_behind_a_bad_path() {
    let (root, expected) = corpus();
    let missing = root.path().join("missing");
    let (code, report, errors) = count(&[&missing, root.path(), Path::new("/dev/null")], "2");
    assert_eq!(code, Some(1));
    assert_eq!(words_of(&report), expected);
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(2));
    let missing = format!(
        "word_count: {}: No such file or directory",
        missing.display()
    );
    assert!(errors.contains(&missing), "{errors}");
    assert!(
        errors.contains("word_count: /dev/null: expected a file or a directory"),
        "{errors}"
    );
}

#[test]
fn word_count_prints_a_table() {
    let root = tempfile::tempdir().expect("there is room for temporary files");
    fs::write(root.path().join("a"), "b a A c").expect("a file");
    let (output, text) = run(example("word_count").args(["--top", "2"]).arg(root.path()));
    assert!(output.status.success());
    let expected = "         count    share  word
             2   50.00%  a
             1   25.00%  b
             4  words, 3 different, in 1 files (7 B)
";
    assert_eq!(text, expected);
}

#[test]
fn word_count_explains_itself() {
    let (output, text) = run(example("word_count").arg("--help"));
    assert!(output.status.success());
    assert!(text.contains("Examples:\n  word_count README.md"), "{text}");
    let (output, _) = run(&mut example("word_count"));
    assert_eq!(output.status.code(), Some(2), "it needs a path");
}

#[test]
fn a_board_inside_tokio() {
    let (output, text) = run(&mut example("inside_tokio"));
    assert!(output.status.success());
    // 17, 17 and 16 clients with 1 + 2 + .. + 10 points each.
    assert_eq!(text, "   ada 935\nbarbara 880\n grace 935\n");
}

#[test]
fn color_step_by_step() {
    let (output, text) = run(&mut example("color_step_by_step"));
    assert!(output.status.success());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines.iter().all(|line| line.contains("160 requests")),
        "{text}"
    );
    assert!(lines[0].ends_with("at most 1 digests at once"), "{text}");
}

/// The modules of the example have tests of their own.
#[path = "../../examples/word_count/read.rs"]
#[allow(dead_code)]
mod read;

#[test]
fn a_file_comes_in_chunks_that_make_the_whole() {
    let (root, _) = corpus();
    let path: PathBuf = root.path().join("large");
    let mut reader = read::Reader::open(&path).expect("it is there");
    let mut whole = Vec::new();
    while let Some(chunk) = reader.next_chunk().expect("it can be read") {
        assert!(chunk.len() <= read::CHUNK_MAX + 16);
        whole.extend(chunk);
    }
    assert_eq!(whole, fs::read(&path).expect("it can be read"));
}

#[test]
fn a_scheduler_of_ones_own_prints_both_means() {
    let (output, text) = run(&mut example("my_scheduler"));
    assert!(output.status.success());
    assert!(text.contains("first in, first out"), "{text}");
    assert!(text.contains("shortest first"), "{text}");
}

#[test]
fn main_prints_its_error() {
    let output = example("echo_stages").arg("nowhere").output();
    let output = output.expect("the example starts");
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.starts_with("Error: "), "{errors}");
}

#[test]
fn a_server_of_two_stages_numbers_lines() {
    let mut command = example("echo_stages");
    let server = command.arg("127.0.0.1:0").stdout(Stdio::piped()).spawn();
    let mut server = server.expect("the example starts");
    let mut output = BufReader::new(server.stdout.take().expect("it is piped"));
    let mut line = String::new();
    output
        .read_line(&mut line)
        .expect("it says where it listens");
    let address = line.trim().strip_prefix("listening at ");
    let address: SocketAddr = address.expect("it says so").parse().expect("an address");
    let mut clients: Vec<_> = (0..5)
        .map(|_| TcpStream::connect(address).expect("it listens"))
        .collect();
    for piece in ["one\ntw", "o\n", "\nfour\n", "no end"] {
        for client in &mut clients {
            client.write_all(piece.as_bytes()).expect("it reads");
        }
    }
    for mut client in clients {
        client.shutdown(Shutdown::Write).expect("it is connected");
        let mut answers = String::new();
        let read = client.read_to_string(&mut answers);
        read.expect("it ends in good order");
        assert_eq!(answers, "1: one\n2: two\n3: \n4: four\n");
    }
    // A line without an end.
    let mut endless = TcpStream::connect(address).expect("it listens");
    let cut_off =
        std::iter::repeat_with(|| endless.write_all(&[b'x'; 1000])).any(|written| written.is_err());
    assert!(cut_off);
    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let mut graph = String::new();
    output.read_to_string(&mut graph).expect("it is text");
    assert!(
        graph.contains("digraph \"echo\"") && graph.contains("sockets.read"),
        "{graph}"
    );
    assert!(server.wait().expect("it is a child").success());
}

/// The lines of an example's source; the first says how many it has at most.
fn lines_of(name: &str) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let text = fs::read_to_string(path.join(name)).expect("its source");
    text.lines().count()
}

#[test]
fn a_stage_in_30_lines() {
    let (output, text) = run(&mut example("stage"));
    assert!(output.status.success());
    assert_eq!(text, "level\nnoon\n");
    assert!(lines_of("stage.rs") <= 30);
}

#[test]
fn a_controller_in_40_lines_keeps_the_queue_short() {
    let (output, text) = run(&mut example("controller"));
    assert!(output.status.success());
    let queued = |line: &str| line[9..].trim_start().split(' ').next()?.parse().ok();
    let lens: Vec<u32> = text.lines().filter_map(queued).collect();
    assert_eq!(lens.len(), 10, "{text}");
    // 20 a millisecond are served.
    assert!(
        lens[1..].iter().all(|len| (50..200).contains(len)),
        "{text}"
    );
    assert!(lines_of("controller.rs") <= 40);
}

#[test]
fn clients_sums_up_an_access_log() {
    let root = tempfile::tempdir().expect("there is room for temporary files");
    let (log, lost) = (root.path().join("log"), root.path().join("lost"));
    let request = |client: &str, bytes: &str| {
        format!("{client} - - [25/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 {bytes}\n")
    };
    let mut text: String = (0..3000)
        .map(|n| request(["a", "b"][n % 2], "10"))
        .collect();
    text.push_str("hello\n");
    text.push_str(&request("c", "-"));
    fs::write(&log, text).expect("the log can be written");
    let (output, text) = run(example("clients").args([&log, &lost]));
    assert!(output.status.success(), "{output:?}");
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    let expected = [
        "a: 1500 requests, 15000 bytes",
        "b: 1500 requests, 15000 bytes",
        "c: 1 requests, 0 bytes",
    ];
    assert_eq!(lines, expected);
    let lost = fs::read_to_string(lost).expect("the lost lines are written");
    assert_eq!(lost, "3001: hello\n");
}

#[test]
fn clients_reports_a_missing_log() {
    let (output, _) = run(example("clients").arg("/no/such/log"));
    assert_eq!(output.status.code(), Some(1));
    let errors = complaints(&String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        errors,
        "clients: the instance `lines` at clients.weave:5:3 could not be made: cannot read /no/such/log: \
         No such file or directory (os error 2)\n"
    );
}

/// Runs a graph of an example with these options, and reads the address that the graph prints.
fn listening(name: &str, options: &[&str]) -> (Child, SocketAddr) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(name);
    let mut command = example(name);
    let command = command.arg("run").arg(folder.join(format!("{name}.weave")));
    let command = command.args(["--listen", "127.0.0.1:0"]).args(options);
    let mut server = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut output = BufReader::new(server.stdout.take().expect("it is piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("it is text");
    let address = line.trim().strip_prefix("listening at ");
    let address = address.expect("it listens").parse();
    (server, address.expect("it is an address"))
}

fn signal(server: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(server);
    rustix::process::kill_process(pid, signal).expect("it runs");
}

fn interrupt(mut server: Child) {
    signal(&server, rustix::process::Signal::INT);
    assert!(server.wait().expect("it is a child").success());
}

/// A client of the chat server.
struct Chatter(BufReader<TcpStream>);

impl Chatter {
    fn enter(address: SocketAddr, line: &str) -> Self {
        let mut client = Self(BufReader::new(
            TcpStream::connect(address).expect("it listens"),
        ));
        client.say(line);
        client
    }

    fn say(&mut self, line: &str) {
        writeln!(self.0.get_mut(), "{line}").expect("it is read");
    }

    #[track_caller]
    fn hears(&mut self, expected: &str) {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("it is text");
        assert_eq!(line.trim_end(), expected);
    }
}

#[test]
fn chat_passes_lines_to_the_members_of_a_room() {
    let (server, address) = listening("chat", &["--members", "2"]);
    let mut ada = Chatter::enter(address, "ada math");
    ada.hears("* ada joined");
    let mut bob = Chatter::enter(address, "hello");
    bob.hears("* expected NAME ROOM");
    bob.say("bob math");
    bob.hears("* bob joined");
    ada.hears("* bob joined");
    let mut eve = Chatter::enter(address, "eve math");
    eve.hears("* the room is full");
    eve.say("nobody hears this");
    let mut dan = Chatter::enter(address, "dan tea");
    dan.hears("* dan joined");
    for number in 0..100 {
        bob.say(&format!("line {number}"));
    }
    for number in 0..100 {
        ada.hears(&format!("bob: line {number}"));
        bob.hears(&format!("bob: line {number}"));
    }
    drop(bob);
    ada.hears("* bob left");
    dan.say("alone");
    dan.hears("dan: alone");
    // A room that was empty begins anew.
    drop(dan);
    let mut dan = Chatter::enter(address, "dan math");
    dan.hears("* dan joined");
    ada.hears("* dan joined");
    interrupt(server);
}

/// Answers lines until one of them is `end`, and returns the lines. It hangs up at the second line.
fn sink(listener: TcpListener) -> std::thread::JoinHandle<Vec<String>> {
    std::thread::spawn(move || {
        let mut lines = Vec::new();
        for client in listener.incoming() {
            let mut client = BufReader::new(client.expect("it is connected"));
            let mut line = String::new();
            while client.read_line(&mut line).expect("it is text") > 0 {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
                match lines.len() {
                    2 => break,
                    _ => client.get_mut().write_all(b"ok\n").expect("it is read"),
                }
                if lines.last().is_some_and(|line| line == "end") {
                    return lines;
                }
            }
        }
        lines
    })
}

fn log_line(client: &str) -> String {
    format!("{client} - - [25/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 10")
}

#[test]
fn pipeline_sends_each_line_to_the_server() {
    let root = tempfile::tempdir().expect("there is room for temporary files");
    let (log, lost) = (root.path().join("log"), root.path().join("lost"));
    let (a, b) = (log_line("a"), log_line("b"));
    fs::write(&log, format!("{a}\n{b}\nhello\n{a}\n")).expect("it can be written");
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let to = listener.local_addr().expect("it listens");
    let sink = sink(listener);
    let graph = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/pipeline/pipeline.weave"
    );
    let mut command = example("pipeline");
    let command = command.args(["run", graph, "--to", &to.to_string(), "--log"]);
    let (output, _) = run(command.arg(&log).arg("--lost").arg(&lost));
    assert!(output.status.success(), "{output:?}");
    let (to_text, lost_text) = (to.to_string(), lost.display().to_string());
    let options = ["--tcp", "true", "--to", &to_text, "--lost", &lost_text];
    let (server, address) = listening("pipeline", &options);
    let mut client = TcpStream::connect(address).expect("it listens");
    writeln!(client, "{b}").expect("it is read");
    client.shutdown(Shutdown::Write).expect("it is connected");
    let mut end = Vec::new();
    client.read_to_end(&mut end).expect("it ends well");
    interrupt(server);
    let mut last = TcpStream::connect(to).expect("it listens");
    writeln!(last, "end").expect("it is read");
    let mut lines = sink.join().expect("the server is well");
    lines.sort_unstable();
    // The line at which the server hung up has come twice.
    lines.dedup();
    let [one, two] = ["1 10", "2 20"];
    let expected = [
        format!("{one} {a}"),
        format!("{one} {b}"),
        format!("{two} {a}"),
        "end".to_owned(),
    ];
    assert_eq!(lines, expected);
    let lost = fs::read_to_string(lost).expect("it was written");
    assert_eq!(lost, "Message(\"hello\")\n");
}

#[test]
fn pipeline_keeps_lines_for_a_server_that_is_gone() {
    let root = tempfile::tempdir().expect("there is room for temporary files");
    let (log, lost) = (root.path().join("log"), root.path().join("lost"));
    fs::write(&log, log_line("a")).expect("it can be written");
    let (_socket, port) = crate::refusing();
    let to = format!("127.0.0.1:{port}");
    let graph = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/pipeline/pipeline.weave"
    );
    let mut command = example("pipeline");
    let command = command.args(["run", graph, "--to", &to, "--attempts", "2", "--log"]);
    let (output, _) = run(command.arg(&log).arg("--lost").arg(&lost));
    assert!(output.status.success(), "{output:?}");
    let lost = fs::read_to_string(lost).expect("it was written");
    let is_there = lost.starts_with("Attempt {") && lost.contains("failures: 2");
    assert!(is_there && lost.lines().count() == 1, "{lost}");
}

#[test]
fn the_graphs_are_short() {
    for (name, weave, rust) in [("chat", 60, 200), ("pipeline", 60, 200)] {
        assert!(lines_of(&format!("{name}/{name}.weave")) <= weave);
        assert!(lines_of(&format!("{name}/main.rs")) <= rust);
    }
}

/// The guide counts lines as the Aspen paper does: without empty ones and comments.
#[test]
fn the_guide_counts_the_lines_of_the_graphs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = fs::read_to_string(root.join("docs/guide/graphs.md")).expect("the guide");
    let examples = [
        ("pipeline", "crates/tussah/examples/pipeline"),
        ("chat", "crates/tussah/examples/chat"),
        ("small_web", "crates/tussah-services/examples/small_web"),
    ];
    for (name, folder) in examples {
        let count = |file: &str| {
            let text = fs::read_to_string(root.join(folder).join(file)).expect("its source");
            let lines = text.lines().map(str::trim);
            let code = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
            code.count()
        };
        let end = format!(
            "| {} | {} |",
            count(&format!("{name}.weave")),
            count("main.rs")
        );
        let begin = format!("| `{name}` |");
        let rows = guide.lines().filter(|line| line.starts_with(&begin));
        let rows: Vec<_> = rows.collect();
        assert!(!rows.is_empty(), "{name}");
        assert!(rows.iter().all(|row| row.ends_with(&end)), "{name}: {end}");
    }
}

/// The test of the example runs here, too.
#[path = "../../examples/key_value.rs"]
#[allow(dead_code)]
mod key_value;

#[test]
fn the_guide_shows_the_server() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).expect("it is there");
    let program = read("examples/key_value.rs");
    let (_, program) = program.split_once("\n\n").expect("comments come first");
    assert!(read("../../docs/guide/tcp-server.md").contains(program));
}

/// Starts the server of the guide, and reads its address.
fn start_key_value() -> (Child, BufReader<ChildStdout>, SocketAddr) {
    let mut server = example("key_value");
    let mut server = server
        .arg("127.0.0.1:0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the example starts");
    let mut output = BufReader::new(server.stdout.take().expect("it is piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("it tells its address");
    let address = line.trim_start_matches("listening on ").trim();
    let address = address.parse().expect("an address");
    (server, output, address)
}

/// Sends a request to the server of the guide, and returns its answer.
fn ask(client: &mut BufReader<TcpStream>, request: &str) -> String {
    let stream = client.get_mut();
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    client.read_line(&mut answer).expect("it answers");
    answer
}

#[test]
fn the_server_answers_lines_and_ends_in_order() {
    let (mut server, mut output, address) = start_key_value();
    let connect = || TcpStream::connect(address).expect("it listens");
    let mut client = BufReader::new(connect());
    let mut ask = |request| ask(&mut client, request);
    assert_eq!(ask("get color\n"), "no such key\n");
    assert_eq!(ask("set color light blue\r\n"), "ok\n");
    assert_eq!(ask("get color\n"), "light blue\n");
    assert_eq!(ask("set color \n"), "ok\n");
    assert_eq!(ask("get color\n"), "\n");
    assert!(ask("get\n").starts_with("expected"));
    let mut greedy = connect();
    greedy.write_all(&[b'x'; 1024]).expect("it reads");
    assert_eq!(greedy.read(&mut [0]).ok(), Some(0));

    // The client is connected, and sends nothing.
    signal(&server, rustix::process::Signal::INT);
    assert_eq!(ask(""), "");
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, "stopping (signal again to quit now)\nstopped\n");
    assert!(server.wait().expect("it ends").success());
    let mut errors = String::new();
    let stderr = server.stderr.as_mut().expect("it is piped");
    stderr.read_to_string(&mut errors).expect("text");
    let errors = complaints(&errors);
    assert!(
        errors.ends_with(": a line is too long, or has no end\n") && errors.lines().count() == 1,
        "{errors}"
    );
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    let (mut server, mut output, address) = start_key_value();
    let mut client = BufReader::new(TcpStream::connect(address).expect("it listens"));
    let set = format!("set long {}\n", "x".repeat(1000));
    assert_eq!(ask(&mut client, &set), "ok\n");

    // This client reads no answers, so the server has to wait for it.
    let mut flood = TcpStream::connect(address).expect("it listens");
    let flood = std::thread::spawn(move || {
        let mut requests = (0_u64..).map(|number| format!("set number {number}\nget long\n"));
        let _sent = requests.all(|request| flood.write_all(request.as_bytes()).is_ok());
    });
    let (mut number, mut repeats) = (String::new(), 0);
    while repeats < 5000 {
        let now = ask(&mut client, "get number\n");
        let is_same = now == number && now != "no such key\n";
        repeats = if is_same { repeats + 1 } else { 0 };
        number = now;
    }

    signal(&server, rustix::process::Signal::INT);
    let mut line = String::new();
    output.read_line(&mut line).expect("text");
    assert_eq!(line, "stopping (signal again to quit now)\n");
    signal(&server, rustix::process::Signal::TERM);
    assert_eq!(server.wait().expect("it ends").code(), Some(1));
    flood.join().expect("a write fails");
}
