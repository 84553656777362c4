//! The record of a run of a program, and its check against the promises.
//!
//! Each actor counts its steps. A step names the steps of others whose ends it saw. In a color's
//! log every event excludes the next one, except two readers. The steps and the order of each log
//! form the graph of what happened before what. The promises are then: the graph has no cycle; no
//! log contradicts it; replaying a log gives the results that its events and callers saw; and each
//! closure had exactly one end.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::program::{NUMBERS, VALUES};

/// An actor and one of its steps.
pub(super) type Node = (u32, u32);

/// The part of `Place::inside` that records exclusive access to the color.
const WRITER: u32 = 1 << 16;

/// Returns the state after an event. Different orders of the same events give different states.
fn mixed(state: u64, event: u32) -> u64 {
    (state.rotate_left(5) ^ u64::from(event)).wrapping_mul(0x517C_C1B7_2722_0A95) + 1
}

/// A color, as its events see it. Relaxed throughout, because the color itself has to order these
/// accesses.
#[derive(Default)]
struct Place {
    /// The events that are inside now: the number of readers, and `WRITER`.
    inside: AtomicU32,
    state: AtomicU64,
    /// The expected colored value. Only its own events change it.
    value: AtomicU64,
    log: Mutex<Vec<Entry>>,
    /// True if some actor has set a limit.
    limited: AtomicBool,
}

/// An event of a color.
#[derive(Debug)]
struct Entry {
    event: u32,
    /// The step that posted it. Unknown for the poll of a thread with an unknown waker.
    issued: Option<Node>,
    begin: Node,
    end: Node,
    reads: bool,
    before: u64,
    after: u64,
}

/// The parts of the program that have a color.
pub(super) struct Value {
    plain: u64,
    drops: Arc<AtomicU32>,
}

impl Value {
    pub(super) fn new(drops: Arc<AtomicU32>) -> Self {
        Self { plain: 0, drops }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// The way of an operation to its color.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Post,
    Try,
    Request,
}

/// The result that the caller of an operation saw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// None: a request that was dropped.
    Unseen,
    Accepted,
    Refused,
    Replied(Reply),
    Panicked,
    /// The runtime dropped the request.
    ShutDown,
}

/// For each color of an operation: its place in the log, and the resulting state.
pub(super) type Reply = Vec<(usize, usize, u64)>;

/// A closure that was submitted.
#[derive(Debug)]
pub(super) struct Op {
    pub(super) event: u32,
    pub(super) kind: Kind,
    pub(super) places: Vec<usize>,
    pub(super) issued: Node,
    /// The actor that the closure will be.
    pub(super) actor: u32,
    pub(super) outcome: Mutex<Outcome>,
    /// True if the closure came back to its caller, so that its end is no event of the color.
    pub(super) returned: AtomicBool,
    pub(super) ran: AtomicU32,
    pub(super) dropped: AtomicU32,
    pub(super) given_back: AtomicU32,
}

/// The record of an actor: for each step, the steps of others whose ends it saw; and its
/// operations.
pub(super) struct Track {
    pub(super) actor: u32,
    pub(super) steps: Vec<Vec<Node>>,
    pub(super) ops: Vec<Arc<Op>>,
}

/// The whole record.
#[derive(Default)]
pub(super) struct History {
    places: [Place; NUMBERS + VALUES],
    tracks: Mutex<Vec<Track>>,
    failures: Mutex<Vec<String>>,
    numbers: AtomicU32,
    /// The number of panics that a worker has to count.
    pub(super) panics: AtomicU64,
}

impl History {
    /// Returns a number for an actor or an event.
    pub(super) fn number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn fail(&self, what: String) {
        self.failures.lock().push(what);
    }

    /// The errors so far.
    pub(super) fn failures(&self) -> Vec<String> {
        self.failures.lock().clone()
    }

    pub(super) fn ended(&self, track: Track) {
        self.tracks.lock().push(track);
    }

