//! A chat server with a flow for each room: each line of a client goes to all members of its room.
//!
//! ```text
//! cargo run -p tussah --features cli --example chat -- run crates/tussah/examples/chat/chat.weave
//! ```
//!
//! A client connects with `nc 127.0.0.1 7000`. Its first line is `NAME ROOM`. A client that does
//! not read its messages is cut off.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Mutex;

use tussah::flow::{Out, cli, module};
use tussah::modules::{self, Message, Peer};

/// An action of a client in its room.
#[derive(Clone)]
enum Act {
    Join,
    Say(String),
    Leave,
}

#[derive(Clone)]
struct Event {
    act: Act,
    name: String,
    peer: Peer,
}

/// A client that has joined a room.
struct Member {
    name: String,
    room: String,
    peer: Peer,
}

/// Reads the lines of clients; one line of each client at a time.
#[derive(Default)]
struct Client {
    /// The number of members of each room. The lock is held while events are sent, so that a room
    /// that ends gets no more.
    rooms: Mutex<HashMap<String, usize>>,
}

#[module]
impl Client {
    fn run(
        &self,
        message: Message,
        member: &mut Option<Member>,
        out: &impl Out<Event>,
        hint: &impl Out<Message>,
    ) {
        let text = message.text();
        if let Some(member) = member {
            return member.send(Act::Say(text.into_owned()), out);
        }
        let mut words = text.split_whitespace();
        let (Some(name), Some(room), None) = (words.next(), words.next(), words.next()) else {
            return hint.send(Message::new(message.peer, "* expected NAME ROOM"));
        };
        let joined = member.insert(Member {
            name: name.to_owned(),
            room: room.to_owned(),
            peer: message.peer.clone(),
        });
        let mut rooms = self.rooms.lock().expect("no holder panics");
        *rooms.entry(joined.room.clone()).or_default() += 1;
        joined.send(Act::Join, out);
    }

    fn end(&self, member: Option<Member>, out: &impl Out<Event>) {
        let Some(member) = member else { return };
        let mut rooms = self.rooms.lock().expect("no holder panics");
        member.send(Act::Leave, out);
        let members = rooms.get_mut(&member.room).expect("it was counted");
        *members -= 1;
        if *members == 0 {
            rooms.remove(&member.room);
            out.close(member.room);
        }
    }
}

impl Member {
    /// Sends an event in the flow of the room.
    fn send(&self, act: Act, out: &impl Out<Event>) {
        let event = Event {
            act,
            name: self.name.clone(),
            peer: self.peer.clone(),
        };
        out.to(self.room.clone(), event);
    }
}

/// Passes messages to the members of a room; one event of each room at a time.
struct Room {
    /// Bound, in members: the maximum number in a room. One call sends a message to each member.
    members_max: usize,
}

#[module]
impl Room {
    fn init(members: usize) -> Result<Self, String> {
        match members {
            1..=500 => Ok(Self {
                members_max: members,
            }),
            _ => Err(format!("`members` is {members}: expected 1 to 500")),
        }
    }

    fn run(&self, event: Event, members: &mut Vec<Peer>, out: &impl Out<Message>) {
        let name = event.name;
        let text = match event.act {
            Act::Join if members.len() >= self.members_max => {
                return out.send(Message::new(event.peer, "* the room is full"));
            }
            Act::Join => {
                members.push(event.peer);
                format!("* {name} joined")
            }
            // A client that found no room is no member.
            _ if !members.contains(&event.peer) => return,
            Act::Say(text) => format!("{name}: {text}"),
            Act::Leave => {
                members.retain(|member| *member != event.peer);
                format!("* {name} left")
            }
        };
        for member in members {
            out.send(Message::new(member.clone(), text.clone()));
        }
    }
}

/// Prints the address at which the server listens.
#[derive(Default)]
struct Ready;

#[module]
impl Ready {
    fn run(&self, address: SocketAddr) {
        println!("listening at {address}");
    }
}

fn main() -> ExitCode {
    let modules = modules::standard()
        .with::<Client>("Client")
        .with::<Room>("Room")
        .with::<Ready>("Ready");
    cli::main("chat", modules)
}
