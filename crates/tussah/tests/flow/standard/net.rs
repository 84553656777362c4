//! The modules for networks, with sockets of the standard library as clients.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tussah::flow::{AsyncOut, Flow, Out, Params, module};
use tussah::modules::Message;

use super::{Given, Notes, address, all, graph, messages, wait_for};
use crate::runtime;

/// Answers with the number of the message in its flow, and the message.
struct Number(Notes);

#[module]
impl Number {
    fn init(notes: Notes) -> Self {
        Self(notes)
    }

    fn run(&self, message: Message, number: &mut u64, out: &impl Out<Message>) {
        *number += 1;
        let text = format!("{number}: {}", message.text());
        out.send(Message::new(message.peer, text));
    }

    fn end(&self, number: u64, flow: &Flow) {
        assert!(flow.key().is_some());
        self.0.add(format!("ended after {number}"));
    }
}

fn params(notes: &Notes, ends: &Notes) -> Params {
    Params::new()
        .typed("to", notes.clone())
        .typed("done", ends.clone())
}

/// Runs a service on two workers while `clients` talks to it, and then stops it. Returns the notes
/// of the ends of flows.
#[track_caller]
fn serve(module: &str, reply: &str, clients: impl FnOnce(SocketAddr) + Send + 'static) -> Notes {
    let text = format!(
        "use TcpListen, UdpListen, Number, Reply, Note
        graph Service(to: Notes, done: Notes) {{
          clients = {module}
          number  = Number(done)
          reply   = {reply}
          note    = Note(to)
          clients -> number -> reply
          clients.listening -> note
        }}"
    );
    let (notes, ends) = (Notes::default(), Notes::default());
    let modules = all().with::<Number>("Number");
    let graph = graph(&text, &modules, &params(&notes, &ends));
    runtime(2).block_on(async {
        let running = graph.start().expect("the port is free");
        let address = address(&notes).await;
        let clients = tussah::spawn_blocking(move || clients(address));
        clients.await.expect("the clients got what they expect");
        // Flows that have not ended by then end silently.
        running.stop_within(Duration::from_secs(600)).await;
    });
    ends
}

const LINES: &str = "TcpListen(\"127.0.0.1:0\")";

#[test]
fn each_connection_is_a_flow_and_gets_its_replies() {
    let ends = serve(LINES, "Reply()", |address| {
        let connect = |_| TcpStream::connect(address).expect("it listens");
        let mut clients: Vec<_> = (0..5).map(connect).collect();
        for piece in ["one\ntw", "o\r\n", "\nfour\n", "no end"] {
            for client in &mut clients {
                client.write_all(piece.as_bytes()).expect("it is read");
            }
        }
        for mut client in clients {
            client.shutdown(Shutdown::Write).expect("it is connected");
            let mut text = String::new();
            client.read_to_string(&mut text).expect("it ends well");
            assert_eq!(text, "1: one\n2: two\n3: \n4: four\n5: no end\n");
        }
    });
    assert_eq!(ends.take(), ["ended after 5"; 5]);
}

