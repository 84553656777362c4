//! A name server for the tests, by UDP and TCP, on OS threads of its own.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::str::FromStr as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use hickory_proto::op::{Message, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, MX, PTR, SOA, SRV, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};

/// A question that the server was asked.
#[derive(Clone, Debug)]
pub struct Asked {
    pub query: Query,
    pub id: u16,
    pub by_tcp: bool,
}

/// A message of the server.
#[derive(Clone, Debug)]
pub enum Reply {
    Bytes(Vec<u8>),
    /// From another port than the one that was asked; by UDP only.
    FromElsewhere(Vec<u8>),
    /// Closes the connection; by TCP only.
    Close,
}

type Answer = dyn Fn(&Asked) -> Vec<Reply> + Send + Sync;

/// Answers until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    answer: Box<Answer>,
    asked: Mutex<Vec<Asked>>,
    /// Told of each question, after it is written down and before it is answered.
    tell: Mutex<Option<mpsc::Sender<()>>>,
    stop: AtomicBool,
}

impl Server {
    pub fn new(answer: impl Fn(&Asked) -> Vec<Reply> + Send + Sync + 'static) -> Self {
        let (udp, tcp) = sockets();
        let address = udp.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            asked: Mutex::default(),
            tell: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let (of_udp, of_tcp) = (shared.clone(), shared.clone());
        let threads = vec![
            std::thread::spawn(move || of_udp.serve_udp(&udp)),
            std::thread::spawn(move || of_tcp.serve_tcp(&tcp)),
        ];
        Self {
            address,
            shared,
            threads,
        }
    }

    /// Answers from a list of records, "no such name" if there are none of that name.
    pub fn of_records(records: Vec<Record>) -> Self {
        Self::new(move |asked| vec![Reply::Bytes(bytes(&zone(asked, &records)))])
    }

    /// All questions so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().expect("no panic").clone()
    }

    pub fn count(&self) -> usize {
        self.asked().len()
    }

    /// Tells of each question from now on.
    pub fn tell(&self) -> mpsc::Receiver<()> {
        let (sender, receiver) = mpsc::channel();
        *self.shared.tell.lock().expect("no panic") = Some(sender);
        receiver
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        let wake =
            UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(&[], self.address));
        wake.expect("it can be woken");
        drop(TcpStream::connect(self.address));
        for thread in self.threads.drain(..) {
            thread.join().expect("the server does not panic");
        }
    }
}

impl Shared {
    fn note(&self, question: &[u8], by_tcp: bool) -> Vec<Reply> {
        let message = Message::from_vec(question).expect("the resolver asks well");
        let asked = Asked {
            query: message.queries[0].clone(),
            id: message.id,
            by_tcp,
        };
        self.asked.lock().expect("no panic").push(asked.clone());
        if let Some(tell) = &*self.tell.lock().expect("no panic") {
            let _ = tell.send(()); // the test may have heard enough
        }
        (self.answer)(&asked)
    }

    fn serve_udp(&self, socket: &UdpSocket) {
        let elsewhere = UdpSocket::bind("127.0.0.1:0").expect("another port");
        let mut buffer = [0; 4096];
        loop {
            // An error that a client has left behind by closing its socket.
            let Ok((len, client)) = socket.recv_from(&mut buffer) else {
                continue;
            };
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            for reply in self.note(&buffer[..len], false) {
                // The client may be gone.
                let _ = match reply {
                    Reply::Bytes(bytes) => socket.send_to(&bytes, client),
                    Reply::FromElsewhere(bytes) => elsewhere.send_to(&bytes, client),
                    Reply::Close => Ok(0),
                };
            }
        }
    }

    fn serve_tcp(self: &Arc<Self>, listener: &TcpListener) {
        let mut connections = Vec::new();
        for stream in listener.incoming() {
            if self.stop.load(Ordering::SeqCst) {
                break;
            }
            let Ok(stream) = stream else { continue };
            let shared = self.clone();
            connections.push(std::thread::spawn(move || shared.serve_stream(stream)));
        }
        for connection in connections {
            connection.join().expect("the server does not panic");
        }
    }

