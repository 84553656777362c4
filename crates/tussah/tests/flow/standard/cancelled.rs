//! Messages and files that a graph no longer sends, because it stops.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tussah::flow::{Args, Graph, Out, Params, module};
use tussah::modules::{Attempt, FilePart, Message, Peer, Reply};

use super::{Note, Notes, address, all, graph};
use crate::runtime;

/// The peers of messages.
#[derive(Clone, Default)]
struct Peers(Arc<Mutex<Vec<Peer>>>);

/// More bytes than all buffers on the way to a client hold.
const LONG: usize = 64 << 20;

/// Keeps the peer of each message, and answers with a long message or a part of a file.
struct Keep(Peers);

#[module]
impl Keep {
    fn init(peers: Peers) -> Self {
        Self(peers)
    }

    fn run(&self, message: Message, out: &impl Out<Message>, part: &impl Out<FilePart>) {
        self.0.0.lock().push(message.peer.clone());
        let text = message.text().into_owned();
        match &*text {
            "message" => out.send(Message::new(message.peer, vec![0; LONG])),
            path => part.send(FilePart::whole(message.peer, path)),
        }
    }
}

/// Stops a graph while it sends 64 MiB to a client, and sends a message to the peer afterwards.
/// Returns the notes of what could not be sent, and the number of bytes that the client got.
fn cancel(request: &'static str, root: &Path) -> (Vec<String>, usize) {
    let text = format!(
        "use TcpListen, Keep, Reply, SendFile, Note
        graph Service(peers: Peers, to: Notes) {{
          clients = TcpListen(\"127.0.0.1:0\", framing: \"lengths\")
          keep    = Keep(peers)
          reply   = Reply(patience: 1 min)
          send    = SendFile({root:?}, patience: 1 min)
          note    = Note(to)
          clients -> keep -> reply
          keep.part -> send
          clients.listening -> note
        }}"
    );
    let (notes, lost, peers) = (Notes::default(), Notes::default(), Peers::default());
    let params = Params::new().typed("to", notes.clone());
    let params = params.typed("peers", peers.clone());
    let service = graph(&text, &all().with::<Keep>("Keep"), &params);
    let mut next = Graph::new("next");
    let added = next.add::<Reply>("reply", Args::new());
    let added = added.and_then(|()| next.add::<Note<Attempt<Message>>>("lost", lost.args()));
    let connected = added.and_then(|()| next.connect("reply.failed", "lost"));
    connected.expect("the names are right");
    let got = runtime(2).block_on(async {
        let running = service.start().expect("the port is free");
        let address = address(&notes).await;
        let client = tussah::spawn_blocking(move || {
            let mut client = TcpStream::connect(address).expect("it listens");
            let len = u32::try_from(request.len()).expect("it is short");
            let frame = [&len.to_be_bytes()[..], request.as_bytes()].concat();
            client.write_all(&frame).expect("it is read");
            // A part of the answer, so that it is being sent.
            client.read_exact(&mut [0; 5]).expect("it answers");
            client
        });
        let mut client = client.await.expect("the client is well");
        running.stop_within(Duration::ZERO).await;
        drop(running);
        let got = tussah::spawn_blocking(move || {
            let mut rest = Vec::new();
            // This may fail, because the service closes the connection.
            let _ = client.read_to_end(&mut rest);
            rest.len()
        });
        let peer = peers.0.lock().pop().expect("it is kept");
        let running = next.start().expect("it is whole");
        let reply = running.input("reply").expect("it exists");
        reply.send(Message::new(peer, "next")).await;
        running.drain().await;
        got.await.expect("the client is well")
    });
    (lost.take(), got)
}

/// The client would take the next message for the rest of the first one.
#[test]
fn a_peer_is_cut_off_if_its_message_or_file_is_cancelled() {
    let root = tempfile::tempdir().expect("there is room for temporary files");
    let file = std::fs::File::create(root.path().join("file")).expect("it can be created");
    file.set_len(LONG as u64).expect("it is sparse");
    for request in ["message", "file"] {
        let (lost, got) = cancel(request, root.path());
        assert_eq!(lost.len(), 1, "{request}: {lost:?}");
        assert!(got < LONG, "{request}: {got} bytes");
    }
}
