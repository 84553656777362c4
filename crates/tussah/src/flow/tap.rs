//! Taps, which show the items of an edge as text while the graph runs.

use std::any::{Any, type_name};
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_channel::{Receiver, Sender, TrySendError};
use parking_lot::Mutex;
use tussah_core::caught;
use tussah_weave::Signature;

use super::flows::{Flow, Key};
use super::keepers::Keepers;
use super::outlet::AnyOutlet;

/// Bound, in items: the maximum number of unread items that a tap holds. The tap skips further
/// items.
pub(crate) const HELD_MAX: usize = 256;

/// Bound, in bytes: the maximum length of the text of a tapped item. Longer text is cut off. An
/// item may hold a whole file.
const TEXT_MAX: usize = 4096;

/// A function that writes an item as text.
pub type Show<T> = fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result;

/// An item as text.
pub(crate) struct Shown<'a, T>(pub(crate) &'a T, pub(crate) Show<T>);

impl<T> fmt::Display for Shown<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.1)(self.0, f)
    }
}

/// A tap on an edge, which shows the edge's items as text. [`Running::tap`](super::Running::tap)
/// creates it. Dropping this value ends the tap.
///
/// A tap never makes a sender wait: it holds up to 256 items, and skips further items until some
/// are read. The sender converts each item to text, unless the tap skips the item. On an edge
/// without a tap, the sender only checks a flag for each item.
pub struct Tap {
    items: Receiver<TappedItem>,
    skipped: Arc<AtomicU64>,
    keepers: Arc<Keepers>,
}

impl Tap {
    pub(crate) fn new(keepers: &Arc<Keepers>) -> (Self, TapEnd) {
        let (sender, items) = async_channel::bounded(HELD_MAX);
        let skipped = Arc::default();
        let end = TapEnd {
            items: sender,
            skipped: Arc::clone(&skipped),
        };
        let tap = Self {
            items,
            skipped,
            keepers: Arc::clone(keepers),
        };
        (tap, end)
    }

    /// Waits for the next item. Returns `None` after the graph, or the instance that sends the
    /// items, has ended.
    ///
    /// # Cancellation
    /// If the future is dropped, no item is lost.
    pub async fn next(&mut self) -> Option<TappedItem> {
        self.keepers.unless_halted(self.items.recv()).await?.ok()
    }

    /// Returns the next item if the tap holds one, without waiting.
    pub fn try_next(&mut self) -> Option<TappedItem> {
        self.items.try_recv().ok()
    }

    /// Returns the number of items that the tap has skipped so far because it was full.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap")
            .field("held", &self.items.len())
            .field("skipped", &self.skipped())
            .finish_non_exhaustive()
    }
}

/// An item that a [`Tap`] has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TappedItem {
    /// The item, formatted by `Display` or, if its type does not implement `Display`, by `Debug`.
    /// If the type implements neither trait, the text is the name of the type. The text is cut off
    /// after 4096 bytes.
    pub text: String,
    /// The name of the item's flow, or `None` if the item belongs to no flow.
    pub flow: Option<Key>,
}

/// The sending end of a tap. The tapped edge holds this end.
#[derive(Clone)]
pub struct TapEnd {
    items: Sender<TappedItem>,
    skipped: Arc<AtomicU64>,
}

impl TapEnd {
    fn skip(&self) {
        // Relaxed: the counter protects nothing else.
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    fn send<T>(&self, flow: &Flow, item: &T, show: Option<Show<T>>) {
        let item = TappedItem {
            text: text(item, show),
            flow: flow.key().cloned(),
        };
        if let Err(TrySendError::Full(_)) = self.items.try_send(item) {
            self.skip();
        }
    }
}

/// Returns an item as text. The functions of the item's type may panic.
fn text<T>(item: &T, show: Option<Show<T>>) -> String {
    let Some(show) = show else {
        return type_name::<T>().to_owned();
    };
    let mut text = Text(String::new());
    // An error says that the text is full.
    match caught(|| text.write_fmt(format_args!("{}", Shown(item, show)))) {
        Some(_) => text.0,
        None => format!("{}: showing it panicked", type_name::<T>()),
    }
}

/// A string of at most [`TEXT_MAX`] bytes.
struct Text(String);

impl fmt::Write for Text {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = TEXT_MAX - self.0.len();
        if more.len() <= room {
            self.0.push_str(more);
            return Ok(());
        }
        self.0.push_str(head(more, room));
        Err(fmt::Error)
    }
}

/// Returns the first bytes of a string, up to a whole character.
fn head(text: &str, bytes: usize) -> &str {
    let mut places = (0..=bytes.min(text.len())).rev();
    let cut = places.find(|&at| text.is_char_boundary(at));
    &text[..cut.unwrap_or(0)]
}

