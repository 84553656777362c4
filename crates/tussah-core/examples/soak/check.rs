//! The checks that are made while a runtime runs and after it has ended.
//!
//! - Exclusion: an event marks its color while it runs, and must not find another mark.
//! - Order: the events that one poster sends to one color arrive in the order of their numbers.
//! - Completeness: every accepted event is either run or dropped, exactly once.
//! - Several colors: transfers between values do not change their sum.
//! - Readers: no reader of a value is inside at the same time as a writer.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The payload of the panics that the soak test causes on purpose.
pub(crate) struct Meant;

/// The number of colors that receive posts.
pub(crate) const COLORS: usize = 64;
/// The number of OS threads that make requests (the askers).
pub(crate) const ASKERS: usize = 3;
/// The number of values, each with its own color.
pub(crate) const VALUES: usize = 8;
/// The sum of all values.
pub(crate) const SUM: i64 = 1000 * VALUES as i64;

#[derive(Default)]
struct ColorChecks {
    inside: AtomicBool,
    /// The number of the last event of each asker.
    last: [AtomicU64; ASKERS],
}

/// An amount, with a mark for those that are inside: the number of readers, or `WRITER`.
pub(crate) struct Value {
    amount: i64,
    inside: AtomicU32,
}

const WRITER: u32 = 1 << 31;

impl Value {
    pub(crate) fn new(amount: i64) -> Self {
        Self {
            amount,
            inside: AtomicU32::new(0),
        }
    }

    /// Runs the body of a writer.
    pub(crate) fn write<R>(&mut self, checks: &Checks, body: impl FnOnce(&mut i64) -> R) -> R {
        // All these accesses are relaxed, because the test is about what orders them.
        if self.inside.swap(WRITER, Ordering::Relaxed) != 0 {
            checks.broken("a writer is not alone".to_owned());
        }
        let result = body(&mut self.amount);
        self.inside.store(0, Ordering::Relaxed);
        result
    }

    /// Runs the body of a reader.
    pub(crate) fn read<R>(&self, checks: &Checks, body: impl FnOnce(i64) -> R) -> R {
        if self.inside.fetch_add(1, Ordering::Relaxed) & WRITER != 0 {
            checks.broken("a reader is beside a writer".to_owned());
        }
        let before = self.amount;
        let result = body(before);
        if self.amount != before {
            checks.broken("a value changed while it was read".to_owned());
        }
        self.inside.fetch_sub(1, Ordering::Relaxed);
        result
    }
}

/// The state of all checks of one runtime.
pub(crate) struct Checks {
    colors: Vec<ColorChecks>,
    /// The number of tokens that were made, minus those that were dropped.
    alive: AtomicU64,
    /// The number of events that ran.
    pub(crate) ran: AtomicU64,
    broken: parking_lot::Mutex<Option<String>>,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            colors: (0..COLORS).map(|_| ColorChecks::default()).collect(),
            alive: AtomicU64::new(0),
            ran: AtomicU64::new(0),
            broken: parking_lot::Mutex::new(None),
        }
    }
}

impl Checks {
    pub(crate) fn broken(&self, what: String) {
        self.broken.lock().get_or_insert(what);
    }

    /// Returns an object for a closure or a future to own. It must be dropped exactly once. Its
    /// `drop` may panic.
    pub(crate) fn token(self: &Arc<Self>, panics: bool) -> Token {
        self.alive.fetch_add(1, Ordering::Relaxed);
        Token {
            checks: self.clone(),
            panics,
        }
    }

    /// The number of closures and futures that have not ended.
    pub(crate) fn waiting(&self) -> u64 {
        self.alive.load(Ordering::Relaxed)
    }

    /// Runs the body of an event of a color: event `number` of those that asker `asker` has posted.
    pub(crate) fn event(&self, color: usize, asker: usize, number: u64, body: impl FnOnce()) {
        let checks = &self.colors[color];
        // All these accesses are relaxed, because the test is about what orders the events of a
        // color.
        if checks.inside.swap(true, Ordering::Relaxed) {
            self.broken(format!("two events of color {color} run at the same time"));
        }
        let _inside = Inside(&checks.inside);
        let last = checks.last[asker].swap(number, Ordering::Relaxed);
        if last >= number {
            self.broken(format!(
                "event {number} of color {color} ran after event {last}"
            ));
        }
        self.ran.fetch_add(1, Ordering::Relaxed);
        body();
    }

    /// Checks the state after the runtime has ended.
    pub(crate) fn at_the_end(&self) -> Result<(), String> {
        if let Some(broken) = self.broken.lock().take() {
            return Err(broken);
        }
        match self.alive.load(Ordering::Acquire) {
            0 => Ok(()),
            alive => Err(format!(
                "{alive} closures or futures were neither run nor dropped"
            )),
        }
    }
}

/// A token (see [`Checks::token`]).
pub(crate) struct Token {
    checks: Arc<Checks>,
    panics: bool,
}

impl Drop for Token {
    fn drop(&mut self) {
        if self.checks.alive.fetch_sub(1, Ordering::Release) == 0 {
            self.checks
                .broken("a closure or a future was dropped twice".to_owned());
        }
        // A panic during the unwinding of another panic aborts the process, here as everywhere.
        if self.panics && !std::thread::panicking() {
            panic_any(Meant);
        }
    }
}

/// Removes the mark, even if the event panics.
struct Inside<'a>(&'a AtomicBool);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
