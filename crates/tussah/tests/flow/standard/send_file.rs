//! The module that sends files, with sockets of the standard library as clients.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use tussah::flow::{Flow, Out, Params, module};
use tussah::modules::{Attempt, FilePart, Message, Peer};

use super::{Given, Notes, address, all, graph, items, notes, wait_for};
use crate::runtime;

/// Makes parts of files of lines such as `name 5 100`.
#[derive(Default)]
struct Parts;

#[module]
impl Parts {
    // The state is empty: it keeps the lines of a flow in order.
    fn run(&self, line: Message, _order: &mut (), out: &impl Out<FilePart>) {
        let text = line.text().into_owned();
        let mut words = text.split(' ');
        let mut part = FilePart::whole(line.peer, words.next().expect("a name"));
        let mut number = || Some(words.next()?.parse().expect("a number"));
        part.from = number().unwrap_or(0);
        part.len = number();
        out.send(part);
    }
}

/// Notes the ends of parts.
struct Ends(Notes);

#[module]
impl Ends {
    fn init(to: Notes) -> Self {
        Self(to)
    }

    fn run(&mut self, part: FilePart, flow: &Flow) {
        self.add("sent", &part, flow, "");
    }

    #[port]
    fn lost(&mut self, Attempt { item, why, .. }: Attempt<FilePart>, flow: &Flow) {
        self.add("lost", &item, flow, &why);
    }
}

impl Ends {
    fn add(&self, end: &str, part: &FilePart, flow: &Flow, why: &str) {
        let FilePart {
            path, from, len, ..
        } = part;
        assert!(flow.key().is_some());
        let len = len.map_or("all".to_owned(), |len| len.to_string());
        self.0
            .add(format!("{end} {} {from} {len}: {why}", path.display()));
    }
}

/// Runs a file server while `client` talks to it, until it has noted `count` ends. Returns them.
#[track_caller]
fn serve(
    (framing, send): (&str, &str),
    root: &Path,
    count: usize,
    client: impl FnOnce(SocketAddr) + Send + 'static,
) -> Vec<String> {
    let text = format!(
        "use TcpListen, Parts, SendFile, Ends, Note
        graph Files(to: Notes, ended: Notes) {{
          clients = TcpListen(\"127.0.0.1:0\", framing: {framing:?})
          parts   = Parts()
          send    = SendFile({root:?}, {send})
          ends    = Ends(ended)
          note    = Note(to)
          clients -> parts -> send
          clients.listening -> note
          send.sent -> ends
          send.failed -> ends.lost
        }}"
    );
    let (notes, ends) = (Notes::default(), Notes::default());
    let modules = all().with::<Parts>("Parts").with::<Ends>("Ends");
    let params = Params::new().typed("to", notes.clone());
    let graph = graph(&text, &modules, &params.typed("ended", ends.clone()));
    runtime(2).block_on(async {
        let running = graph.start().expect("the port is free");
        let address = address(&notes).await;
        let client = tussah::spawn_blocking(move || client(address));
        client.await.expect("the client got what it expects");
        wait_for(&ends, count).await;
        running.stop().await;
    });
    ends.take()
}

fn root() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().expect("there is room for temporary files");
    let path = root.path().to_owned();
    (root, path)
}

fn connect(address: SocketAddr, request: &[u8]) -> TcpStream {
    let mut client = TcpStream::connect(address).expect("it listens");
    client.write_all(request).expect("it is read");
    client
}

const LINES: (&str, &str) = ("lines", "patience: 1 min");

#[test]
fn files_and_parts_of_files_are_sent_in_order() {
    let (_root, root) = root();
    let large: Vec<u8> = (0..1_000_000_u32).map(|at| (at / 1000) as u8).collect();
    fs::write(root.join("large"), &large).expect("it can be written");
    fs::write(root.join("small"), "a small file\n").expect("it can be written");
    let expected = [&large[..], &large[100_000..300_000], b"small file\na"].concat();
    let ends = serve(LINES, &root, 5, move |address| {
        let request = "large\nlarge 100000 200000\nsmall 2\nsmall 0 1\nsmall 13\n";
        let mut client = connect(address, request.as_bytes());
        let mut bytes = vec![0; expected.len()];
        client.read_exact(&mut bytes).expect("they are sent");
        assert!(bytes == expected);
    });
    let expected = [
        "sent large 0 1000000: ",
        "sent large 100000 200000: ",
        "sent small 2 11: ",
        "sent small 0 1: ",
        "sent small 13 0: ",
    ];
    assert_eq!(ends, expected);
}

#[test]
fn a_file_is_one_frame_on_a_connection_with_lengths() {
    let (_root, root) = root();
    fs::write(root.join("file"), "content").expect("it can be written");
    // A frame has less than 4 GiB.
    let long = File::create(root.join("long")).expect("it can be created");
    long.set_len(1 << 32).expect("it is sparse");
    let ends = serve(("lengths", ""), &root, 3, |address| {
        let request = b"\0\0\0\x04file\0\0\0\x04long\0\0\0\x08file 3 2";
        let mut client = connect(address, request);
        let mut bytes = [0; 17];
        client.read_exact(&mut bytes).expect("they are sent");
        assert_eq!(&bytes, b"\0\0\0\x07content\0\0\0\x02te");
    });
    assert!(
        ends[1].ends_with("/long: the message has 4 GiB or more"),
        "{ends:?}"
    );
    assert_eq!([&ends[0], &ends[2]], ["sent file 0 7: ", "sent file 3 2: "]);
}

