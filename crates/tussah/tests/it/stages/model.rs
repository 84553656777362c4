//! Random programs on a small network: each event has one end, events of one sender and class keep
//! their order, and no two batches are handled at a time that must not be.

mod program;
mod site;

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once, mpsc};
use std::time::Duration;

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use tussah::stage::{
    AnyCall, Batch, BuildError, Class, Edges, Event, Network, Restarts, Sender, Stage, TrySender,
};

use self::program::{Act, Control, Edge, Form, Program, STAGES, Takes};
use self::site::{Book, Site, Token};
use super::support::{By, One, Work, adds_up, by, one};

/// Programs that are tried unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 300;

/// A guard against a hang: a run takes milliseconds.
const HANG: Duration = Duration::from_secs(60);

const EXPECTED: &str = "a handler of the model";

/// How a handler sends on.
#[derive(Clone)]
enum Out {
    Last,
    Queue(Sender<Token>),
    Offer(TrySender<Token>),
    Call(AnyCall<Token>),
}

impl Out {
    /// The edge from a stage to the next.
    fn of(site: &Site, edges: &Edges<'_>) -> Result<Self, BuildError> {
        if site.at + 1 == STAGES {
            return Ok(Out::Last);
        }
        let to = edges.named::<Token>(&name(site.at + 1))?;
        Ok(match site.is.edge {
            Edge::Queue => Out::Queue(to.queue(1)?),
            Edge::Offer => Out::Offer(to.offer(1)?),
            Edge::Call => Out::Call(to.call()?),
        })
    }

    /// Sends an event on. Where that can't be done, it ends here.
    async fn pass(&self, event: Event<Token>, book: &Book) {
        let id = event.id;
        let passed = match self {
            Out::Last => false,
            Out::Queue(sender) => sender.send(event).await.is_ok(),
            Out::Offer(offerer) => offerer.try_send(event).is_ok(),
            Out::Call(call) => call.send(event).await.is_ok(),
        };
        if !passed {
            book.end(id);
        }
    }

    /// Sends on all of a batch; false if that is not how this one sends.
    async fn pass_whole(&self, batch: &mut Batch<Token>, book: &Book) -> bool {
        let passed = match self {
            Out::Queue(sender) => sender.forward(batch).await.is_ok(),
            Out::Call(call) => call.call(batch).await.is_ok(),
            Out::Last | Out::Offer(_) => return false,
        };
        if !passed {
            for event in batch.drain_events() {
                book.end(event.id);
            }
        }
        true
    }
}

fn name(at: usize) -> String {
    format!("stage {at}")
}

/// The behaviour of all handlers of a stage.
async fn work(site: &Site, out: &Out, batch: &mut Batch<Token>) {
    let keys: Vec<_> = batch.events_mut().iter().map(|event| event.key).collect();
    if keys.is_empty() {
        // All were late.
        return;
    }
    let _inside = site.enter(&keys);
    if site.is.takes == Takes::Whole && out.pass_whole(batch, &site.book).await {
        return;
    }
    while let Some(event) = batch.next_event() {
        site.saw(&event);
        let act = event.acts[site.at];
        if matches!(act, Act::WaitAndPass | Act::WaitAndPanic) {
            tussah::yield_now().await;
        }
        match act {
            Act::Pass | Act::WaitAndPass => out.pass(event, &site.book).await,
            Act::Discard => site.book.end(event.id),
            Act::Panic | Act::WaitAndPanic => std::panic::panic_any(EXPECTED),
        }
        if site.is.takes == Takes::One {
            return;
        }
    }
}

type Made<H> = Result<H, BuildError>;
type Handler = By<Token, Box<dyn for<'a> Fn(&'a mut Batch<Token>) -> Work<'a> + Send + Sync>>;
type Serial = One<Token, Box<dyn for<'a> FnMut(&'a mut Batch<Token>) -> Work<'a> + Send>>;