    pub(super) fn limit(&self, place: usize) {
        self.places[place].limited.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_limited(&self, place: usize) -> bool {
        self.places[place].limited.load(Ordering::Relaxed)
    }

    /// Begins an event of the color. Returns its index in the log and the resulting state.
    pub(super) fn enter(
        &self,
        place: usize,
        event: u32,
        issued: Option<Node>,
        begin: Node,
        reads: bool,
    ) -> (usize, u64) {
        self.claim(place, event, reads);
        let at = &self.places[place];
        let before = at.state.load(Ordering::Relaxed);
        let after = if reads { before } else { mixed(before, event) };
        if !reads {
            at.state.store(after, Ordering::Relaxed);
        }
        let mut log = at.log.lock();
        log.push(Entry {
            event,
            issued,
            begin,
            end: begin,
            reads,
            before,
            after,
        });
        (log.len() - 1, after)
    }

    /// Ends the event of that index.
    pub(super) fn leave(&self, place: usize, index: usize, end: Node) {
        let at = &self.places[place];
        let mut log = at.log.lock();
        let entry = &mut log[index];
        entry.end = end;
        let state = at.state.load(Ordering::Relaxed);
        if state != entry.after {
            self.fail(format!(
                "exclusion: the state of {place} changed under {entry:?}"
            ));
        }
        let reads = entry.reads;
        drop(log);
        self.release(place, reads);
    }

    /// Records a drop in the color, which is an event without an entry.
    pub(super) fn drop_in(&self, place: usize, what: u32) {
        self.claim(place, what, false);
        std::thread::yield_now();
        self.release(place, false);
    }

    fn claim(&self, place: usize, event: u32, reads: bool) {
        let part = if reads { 1 } else { WRITER };
        let found = self.places[place].inside.fetch_add(part, Ordering::Relaxed);
        if found != 0 && !(reads && found < WRITER) {
            self.fail(format!(
                "exclusion: {event} entered {place} (to read: {reads}) while {found:#x} were inside"
            ));
        }
    }

    fn release(&self, place: usize, reads: bool) {
        let part = if reads { 1 } else { WRITER };
        self.places[place].inside.fetch_sub(part, Ordering::Relaxed);
    }

    /// Checks that the value is as its last event left it, and changes it.
    pub(super) fn write(&self, place: usize, event: u32, value: &mut Value) {
        self.read(place, event, value);
        value.plain = mixed(value.plain, event);
        self.places[place]
            .value
            .store(value.plain, Ordering::Relaxed);
    }

    pub(super) fn read(&self, place: usize, event: u32, value: &Value) {
        let expected = self.places[place].value.load(Ordering::Relaxed);
        if value.plain != expected {
            let found = value.plain;
            self.fail(format!(
                "{event} found {found:#x} in the value of {place}, not {expected:#x}"
            ));
        }
    }

    /// Returns all contradictions of the promises. All actors have ended. `all_ran` means that the
    /// shutdown had to run every posted event.
    pub(super) fn check(&self, all_ran: bool, panics_counted: u64) -> Vec<String> {
        let mut failures = self.failures();
        let panics = self.panics.load(Ordering::Relaxed);
        if panics != panics_counted {
            failures.push(format!(
                "panics: {panics} in posted events and threads, {panics_counted} counted"
            ));
        }
        let tracks = self.tracks.lock();
        let logs: Vec<_> = self.places.iter().map(|place| place.log.lock()).collect();
        for (place, log) in logs.iter().enumerate() {
            replay(place, log, &mut failures);
        }
        for op in tracks.iter().flat_map(|track| &track.ops) {
            check_end(op, all_ran, &mut failures);
            if let Outcome::Replied(reply) = &*op.outcome.lock() {
                let agrees = |&(place, index, state): &(usize, usize, u64)| {
                    let entry: Option<&Entry> = logs[place].get(index);
                    entry.is_some_and(|entry| entry.event == op.event && entry.after == state)
                };
                let places: Vec<_> = reply.iter().map(|&(place, ..)| place).collect();
                if places != op.places || !reply.iter().all(agrees) {
                    failures.push(format!("reply: the log knows nothing of {op:?}"));
                }
            }
        }
        let graph = Graph::new(&tracks, logs.iter().map(|log| &***log));
        graph.check(logs.iter().map(|log| &***log), &mut failures);
        failures
    }
}

/// The sequential model of a color: events one after the other, in the order of the log.
fn replay(place: usize, log: &[Entry], failures: &mut Vec<String>) {
    let mut state = 0;
    for entry in log {
        let after = if entry.reads {
            state
        } else {
            mixed(state, entry.event)
        };
        if (entry.before, entry.after) != (state, after) {
            failures.push(format!(
                "replay: at {place}, expected {state:#x} to {after:#x}, got {entry:x?}"
            ));
        }
        state = after;
    }
}

/// Checks that each closure has exactly one end, and that its caller was told: it runs, the runtime
/// drops it, or it comes back.
fn check_end(op: &Op, all_ran: bool, failures: &mut Vec<String>) {
    let count = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
    let ends = (count(&op.ran), count(&op.dropped), count(&op.given_back));
    let fits = match &*op.outcome.lock() {
        Outcome::Accepted => ends == (1, 0, 0) || (ends == (0, 1, 0) && !all_ran),
        Outcome::Refused => ends == (0, 0, 1),
        Outcome::Replied(_) | Outcome::Panicked => ends == (1, 0, 0),
        Outcome::ShutDown => ends == (0, 1, 0),
        Outcome::Unseen => op.kind == Kind::Request && matches!(ends, (1, 0, 0) | (0, 1, 0)),
    };
    if !fits {
        failures.push(format!(
            "ends: ran, dropped, given back {ends:?} times: {op:?}"
        ));
    }
}

/// The graph of what happened before what.
struct Graph {
    /// The number of each actor's first step.
    first: HashMap<u32, usize>,
    before: Vec<Vec<usize>>,
}

impl Graph {
    fn new<'a>(tracks: &[Track], logs: impl Iterator<Item = &'a [Entry]>) -> Self {
        let mut first = HashMap::new();
        let mut len = 0;
        for track in tracks {
            first.insert(track.actor, len);
            len += track.steps.len();
        }
        let mut graph = Self {
            first,
            before: vec![Vec::new(); len],
        };
        for track in tracks {
            for (step, saw) in track.steps.iter().enumerate() {
                let to = (track.actor, step as u32);
                if step > 0 {
                    graph.edge((track.actor, step as u32 - 1), to);
                }
                saw.iter().for_each(|&from| graph.edge(from, to));
            }
        }
        for log in logs {
            let (mut written, mut read) = (None, Vec::new());
            for entry in log {
                written.iter().for_each(|&end| graph.edge(end, entry.begin));
                if entry.reads {
                    read.push(entry.end);
                } else {
                    read.drain(..).for_each(|end| graph.edge(end, entry.begin));
                    written = Some(entry.end);
                }
            }
        }
        graph
    }