    /// Until the client goes away.
    fn serve_stream(&self, mut stream: TcpStream) {
        loop {
            let mut len = [0; 2];
            if stream.read_exact(&mut len).is_err() {
                return;
            }
            let mut question = vec![0; u16::from_be_bytes(len).into()];
            if stream.read_exact(&mut question).is_err() {
                return;
            }
            for reply in self.note(&question, true) {
                let Reply::Bytes(bytes) = reply else { return };
                let len = u16::try_from(bytes.len()).expect("a message");
                let sent = stream.write_all(&[&len.to_be_bytes()[..], &bytes].concat());
                if sent.is_err() {
                    return;
                }
            }
        }
    }
}

/// Both on one port.
fn sockets() -> (UdpSocket, TcpListener) {
    loop {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        // Somebody else may have that port of UDP.
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr().expect("it is bound")) {
            return (udp, tcp);
        }
    }
}

pub fn name(text: &str) -> Name {
    Name::from_str(text).expect("a name")
}

/// A response to a question without any answer.
pub fn response(asked: &Asked) -> Message {
    let mut message = Message::response(asked.id, OpCode::Query);
    message.add_query(asked.query.clone());
    message
}

/// The answers of a server that has these records.
pub fn zone(asked: &Asked, records: &[Record]) -> Message {
    let mut message = response(asked);
    let mut owner = asked.query.name().clone();
    let of = |owner: &Name| -> Vec<&Record> {
        let found = records.iter().filter(|record| record.name == *owner);
        found.collect()
    };
    if of(&owner).is_empty() {
        message.metadata.response_code = ResponseCode::NXDomain;
        message.add_authority(soa());
    }
    loop {
        let wanted = asked.query.query_type();
        let found = of(&owner).into_iter();
        let found: Vec<_> = found
            .filter(|record| record.record_type() == wanted)
            .cloned()
            .collect();
        let none = found.is_empty();
        message.add_answers(found);
        let alias = of(&owner)
            .into_iter()
            .find_map(|record| match &record.data {
                RData::CNAME(CNAME(target)) => Some((record.clone(), target.clone())),
                _ => None,
            });
        match alias {
            Some((record, target)) if none => {
                message.add_answer(record);
                owner = target;
            }
            _ => return message,
        }
    }
}

pub fn bytes(message: &Message) -> Vec<u8> {
    message.to_vec().expect("a message")
}

/// Says that negative answers hold for a minute.
fn soa() -> Record {
    let data = SOA::new(name("ns.test."), name("admin.test."), 1, 60, 60, 60, 60);
    Record::from_rdata(name("test."), 60, RData::SOA(data))
}

pub fn a(owner: &str, address: [u8; 4]) -> Record {
    let data = RData::A(A(Ipv4Addr::from(address)));
    Record::from_rdata(name(owner), 60, data)
}

pub fn aaaa(owner: &str, address: Ipv6Addr) -> Record {
    Record::from_rdata(name(owner), 60, RData::AAAA(AAAA(address)))
}

pub fn cname(owner: &str, target: &str) -> Record {
    Record::from_rdata(name(owner), 60, RData::CNAME(CNAME(name(target))))
}

pub fn srv(owner: &str, priority: u16, weight: u16, port: u16, target: &str) -> Record {
    let data = SRV::new(priority, weight, port, name(target));
    Record::from_rdata(name(owner), 60, RData::SRV(data))
}

pub fn mx(owner: &str, preference: u16, exchange: &str) -> Record {
    let data = MX::new(preference, name(exchange));
    Record::from_rdata(name(owner), 60, RData::MX(data))
}

pub fn txt(owner: &str, strings: &[&str]) -> Record {
    let strings = strings.iter().map(ToString::to_string).collect();
    Record::from_rdata(name(owner), 60, RData::TXT(TXT::new(strings)))
}

pub fn ptr(owner: &str, target: &str) -> Record {
    Record::from_rdata(name(owner), 60, RData::PTR(PTR(name(target))))
}

pub fn is_a(asked: &Asked) -> bool {
    asked.query.query_type() == RecordType::A
}