#[test]
fn a_reply_that_was_sent_is_reported_in_its_flow() {
    let text = "
        use TcpListen, Reply, Number, Note
        graph Echo(to: Notes, done: Notes) {
          clients = TcpListen(\"127.0.0.1:0\")
          reply   = Reply()
          number  = Number(done)
          note    = Note(to)
          other   = Note(to)
          clients -> reply
          clients.listening -> note
          reply.sent -> number -> other
        }";
    let notes = Notes::default();
    let modules = all().with::<Number>("Number");
    let graph = graph(text, &modules, &params(&notes, &Notes::default()));
    runtime(2).block_on(async {
        let running = graph.start().expect("the port is free");
        let address = address(&notes).await;
        let clients = [(); 2].map(|()| TcpStream::connect(address).expect("it listens"));
        for mut client in &clients {
            client.write_all(b"one\ntwo\n").expect("it is read");
        }
        wait_for(&notes, 5).await;
        running.stop().await;
    });
    let expected = ["1: one", "1: one", "2: two", "2: two"].map(|it| format!("Message({it:?})"));
    assert_eq!(notes.sorted()[1..], expected);
}

/// The present number of messages between two places in a graph, and the largest number.
#[derive(Default)]
struct Counts([AtomicUsize; 2]);

/// Counts the messages that enter or leave a part of a graph.
struct Within(Arc<Counts>, isize);

#[module]
impl Within {
    fn init(counts: Arc<Counts>, leaves: bool) -> Self {
        Self(counts, if leaves { -1 } else { 1 })
    }

    fn run(&self, message: Message, out: &impl Out<Message>) {
        let [within, largest] = &self.0.0;
        let before = within.fetch_add(self.1.cast_unsigned(), Ordering::Relaxed);
        largest.fetch_max(before, Ordering::Relaxed);
        out.send(message);
    }
}

#[test]
fn a_connection_is_read_on_demand() {
    const LINES: usize = 200;
    let text = "
        use TcpListen, TcpDemand, Within, Reply, Note
        graph Service(counts: Arc<Counts>, to: Notes) {
          clients = TcpListen(\"127.0.0.1:0\", on_demand: true)
          enters  = Within(counts, leaves: false)
          reply   = Reply()
          leaves  = Within(counts, leaves: true)
          demand  = TcpDemand()
          note    = Note(to)
          clients -> enters -> reply
          reply.sent -> leaves -> demand
          clients.listening -> note
        }";
    let (notes, counts) = (Notes::default(), Arc::new(Counts::default()));
    let params = Params::new().typed("to", notes.clone());
    let params = params.typed("counts", Arc::clone(&counts));
    let graph = graph(text, &all().with::<Within>("Within"), &params);
    runtime(2).block_on(async {
        let running = graph.start().expect("the port is free");
        let address = address(&notes).await;
        let client = tussah::spawn_blocking(move || {
            let mut client = TcpStream::connect(address).expect("it listens");
            let lines = "line\n".repeat(LINES);
            client.write_all(lines.as_bytes()).expect("it is read");
            client.shutdown(Shutdown::Write).expect("it is connected");
            let mut text = String::new();
            client.read_to_string(&mut text).expect("it ends well");
            assert_eq!(text, lines);
        });
        client.await.expect("the client got its lines");
        running.stop().await;
    });
    let [_, largest] = &counts.0;
    // A message that leaves counts itself.
    assert_eq!(largest.load(Ordering::Relaxed), 1);
}

#[test]
fn a_connection_that_no_one_can_demand_is_closed() {
    let text = "
        use TcpListen, TcpDemand, Filter, Logger, Note
        graph Service(to: Notes) {
          clients = TcpListen(\"127.0.0.1:0\", on_demand: true)
          more    = Filter(field: \"text\", is: \"more\")
          demand  = TcpDemand()
          lost    = Logger()
          note    = Note(to)
          clients -> more -> demand
          more.rest -> lost
          clients.listening -> note
        }";
    let notes = Notes::default();
    let graph = graph(text, &all(), &Params::new().typed("to", notes.clone()));
    runtime(2).block_on(async {
        let running = graph.start().expect("the port is free");
        let address = address(&notes).await;
        let client = tussah::spawn_blocking(move || {
            let mut client = TcpStream::connect(address).expect("it listens");
            client.write_all(b"one\ntwo\n").expect("it is read");
            let mut text = String::new();
            client.read_to_string(&mut text).expect("it ends well");
            assert_eq!(text, "");
        });
        client.await.expect("the connection ended");
        running.stop().await;
    });
}

#[test]
fn a_source_that_no_module_can_demand_fails() {
    let text = "
        use TcpListen, Logger
        graph Service() {
          clients = TcpListen(\"127.0.0.1:0\", on_demand: true)
          log     = Logger()
          clients -> log
        }";
    let graph = graph(text, &all(), &Params::new());
    let failures = runtime(1).block_on(async {
        let running = graph.start().expect("the port is free");
        running.drain().await;
        running.failures()
    });
    let failures = format!("{failures:?}");
    assert!(failures.contains("no `TcpDemand` asks"), "{failures}");
}

#[test]
fn a_demand_for_a_connection_without_demand_fails() {
    let ends = Notes::default();
    let text = "
        use TcpListen, TcpDemand, Note
        graph Service(to: Notes) {
          clients = TcpListen(\"127.0.0.1:0\")
          demand  = TcpDemand()
          failed  = Note(to)
          note    = Note(to)
          clients -> demand
          demand.failed -> failed
          clients.listening -> note
        }";
    let graph = graph(text, &all(), &Params::new().typed("to", ends.clone()));
    runtime(1).block_on(async {
        let running = graph.start().expect("the port is free");
        let mut client = TcpStream::connect(address(&ends).await).expect("it listens");
        client.write_all(b"one\n").expect("it is read");
        wait_for(&ends, 2).await;
        running.stop().await;
    });
    let expected = r#"Attempt { item: Message("one"), failures: 1, why: "the connection is read without demand: expected `on_demand: true`" }"#;
    assert_eq!(ends.take()[1], expected);
}

/// Demands the message after `"twice"` two times, and no message after `"last"`.
struct Demands(Notes);

#[module]
impl Demands {
    fn init(notes: Notes) -> Self {
        Self(notes)
    }

    async fn run(&self, message: Message, out: &impl AsyncOut<Message>) {
        let text = message.text().into_owned();
        self.0.add(&text);
        if text == "twice" {
            out.send(message.clone()).await;
            // The connection waits for its next message by then.
            tussah::time::sleep(Duration::from_millis(50)).await;
            out.send(message).await;
            self.0.add("demanded");
        }
    }
}

#[test]
fn a_demand_before_an_earlier_one_is_met_changes_nothing() {
    let text = "
        use TcpListen, TcpDemand, Demands, Note
        graph Service(to: Notes, seen: Notes) {
          clients = TcpListen(\"127.0.0.1:0\", on_demand: true, connections: 1)
          demands = Demands(seen)
          demand  = TcpDemand()
          note    = Note(to)
          clients -> demands -> demand
          clients.listening -> note
        }";
    let (notes, seen) = (Notes::default(), Notes::default());
    let params = Params::new().typed("to", notes.clone());
    let params = params.typed("seen", seen.clone());
    let graph = graph(text, &all().with::<Demands>("Demands"), &params);
    runtime(2).block_on(async {
        let running = graph.start().expect("the port is free");
        let address = address(&notes).await;
        for rest in ["", "last\nnever read\n"] {
            let before = seen.0.lock().len();
            let mut client = TcpStream::connect(address).expect("it listens");
            client.write_all(b"twice\n").expect("it is read");
            wait_for(&seen, before + 2).await;
            // The second demand is in the next module by then.
            tussah::time::sleep(Duration::from_millis(50)).await;
            let ended = tussah::spawn_blocking(move || {
                client.write_all(rest.as_bytes()).expect("it is open");
                client.shutdown(Shutdown::Write).expect("it is open");
                let limit = Some(Duration::from_secs(5));
                client.set_read_timeout(limit).expect("it is not zero");
                client.read(&mut [0])
            });
            let ended = ended.await.expect("it does not panic");
            assert_eq!(ended.expect("it is closed"), 0, "after {rest:?}");
        }
        running.stop().await;
    });
    let expected = ["twice", "demanded", "twice", "demanded", "last"];
    assert_eq!(seen.take(), expected);
}

#[test]
fn frames_have_their_length_in_front() {
    let framed = "TcpListen(\"127.0.0.1:0\", framing: \"lengths\")";
    serve(framed, "Reply()", |address| {
        let mut client = TcpStream::connect(address).expect("it listens");
        client
            .write_all(b"\0\0\0\x02a\n\0\0\0\0")
            .expect("it is read");
        let mut reply = [0; 16];
        client.read_exact(&mut reply).expect("it answers");
        assert_eq!(&reply, b"\0\0\0\x051: a\n\0\0\0\x032: ");
    });
}

#[test]
fn a_connection_with_a_line_that_is_too_long_is_closed() {
    let short = "TcpListen(\"127.0.0.1:0\", longest: 10 B)";
    let ends = serve(short, "Reply()", |address| {
        let mut client = TcpStream::connect(address).expect("it listens");
        client.write_all(b"short\n").expect("it is read");
        let mut reply = [0; 9];
        client.read_exact(&mut reply).expect("it answers");
        let is_closed = (0..).any(|_| client.write_all(&[b'x'; 100]).is_err());
        assert!(is_closed);
        // Others are served.
        let mut client = TcpStream::connect(address).expect("it listens");
        client.write_all(b"short\n").expect("it is read");
        client.read_exact(&mut reply).expect("it answers");
        assert_eq!(&reply, b"1: short\n");
    });
    assert!(ends.take().contains(&"ended after 1".to_owned()));
}

#[test]
fn a_connection_too_many_waits() {
    let one = "TcpListen(\"127.0.0.1:0\", connections: 1)";
    serve(one, "Reply()", |address| {
        let mut first = TcpStream::connect(address).expect("it listens");
        let mut second = TcpStream::connect(address).expect("the system accepts it");
        second.write_all(b"second\n").expect("the system takes it");
        first.write_all(b"first\n").expect("it is read");
        let mut reply = [0; 9];
        first.read_exact(&mut reply).expect("it answers");
        second.set_nonblocking(true).expect("it is a socket");
        let error = second.read(&mut reply).expect_err("nobody has read it");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        drop(first);
        second.set_nonblocking(false).expect("it is a socket");
        second.read_exact(&mut reply).expect("it answers");
        assert_eq!(&reply, b"1: second");
    });
}

#[test]
fn a_client_that_reads_nothing_is_cut_off() {
    serve(LINES, "Reply(patience: 0 s)", |address| {
        let mut lazy = TcpStream::connect(address).expect("it listens");
        let line = [&[b'x'; 60_000][..], b"\n"].concat();
        let is_cut_off = (0..).any(|_| lazy.write_all(&line).is_err());
        assert!(is_cut_off);
        let mut other = TcpStream::connect(address).expect("it listens");
        other.write_all(b"one\n").expect("it is read");
        let mut reply = [0; 7];
        other.read_exact(&mut reply).expect("it answers");
        assert_eq!(&reply, b"1: one\n");
    });
}

/// Waits for a permission at each message.
struct Gate(Arc<tussah::sync::Semaphore>);

#[module]
impl Gate {
    fn init(gate: Arc<tussah::sync::Semaphore>) -> Self {
        Self(gate)
    }

    async fn run(&mut self, message: Message, out: &impl tussah::flow::AsyncOut<u64>) {
        let _permit = self.0.acquire().await;
        out.send(message.bytes.len() as u64).await;
    }
}

#[test]
fn a_connection_is_read_only_while_there_is_room() {
    let text = "
        use TcpListen, Gate, Counter, Note
        graph Service(key: Arc<Semaphore>, to: Notes) {
          clients = TcpListen(\"127.0.0.1:0\")
          gate    = Gate(key)
          note    = Note(to)
          other   = Note(to)
          clients -> gate -> note
          clients.listening -> other
        }";
    let (notes, gate) = (Notes::default(), Arc::new(tussah::sync::Semaphore::new(0)));
    let modules = all().with::<Gate>("Gate");
    let params = Params::new().typed("to", notes.clone());
    let graph = graph(text, &modules, &params.typed("key", gate.clone()));
    // More than all buffers on the way hold: 1,024 items in a queue, and those of the system.
    const LINES: usize = 5_000;
    runtime(2).block_on(async {
        let running = graph.start().expect("the port is free");
        let address = address(&notes).await;
        let written = tussah::spawn_blocking(move || {
            let client = TcpStream::connect(address).expect("it listens");
            let line = [&[b'x'; 59_999][..], b"\n"].concat();
            let all = line.repeat(LINES);
            client.set_nonblocking(true).expect("it is a socket");
            // The reader is stopped when nothing more fits for a while.
            let (mut written, mut full) = (0, 0);
            while written < all.len() && full < 1000 {
                match (&client).write(&all[written..]) {
                    Ok(len) => (written, full) = (written + len, 0),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        full += 1;
                        std::thread::yield_now();
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            (client, written, all)
        });
        let (client, written, all) = written.await.expect("the client is well");
        assert!(written < all.len(), "{written}");
        gate.add_permits(1);
        let rest = tussah::spawn_blocking(move || {
            client.set_nonblocking(false).expect("it is a socket");
            (&client).write_all(&all[written..]).expect("it is read");
        });
        rest.await.expect("the client is well");
        wait_for(&notes, LINES + 1).await;
        running.stop().await;
    });
    assert!(notes.take()[1..].iter().all(|note| note == "59999"));
}

/// Starts a graph with a free port and one that is taken, and returns whether the error is about
/// the second one, and the first one is free again.
fn stops_the_whole_graph() -> bool {
    let (taken, free) = (
        TcpListener::bind("127.0.0.1:0").expect("there is a free port"),
        TcpListener::bind("127.0.0.1:0").expect("there is a free port"),
    );
    let address = |listener: &TcpListener| listener.local_addr().expect("it listens").to_string();
    let (taken_at, free_at) = (address(&taken), address(&free));
    drop(free);
    let text = format!(
        "use TcpListen, Reply
        graph Service() {{
          first  = TcpListen({free_at:?})
          second = TcpListen({taken_at:?})
          reply  = Reply()
          first -> reply
          second -> reply
        }}"
    );
    let graph = graph(&text, &all(), &Params::new());
    let error = runtime(1).block_on(async { graph.start().map(|_| ()) });
    let error = error.expect_err("a port is taken").to_string();
    assert!(error.contains("in use"), "{error}");
    error.starts_with("the instance `second` at test.weave:4:11 could not be made: ")
        && error.contains(&taken_at)
        && TcpStream::connect(free_at).is_err()
}

#[test]
fn a_port_that_is_taken_stops_the_whole_graph() {
    // Another program may take the free port, before or after the graph has it.
    assert!((0..5).any(|_| stops_the_whole_graph()));
}

/// Answers each line of one connection after the other, and notes it.
fn server(listener: TcpListener, lines: Arc<Mutex<Vec<String>>>) {
    for client in listener.incoming() {
        let client = client.expect("it is connected");
        let reader = BufReader::new(client.try_clone().expect("it is open"));
        for line in reader.lines() {
            let line = line.expect("it is text");
            lines.lock().push(line.clone());
            if line == "hang up" {
                break;
            }
            (&client).write_all(b"ok\n").expect("it is read");
            if line == "end" {
                return;
            }
        }
    }
}

#[test]
fn messages_are_sent_again_after_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it listens").to_string();
    let text = format!(
        "use Items, TcpSend, Retry, Note
        graph Client(given: Given, to: Notes) {{
          items  = Items(given)
          server = TcpSend({address:?})
          retry  = Retry(attempts: 2, first: 1 ms)
          answer = Note(to)
          sent   = Note(to)
          lost   = Note(to)
          items -> server -> answer
          server.sent -> sent
          server.failed -> retry
          server.again_failed -> retry
          retry -> server.again via queue(10, when_full: shed)
          retry.lost -> lost
        }}"
    );
    let notes = Notes::default();
    let items = messages(&["one", "hang up", "two"]);
    let params = Params::new().typed("given", Given::new(items));
    let graph = graph(&text, &all(), &params.typed("to", notes.clone()));
    let lines = Arc::<Mutex<Vec<String>>>::default();
    let noted = lines.clone();
    let server = std::thread::spawn(move || server(listener, noted));
    runtime(2).block_on(async {
        let running = graph.start().expect("it is whole");
        wait_for(&notes, 5).await;
        running.drain().await;
    });
    let mut last = TcpStream::connect(&address).expect("the server waits for it");
    last.write_all(b"end\n").expect("it is read");
    server.join().expect("the server is well");
    let mut seen = std::mem::take(&mut *lines.lock());
    seen.sort();
    assert_eq!(seen, ["end", "hang up", "hang up", "one", "two"]);
    let notes = notes.sorted();
    let lost = r#"Attempt { item: Message("hang up"), failures: 2, why: "the server closed the connection" }"#;
    let ok = r#"Message("ok")"#;
    let sent = [r#"Message("one")"#, r#"Message("two")"#];
    assert_eq!(notes, [lost, ok, ok, sent[0], sent[1]]);
}

#[test]
fn datagrams_are_answered_from_the_same_socket() {
    serve("UdpListen(\"127.0.0.1:0\")", "Reply()", |address| {
        let client = UdpSocket::bind("127.0.0.1:0").expect("there is a free port");
        client.connect(address).expect("it has an address");
        // A lost answer fails the test instead of hanging it.
        let patience = Some(Duration::from_secs(60));
        client.set_read_timeout(patience).expect("it is a socket");
        for (number, text) in (1..).zip(["one", "", "three"]) {
            client.send(text.as_bytes()).expect("the system takes it");
            let mut reply = [0; 100];
            let len = client.recv(&mut reply).expect("it answers");
            assert_eq!(reply[..len], *format!("{number}: {text}").as_bytes());
        }
    });
}

#[test]
fn messages_are_sent_as_datagrams() {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("there is a free port");
    let address = receiver.local_addr().expect("it is bound").to_string();
    let text = format!(
        "use Items, UdpSend, Note
        graph Client(given: Given, to: Notes) {{
          items = Items(given)
          send  = UdpSend({address:?})
          sent  = Note(to)
          lost  = Note(to)
          items -> send
          send.sent -> sent
          send.failed -> lost
        }}"
    );
    let notes = Notes::default();
    let mut items = messages(&["one"]);
    items.push(Message::new(items[0].peer.clone(), vec![0; 70_000]));
    let params = Params::new().typed("given", Given::new(items));
    let graph = graph(&text, &all(), &params.typed("to", notes.clone()));
    runtime(1).block_on(async { graph.start().expect("it is whole").drain().await });
    let mut buffer = [0; 100];
    let len = receiver.recv(&mut buffer).expect("it was sent");
    assert_eq!(&buffer[..len], b"one");
    let notes = notes.sorted();
    assert_eq!((notes.len(), notes[1].as_str()), (2, r#"Message("one")"#));
    assert!(notes[0].contains("Message too long"), "{notes:?}");
}