    fn index(&self, (actor, step): Node) -> usize {
        self.first[&actor] + step as usize
    }

    fn edge(&mut self, from: Node, to: Node) {
        let (from, to) = (self.index(from), self.index(to));
        self.before[to].push(from);
    }

    /// Returns the steps, each behind those that happened before it. Steps on cycles, and those
    /// behind them, are missing.
    fn sorted(&self) -> Vec<usize> {
        let mut after = vec![Vec::new(); self.before.len()];
        let mut waits: Vec<_> = self.before.iter().map(Vec::len).collect();
        for (to, before) in self.before.iter().enumerate() {
            before.iter().for_each(|&from| after[from].push(to));
        }
        let mut sorted: Vec<_> = (0..waits.len()).filter(|&step| waits[step] == 0).collect();
        let mut next = 0;
        while let Some(&step) = sorted.get(next) {
            next += 1;
            for &to in &after[step] {
                waits[to] -= 1;
                if waits[to] == 0 {
                    sorted.push(to);
                }
            }
        }
        sorted
    }

    /// Returns, for each step, one bit for each step that is the same or happened before it.
    fn past(&self, sorted: &[usize]) -> Vec<Vec<u64>> {
        let mut past = vec![vec![0_u64; self.before.len().div_ceil(64)]; self.before.len()];
        for &step in sorted {
            let mut mine = std::mem::take(&mut past[step]);
            mine[step / 64] |= 1 << (step % 64);
            for &from in &self.before[step] {
                mine.iter_mut()
                    .zip(&past[from])
                    .for_each(|(mine, from)| *mine |= from);
            }
            past[step] = mine;
        }
        past
    }

    /// Checks that there is no cycle, so that requests to several colors are atomic and no event
    /// ran before its cause. Also checks that no two events of a color, unless both read, ran
    /// against the order in which they were posted.
    fn check<'a>(&self, logs: impl Iterator<Item = &'a [Entry]>, failures: &mut Vec<String>) {
        let sorted = self.sorted();
        if sorted.len() < self.before.len() {
            failures.push("order: the logs and what followed from what make a cycle".into());
            return;
        }
        let past = self.past(&sorted);
        for (place, log) in logs.enumerate() {
            for (index, late) in log.iter().enumerate() {
                let Some(issued) = late.issued else { continue };
                let issued = self.index(issued);
                let passed = log[..index].iter().find(|early| {
                    early.issued.is_some_and(|step| {
                        let past = &past[self.index(step)];
                        past[issued / 64] >> (issued % 64) & 1 == 1 && !(early.reads && late.reads)
                    })
                });
                if let Some(early) = passed {
                    failures.push(format!(
                        "order: at {place}, {late:x?} was posted before {early:x?} and ran after it"
                    ));
                }
            }
        }
    }
}