#[test]
fn a_connection_stays_open_if_nothing_was_sent() {
    let (_root, root) = root();
    fs::write(root.join("file"), "content").expect("it can be written");
    fs::create_dir(root.join("directory")).expect("it can be created");
    let pipe = root.join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("it can be created");
    let ends = serve(LINES, &root, 8, |address| {
        let wrong = "none\n../file\n/etc/passwd\ndirectory\npipe\nfile 8\nfile 3 5\nfile\n";
        let mut client = connect(address, wrong.as_bytes());
        let mut bytes = [0; 7];
        client.read_exact(&mut bytes).expect("it is sent");
        assert_eq!(&bytes, b"content");
    });
    let expected = [
        (
            "lost none 0 all: ",
            "/none: No such file or directory (os error 2)",
        ),
        ("lost ../file 0 all: ../file leads out of ", ""),
        ("lost /etc/passwd 0 all: /etc/passwd leads out of ", ""),
        (
            "lost directory 0 all: cannot send ",
            "/directory: it is not a regular file",
        ),
        (
            "lost pipe 0 all: cannot send ",
            "/pipe: it is not a regular file",
        ),
        (
            "lost file 8 all: cannot send ",
            "/file: it has 7 bytes, and the part ends at 8",
        ),
        (
            "lost file 3 5: cannot send ",
            "/file: it has 7 bytes, and the part ends at 8",
        ),
        ("sent file 0 7: ", ""),
    ];
    assert_eq!(ends.len(), expected.len(), "{ends:?}");
    for (end, (begin, why)) in ends.iter().zip(expected) {
        assert!(end.starts_with(begin) && end.ends_with(why), "{end}");
    }
}

/// Makes a file that is larger than all buffers between a server and its client.
fn huge(root: &Path) -> File {
    let file = File::create(root.join("huge")).expect("it can be created");
    file.set_len(64 << 20).expect("it is sparse");
    file.write_all_at(b"first", 0).expect("it can be written");
    file
}

#[test]
fn a_client_that_leaves_fails_its_file_alone() {
    let (_root, root) = root();
    huge(&root);
    let ends = serve(LINES, &root, 2, |address| {
        let mut leaves = connect(address, b"huge\n");
        let mut bytes = [0; 5];
        leaves.read_exact(&mut bytes).expect("it is sent");
        // With bytes that it has not read, so the server gets an error.
        drop(leaves);
        let mut stays = connect(address, b"huge 0 5\n");
        stays.read_exact(&mut bytes).expect("it is sent");
        assert_eq!(&bytes, b"first");
    });
    let is_lost = |end: &&String| end.starts_with("lost huge 0 all: cannot send ");
    assert_eq!(ends.iter().filter(is_lost).count(), 1, "{ends:?}");
    assert!(ends.contains(&"sent huge 0 5: ".to_owned()), "{ends:?}");
}

#[test]
fn a_client_that_reads_nothing_is_cut_off() {
    let (_root, root) = root();
    huge(&root);
    let lazy = ("lines", "patience: 0 s");
    let ends = serve(lazy, &root, 1, |address| {
        let mut lazy = connect(address, b"huge\n");
        let is_cut_off = (0..).any(|_| lazy.write_all(b"\n").is_err());
        assert!(is_cut_off);
    });
    let why = "65536 bytes were not sent within 0ns";
    assert!(
        ends[0].starts_with("lost huge 0 all: ") && ends[0].ends_with(why),
        "{ends:?}"
    );
}

#[test]
fn a_file_that_shrinks_ends_its_connection() {
    let (_root, root) = root();
    let file = huge(&root);
    let ends = serve(("lengths", "patience: 1 min"), &root, 1, move |address| {
        let mut client = connect(address, b"\0\0\0\x04huge");
        let mut bytes = [0; 9];
        client.read_exact(&mut bytes).expect("it is sent");
        assert_eq!(&bytes, b"\x04\0\0\0first");
        file.set_len(5).expect("it is open");
        let mut rest = Vec::new();
        // The connection ends before the frame does.
        let read = client.read_to_end(&mut rest);
        assert!(rest.len() < (64 << 20) - 5, "{read:?}, {}", rest.len());
    });
    let why = "/huge: it was truncated while its 67108864 bytes were sent";
    assert!(
        ends[0].starts_with("lost huge 0 all: ") && ends[0].ends_with(why),
        "{ends:?}"
    );
}

#[test]
fn only_connections_take_files() {
    let text = "
        use Items, SendFile, Note
        graph Files(given: Given, to: Notes) {
          items = Items(given)
          send  = SendFile()
          lost  = Note(to)
          items -> send
          send.failed -> lost
        }";
    let part = FilePart::whole(Peer::nobody(), "Cargo.toml");
    let noted = Notes::default();
    let params = Params::new().typed("given", Given::new(vec![part]));
    let modules = all()
        .and(items::<FilePart>())
        .and(notes::<Attempt<FilePart>>());
    let graph = graph(text, &modules, &params.typed("to", noted.clone()));
    runtime(1).block_on(async { graph.start().expect("it is whole").drain().await });
    let noted = noted.take();
    assert!(noted[0].contains("the peer has no connection"), "{noted:?}");
}