fn many(site: &Arc<Site>, edges: &Edges<'_>) -> Made<Handler> {
    let (site, out) = (Arc::clone(site), Out::of(site, edges)?);
    Ok(by(Box::new(move |batch| {
        let (site, out) = (Arc::clone(&site), out.clone());
        Box::pin(async move { work(&site, &out, batch).await })
    })))
}

fn serial(site: &Arc<Site>, edges: &Edges<'_>) -> Made<Serial> {
    let (site, out) = (Arc::clone(site), Out::of(site, edges)?);
    Ok(one(Box::new(move |batch| {
        let (site, out) = (Arc::clone(&site), out.clone());
        Box::pin(async move { work(&site, &out, batch).await })
    })))
}

/// Makes the stages, the last one first.
fn make(
    network: &Network,
    program: &Program,
    book: &Arc<Book>,
) -> Made<Vec<(Stage<Token>, Arc<Site>)>> {
    let mut made = Vec::new();
    for at in (0..STAGES).rev() {
        let site = Site::new(program, at, book);
        let is = site.is;
        let told = Arc::clone(book);
        let mut builder = network
            .stage::<Token>(name(at))
            .classes(is.classes)
            .queue(is.queue)
            .batch(is.batch)
            .restarts(Restarts::new(1_000_000, Duration::from_secs(1)))
            .on_drop(move |token: Token, _| {
                if !Arc::ptr_eq(&token.book, &told) {
                    told.wrong("a stranger's event".to_owned());
                }
            });
        if is.has_shares {
            builder = builder.class_shares(&[3, 1][..is.classes]);
        }
        if is.whole_path {
            builder = builder.whole_path();
        }
        let here = Arc::clone(&site);
        match is.form {
            Form::Many(servlets) | Form::Keyed(servlets) => {
                if let Form::Keyed(_) = is.form {
                    builder = builder.keyed_by(|token: &Token| token.key).key_queue(3);
                }
                let builder = builder.servlets(servlets).manual();
                builder.handler(move |edges| many(&here, edges))?;
            }
            Form::Serial => drop(builder.serial(move |edges| serial(&here, edges))?),
        }
        made.insert(0, (network.find(&name(at))?, site));
    }
    Ok(made)
}

/// Does to the stages what the program says; others may be waiting for them meanwhile.
async fn control(stages: &[(Stage<Token>, Arc<Site>)], program: &Program) {
    let mut swaps = Vec::new();
    for control in &program.control {
        match *control {
            Control::Pause(at) => stages[at].0.pause(),
            Control::Resume(at) => stages[at].0.resume(),
            Control::SetQueueMax(at, max) => stages[at].0.set_queue_max(max),
            Control::Yield(times) => {
                for _ in 0..times {
                    tussah::yield_now().await;
                }
            }
            Control::Destroy(at) => drop(stages[at].0.clone().destroy(Duration::ZERO).await),
            Control::Swap(at) => {
                let (stage, site) = stages[at].clone();
                // A stage that is closed, or sends to one that is, refuses.
                swaps.push(tussah::spawn(async move {
                    if site.is.form == Form::Serial {
                        let made = move |edges: &Edges<'_>| serial(&site, edges);
                        drop(stage.swap_serial(made).await);
                    } else {
                        drop(stage.swap(move |edges| many(&site, edges)).await);
                    }
                }));
            }
        }
    }
    if program.shuts_down {
        return;
    }
    stages.iter().for_each(|(stage, _)| stage.resume());
    for swap in swaps {
        swap.await.expect("no panic");
    }
}

/// Sends what a sender of the program sends.
async fn send(sends: Vec<(Token, program::Send)>, sender: Sender<Token>, book: Arc<Book>) {
    for (token, how) in sends {
        let (id, told) = (token.id, Arc::clone(&book));
        let event = Event::new(token)
            .class(Class(how.class))
            .credits(how.credits)
            .on_drop(move |_| told.end(id));
        let event = match how.within_us {
            Some(within_us) => event.within(Duration::from_micros(within_us)),
            None => event,
        };
        let sent = if how.waits {
            sender.send(event).await.is_ok()
        } else {
            sender.try_send(event).is_ok()
        };
        if !sent {
            book.end(id);
        }
    }
}

