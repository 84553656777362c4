//! The checks while a runtime runs, and after its end.
//!
//! - Exclusion: an event marks its color while it runs, and finds no other mark.
//! - Order: the events of one poster in one color arrive by rising numbers.
//! - Nothing is lost: every accepted event is run or dropped, exactly once.
//! - Several colors: transfers between values keep their sum.
//! - Readers: no reader of a value is inside at the same time as a writer.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The payload of panics that belong to the soak.
pub(crate) struct Meant;

/// The number of colors that receive posts.
pub(crate) const COLORS: usize = 64;
/// The number of OS threads that make requests.
pub(crate) const ASKERS: usize = 3;
/// The number of values with colors of their own.
pub(crate) const VALUES: usize = 8;
/// The sum of all values.
pub(crate) const SUM: i64 = 1000 * VALUES as i64;

#[derive(Default)]
struct ColorChecks {
    inside: AtomicBool,
    /// For each asker, the number of its last event.
    last: [AtomicU64; ASKERS],
}

/// An amount, with a mark for those who are inside: the number of readers, or `WRITER`.
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
        // Relaxed, all, because the test is about what orders them.
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
    /// The number of tokens that were made, less those that were dropped.
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

    /// An object that a closure or a future owns. It must be dropped exactly once. Its drop may
    /// panic.
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

    /// Runs the body of an event of a color: the `number`th that asker `asker` has posted.
    pub(crate) fn event(&self, color: usize, asker: usize, number: u64, body: impl FnOnce()) {
        let checks = &self.colors[color];
        // Relaxed, all, because the test is about what orders the events of a color.
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

    /// Checks the state after the end of the runtime.
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

/// A token; see [`Checks::token`].
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
        // A panic while another one unwinds aborts the process, as everywhere.
        if self.panics && !std::thread::panicking() {
            panic_any(Meant);
        }
    }
}

/// Takes the mark away, even if the event panics.
struct Inside<'a>(&'a AtomicBool);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
