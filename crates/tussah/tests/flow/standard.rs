//! The standard modules.

mod cancelled;
mod files;
mod generic;
mod net;
mod send_file;

use std::any::Any;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tussah::flow::{AsyncOut, Fields, Graph, Modules, Params, Value, module};
use tussah::modules::{self, Attempt, Contents, Join, Message, Peer};

use super::{Note, Notes};

/// A request of a client, with the size of its answer.
#[derive(Clone, Debug, PartialEq)]
struct Request(Option<&'static str>, u64);

impl Fields for Request {
    const NAMES: &'static [&'static str] = &["client", "bytes"];

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "client" => self.0.map(|client| Value::Text(client.to_owned())),
            "bytes" => Some(Value::Count(self.1)),
            _ => None,
        }
    }
}

/// The items of a source, whose type the graph's text does not say.
#[derive(Clone)]
struct Given(Arc<dyn Any + Send + Sync>);

impl Given {
    fn new<T: Send + Sync + 'static>(items: Vec<T>) -> Self {
        Self(Arc::new(items))
    }
}

/// Sends items.
struct Items<T>(Vec<T>);

#[module]
impl<T: Clone + Send + Sync + 'static> Items<T> {
    fn init(items: Given) -> Self {
        let items = items.0.downcast_ref::<Vec<T>>();
        Self(
            items
                .expect("they are of the type that the edges need")
                .clone(),
        )
    }

    async fn start(&self, out: &impl AsyncOut<T>) {
        for item in &self.0 {
            out.send(item.clone()).await;
        }
    }
}

/// Notes each item with the milliseconds since the module was made.
struct Stamp<T>(Notes, std::time::Instant, PhantomData<fn(T)>);

#[module]
impl<T: Debug + Send + 'static> Stamp<T> {
    fn init(notes: Notes) -> Self {
        Self(notes, tussah::time::now(), PhantomData)
    }

    fn run(&mut self, item: T) {
        let after = tussah::time::now() - self.1;
        self.0.add(format!("{} ms: {item:?}", after.as_millis()));
    }
}

fn notes<T: Debug + Send + 'static>() -> Modules {
    Modules::new()
        .with::<Note<T>>("Note")
        .with::<Stamp<T>>("Stamp")
}

fn items<T: Clone + Debug + Send + Sync + 'static>() -> Modules {
    notes::<T>().with::<Items<T>>("Items")
}

fn all() -> Modules {
    modules::standard()
        .and(modules::generic::<Request>())
        .and(modules::by_field::<Request>())
        .and(items::<Request>())
        .and(items::<u64>())
        .and(items::<Message>())
        .and(notes::<Attempt<Message>>())
        .and(notes::<Attempt<u64>>())
        .and(notes::<SocketAddr>())
        .and(items::<PathBuf>())
        .and(notes::<Attempt<PathBuf>>())
        .and(notes::<Contents>())
        .and(notes::<String>())
        .and(notes::<(u64, Request)>())
        .and(notes::<tussah::flow::Dropped<u64>>())
        .with::<Join<u64, Request>>("Join")
}

/// Makes the graph of a text with these parameters.
#[track_caller]
fn graph(text: &str, modules: &Modules, params: &Params) -> Graph {
    let made = modules.graph("test.weave", text, params);
    made.unwrap_or_else(|error| panic!("{error}"))
}

fn messages(texts: &[&str]) -> Vec<Message> {
    let message = |text: &&str| Message::new(Peer::nobody(), text.as_bytes());
    texts.iter().map(message).collect()
}

/// Waits until there is a note of the address that a source listens at.
async fn address(notes: &Notes) -> SocketAddr {
    loop {
        if let Some(address) = notes.0.lock().first() {
            return address.parse().expect("it is an address");
        }
        tussah::yield_now().await;
    }
}

/// Waits for this number of notes.
async fn wait_for(notes: &Notes, count: usize) {
    while notes.0.lock().len() < count {
        tussah::yield_now().await;
    }
}

/// Lets one worker do what there is to do, and then moves the clock by 10 ms.
async fn step(clock: &tussah::ManualClock) {
    // A worker looks at the clock after 128 turns at the most.
    for _ in 0..500 {
        tussah::yield_now().await;
    }
    clock.advance(std::time::Duration::from_millis(10));
}
