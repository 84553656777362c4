//! What is checked while a runtime runs, and after its end.
//!
//! - Exclusion: an event marks its color while it runs, and finds no other mark.
//! - Order: of each OS thread that posts to a color, events arrive by rising numbers.
//! - Nothing is lost: what was accepted is run or dropped, exactly once.
//! - Several colors: transfers between values keep their sum.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The payload of panics that belong to the soak.
pub(crate) struct Meant;

/// Colors that are posted to.
pub(crate) const COLORS: usize = 64;
/// OS threads that ask for things.
pub(crate) const ASKERS: usize = 3;
/// Values with colors of their own.
pub(crate) const VALUES: usize = 8;
/// What all values have together.
pub(crate) const SUM: i64 = 1000 * VALUES as i64;

#[derive(Default)]
struct ColorChecks {
    inside: AtomicBool,
    /// By asker: the number of the event that came last.
    last: [AtomicU64; ASKERS],
}

/// The state of all checks of one runtime.
pub(crate) struct Checks {
    colors: Vec<ColorChecks>,
    /// Tokens that were made, less those that were dropped.
    alive: AtomicU64,
    /// Events that ran.
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

    /// Something that a closure or a future owns. It must be dropped exactly once; its drop panics if told so.
    pub(crate) fn token(self: &Arc<Self>, panics: bool) -> Token {
        self.alive.fetch_add(1, Ordering::Relaxed);
        Token {
            checks: self.clone(),
            panics,
        }
    }

    /// Closures and futures that have not ended.
    pub(crate) fn waiting(&self) -> u64 {
        self.alive.load(Ordering::Relaxed)
    }

    /// Runs the body of an event of a color, which asker `asker` has posted as its `number`th.
    pub(crate) fn event(&self, color: usize, asker: usize, number: u64, body: impl FnOnce()) {
        let checks = &self.colors[color];
        // Relaxed, all: what orders the events of a color is what is tested.
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

    /// What has to hold after the end of the runtime.
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

/// See [`Checks::token`].
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
        // A panic while another one unwinds ends the process, as everywhere.
        if self.panics && !std::thread::panicking() {
            panic_any(Meant);
        }
    }
}

/// Takes the mark away, also if the event panics.
struct Inside<'a>(&'a AtomicBool);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
