//! Events at the stages of a program, checked against the promises.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::program::{Act, Form, Program, STAGES, Stage};

/// Contradictions of the promises, and how often each event has ended.
pub struct Book {
    pub wrong: Mutex<Vec<String>>,
    pub ends: Vec<AtomicUsize>,
    pub all: AtomicUsize,
}

impl Book {
    pub fn new(events: usize) -> Arc<Self> {
        Arc::new(Self {
            wrong: Mutex::default(),
            ends: (0..events).map(|_| AtomicUsize::new(0)).collect(),
            all: AtomicUsize::new(0),
        })
    }

    pub fn wrong(&self, what: String) {
        self.wrong.lock().push(what);
    }

    /// An event has ended, in whatever way.
    pub fn end(&self, id: usize) {
        if self.ends[id].fetch_add(1, Ordering::AcqRel) > 0 {
            self.wrong(format!("event {id} ended twice"));
        }
        self.all.fetch_add(1, Ordering::AcqRel);
    }
}

/// The value of an event.
pub struct Token {
    pub id: usize,
    pub sender: usize,
    pub entry: usize,
    pub n: usize,
    pub class: u8,
    pub key: u8,
    pub acts: [Act; STAGES],
    pub book: Arc<Book>,
}

/// One stage, as its handlers see it, whichever of them is there.
pub struct Site {
    pub at: usize,
    pub is: Stage,
    /// Batches in its handlers; by key, in a stage by key.
    inside: Mutex<HashMap<u8, usize>>,
    /// The most of them at a time.
    most: usize,
    /// Of each sender, class and, if it matters, key: which came last.
    last: Mutex<HashMap<(usize, u8, u8), usize>>,
    /// By where events enter the network: whether they are handled in order here, and whether only
    /// those of one key are.
    orders: [Option<bool>; STAGES],
    pub book: Arc<Book>,
}

/// A batch is in a handler as long as this lives.
pub struct Inside<'a>(&'a Site, u8);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        *self.0.inside.lock().entry(self.1).or_default() -= 1;
    }
}

impl Site {
    pub fn new(program: &Program, at: usize, book: &Arc<Book>) -> Arc<Self> {
        let is = program.stages[at];
        let called = at > 0 && program.stages[at - 1].edge == super::program::Edge::Call;
        let most = match is.form {
            Form::Serial | Form::Keyed(_) => 1,
            Form::Many(servlets) if !called => servlets,
            Form::Many(_) => usize::MAX,
        };
        let mut orders = [None; STAGES];
        for (entry, order) in orders.iter_mut().enumerate().take(at + 1) {
            let way = &program.stages[entry..=at];
            let single = |stage: &Stage| stage.form != Form::Many(2) && stage.form != Form::Many(3);
            let keyed = |stage: &Stage| matches!(stage.form, Form::Keyed(_));
            *order = way.iter().all(single).then(|| way.iter().any(keyed));
        }
        Arc::new(Self {
            at,
            is,
            inside: Mutex::default(),
            most,
            last: Mutex::default(),
            orders,
            book: Arc::clone(book),
        })
    }

    /// A batch comes to a handler, whose events have these keys.
    pub fn enter(&self, keys: &[u8]) -> Inside<'_> {
        let mut key = 0;
        if matches!(self.is.form, Form::Keyed(_)) {
            key = keys[0];
            if keys.iter().any(|other| *other != key) {
                self.book
                    .wrong(format!("a batch of {keys:?} at {}", self.at));
            }
        }
        let mut inside = self.inside.lock();
        let here = inside.entry(key).or_default();
        *here += 1;
        if *here > self.most {
            let (at, most) = (self.at, self.most);
            self.book
                .wrong(format!("{here} batches at {at}, which has {most}"));
        }
        Inside(self, key)
    }

    /// An event is taken.
    pub fn saw(&self, token: &Token) {
        let Some(by_key) = self.orders[token.entry] else {
            return;
        };
        let key = if by_key { token.key } else { 0 };
        let stream = (token.sender, token.class, key);
        let before = self.last.lock().insert(stream, token.n);
        if before.is_some_and(|before| before >= token.n) {
            let (at, n) = (self.at, token.n);
            self.book
                .wrong(format!("{n} of {stream:?} after {before:?} at {at}"));
        }
    }
}