/// Returns as much of a string as a tap shows.
#[cfg(feature = "cli")]
pub(crate) fn cut(text: &str) -> &str {
    head(text, TEXT_MAX)
}

/// The taps of an edge.
pub(crate) struct Taps<T> {
    /// True while the list has taps. The lock orders its changes.
    is_tapped: AtomicBool,
    list: Mutex<Vec<(TapEnd, Option<Show<T>>)>>,
}

impl<T> Default for Taps<T> {
    fn default() -> Self {
        Self {
            is_tapped: AtomicBool::new(false),
            list: Mutex::default(),
        }
    }
}

impl<T> Taps<T> {
    pub(crate) fn add(&self, end: TapEnd, show: Option<Show<T>>) {
        let mut list = self.list.lock();
        list.retain(|(end, _)| !end.items.is_closed());
        list.push((end, show));
        self.is_tapped.store(true, Ordering::Relaxed);
    }

    /// Returns whether something taps the edge.
    #[inline(always)]
    pub(crate) fn are_any(&self) -> bool {
        // Relaxed: where a tap begins is of no consequence.
        self.is_tapped.load(Ordering::Relaxed)
    }

    /// Shows an item to the taps, before it is sent.
    #[cold]
    pub(crate) fn show(&self, flow: &Flow, item: &T) {
        // Under no lock, because it calls functions of the item's type.
        for (end, show) in self.with_room() {
            end.send(flow, item, show);
        }
    }

    /// Returns the taps that have room for an item; the others skip it.
    fn with_room(&self) -> Vec<(TapEnd, Option<Show<T>>)> {
        let mut list = self.list.lock();
        list.retain(|(end, _)| !end.items.is_closed());
        self.is_tapped.store(!list.is_empty(), Ordering::Relaxed);
        let has_room = |(end, _): &&(TapEnd, _)| {
            let has_room = !end.items.is_full();
            if !has_room {
                end.skip();
            }
            has_room
        };
        list.iter().filter(has_room).cloned().collect()
    }
}

/// Functions that format items: a [`Show`] or a [`ByDebug`] for each item type.
pub type Shows = Vec<Box<dyn Any + Send + Sync>>;

/// A function that writes an item with `Debug`. Only types without `Display` need it.
pub(crate) struct ByDebug<T>(pub(crate) Show<T>);

/// Returns the function for a type.
pub(crate) fn show_of<T: 'static>(shows: &Shows) -> Option<Show<T>> {
    let by_display = shows.iter().find_map(|show| show.downcast_ref()).copied();
    let by_debug = || shows.iter().find_map(|show| show.downcast_ref());
    by_display.or_else(|| by_debug().map(|ByDebug(show)| *show))
}

/// The output ports of an instance while it runs.
pub(crate) trait Ports: Send + Sync {
    /// Calls `f` with each port and its name.
    fn each(&self, f: &mut dyn FnMut(&'static str, &dyn AnyOutlet));

    /// Returns the functions that show the items of the instance's ports.
    fn shows(&self) -> Shows;

    /// Returns the signature of the instance's first module.
    fn signature(&self) -> Signature;

    /// Returns the parts that stay when the module is swapped, which are a
    /// [`Rest`](super::swap::Rest), unless the instance is closed.
    fn rest(&self) -> Option<Box<dyn Any>>;
}

/// An edge of a graph by its names.
pub(crate) struct NamedEdge {
    /// The name of an instance and that of its port.
    pub(crate) from: (String, String),
    pub(crate) to: (String, String),
    pub(crate) is_call: bool,
    /// The instances that send the items, and the number of the edge among those of the port.
    pub(crate) places: Vec<(usize, usize)>,
}

impl NamedEdge {
    /// Returns whether a user means this edge by `a.out -> b.run`, or by `a.out` alone.
    pub(crate) fn is_called(&self, edge: &str) -> bool {
        let is_end = |text: &str, (name, port): &(String, String), default: &str| {
            let text = text.trim();
            let whole = text.strip_suffix(port.as_str());
            let whole = whole.and_then(|rest| rest.strip_suffix('.'));
            whole == Some(name) || (port == default && text == name)
        };
        let (from, to) = match edge.split_once("->") {
            Some((from, to)) => (from, Some(to)),
            None => (edge, None),
        };
        is_end(from, &self.from, "out") && to.is_none_or(|to| is_end(to, &self.to, "run"))
    }
}

/// Writes the edge as in Weave, without the names of default ports.
impl fmt::Display for NamedEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |(name, port): &(String, String), default| match port == default {
            true => name.clone(),
            false => format!("{name}.{port}"),
        };
        let (from, to) = (end(&self.from, "out"), end(&self.to, "run"));
        write!(f, "{from} -> {to}")
    }
}