/// Runs a program once; says what contradicts the promises.
fn run(program: &Program) -> Vec<String> {
    let runtime = crate::runtime(program.workers);
    let events = program
        .senders
        .iter()
        .map(|sender| sender.sends.len())
        .sum();
    let book = Book::new(events);
    let network = Network::on(runtime.handle(), "model");
    let stages = make(&network, program, &book).expect("the network is without a cycle");
    let mut ids = 0..events;
    let mut senders = Vec::new();
    for (number, from) in program.senders.iter().enumerate() {
        let token = |(n, send): (usize, &program::Send)| {
            let token = Token {
                id: ids.next().expect("there are as many as events"),
                sender: number,
                entry: from.entry,
                n,
                class: send.class,
                key: send.key,
                acts: send.acts,
                book: Arc::clone(&book),
            };
            (token, *send)
        };
        let sends = from.sends.iter().enumerate().map(token).collect();
        let sender = stages[from.entry].0.sender();
        senders.push(runtime.spawn(send(sends, sender, Arc::clone(&book))));
    }
    runtime.block_on(control(&stages, program));
    if program.shuts_down {
        // What a handler or a sender had in hand is dropped with it, and tells nobody.
        drop((runtime, senders));
    } else {
        runtime.block_on(async {
            for sender in senders {
                sender.await.expect("no panic");
            }
            for (stage, _) in &stages {
                stage.drain().await;
            }
            while book.all.load(Ordering::Acquire) < events {
                tussah::yield_now().await;
            }
        });
        for (at, (stage, _)) in stages.iter().enumerate() {
            let destroyed =
                |control: &Control| matches!(control, Control::Destroy(which) if *which == at);
            if !program.control.iter().any(destroyed) {
                adds_up(stage);
            }
        }
        drop(runtime);
    }
    for (stage, _) in &stages {
        let stats = stage.stats();
        // What is held up in a paused stage ends with the stage.
        let queued = if stats.gate == "paused" {
            0
        } else {
            stats.queued
        };
        if queued + stats.in_service > 0 {
            book.wrong(format!("left over: {stats:?}"));
        }
    }
    drop((stages, network));
    let mut wrong = std::mem::take(&mut *book.wrong.lock());
    if Arc::strong_count(&book) > 1 {
        wrong.push(format!(
            "{} still refer to the book",
            Arc::strong_count(&book) - 1
        ));
    }
    wrong
}

/// Runs a program on an OS thread that may hang.
fn guarded(program: Program) -> Result<(), TestCaseError> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let wrong = std::panic::catch_unwind(|| run(&program));
        // If nobody listens any more, it has been taken for a hang.
        let _ = sender.send(wrong.unwrap_or_else(|_| vec!["it panicked".to_owned()]));
    });
    match receiver.recv_timeout(HANG) {
        Ok(wrong) if wrong.is_empty() => Ok(()),
        Ok(wrong) => Err(TestCaseError::fail(wrong.join("\n"))),
        Err(_) => Err(TestCaseError::fail(format!("no end after {HANG:?}"))),
    }
}

/// Has nothing printed of the panics that the programs ask for.
fn hide_expected_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let text = info.payload().downcast_ref::<&str>();
            if text.is_none_or(|text| *text != EXPECTED) {
                print(info);
            }
        }));
    });
}

#[test]
fn random_programs_keep_the_promises() {
    hide_expected_panics();
    let mut config = Config {
        failure_persistence: None,
        max_shrink_iters: 500,
        ..Config::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    let seed = match config.rng_seed {
        RngSeed::Random => RandomState::new().hash_one(0),
        RngSeed::Fixed(seed) => seed,
    };
    config.rng_seed = RngSeed::Fixed(seed);
    let result = TestRunner::new(config).run(&program::program(), guarded);
    if let Err(TestError::Fail(reason, program)) = result {
        panic!("found with PROPTEST_RNG_SEED={seed}\n{program:?}\n{reason}");
    }
    result.expect("no program is rejected");
}
