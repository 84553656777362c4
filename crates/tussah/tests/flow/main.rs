//! Tests of flow graphs: modules, edges, flows, and the ends of items.
//!
//! They are a program of their own, because rustc compiles a program on one CPU for most of the
//! time.

mod batch;
mod build;
mod calls;
mod change;
#[cfg(feature = "cli")]
mod cli;
#[path = "../it/common.rs"]
mod common;
mod dropped;
mod ends;
mod flows;
mod fused;
mod fused_end;
mod fused_order;
mod generic;
mod halt;
mod kinds;
mod limit;
mod ordered;
mod ordered_batch;
mod proxied;
mod proxy;
mod room;
mod send;
mod shards;
#[cfg(feature = "standard-modules")]
mod standard;
mod start;
mod stop;
mod swap;
mod swap_blocking;
mod tap;
#[cfg(feature = "cli")]
mod testing;
mod weave;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use common::{by_hand, idle, run, runtime};
use futures_lite::future::or;
use parking_lot::Mutex;
use tussah::flow::{Args, AsyncOut, Running, module};
use tussah::{ManualClock, yield_now};

/// The notes of modules.
#[derive(Clone, Debug, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, note: impl ToString) {
        self.0.lock().push(note.to_string());
    }

    /// Takes the notes out, in order.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    /// Takes the notes out, sorted.
    fn sorted(&self) -> Vec<String> {
        let mut notes = self.take();
        notes.sort();
        notes
    }

    fn args(&self) -> Args {
        Args::new().with("notes", self.clone())
    }
}

/// Notes each item.
struct Note<T> {
    notes: Notes,
    of: std::marker::PhantomData<fn(T)>,
}

#[module]
impl<T: Debug + Send + 'static> Note<T> {
    fn init(notes: Notes) -> Self {
        let of = std::marker::PhantomData;
        Self { notes, of }
    }

    fn run(&mut self, item: T) {
        self.notes.add(format!("{item:?}"));
    }
}

/// Sends all numbers below its parameter.
struct Below(u64);

#[module]
impl Below {
    fn init(below: u64) -> Self {
        Self(below)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..self.0 {
            out.send(number).await;
        }
    }
}

/// Lets the other threads of the runtime run.
async fn turns() {
    for _ in 0..1000 {
        yield_now().await;
    }
}

/// Waits until the graph is at rest.
async fn settled(running: &Running) {
    let mut last = None;
    loop {
        let stats = running.network().stats();
        let is_busy = stats.iter().any(|it| it.queue_len + it.in_service > 0);
        let all: u64 = stats.iter().map(|it| it.arrived + it.called).sum();
        if !is_busy && last == Some(all) {
            return;
        }
        last = (!is_busy).then_some(all);
        yield_now().await;
    }
}

/// Lets time pass until the future has ended.
async fn in_time(clock: &ManualClock, future: impl Future<Output = ()>) {
    let passes = async {
        loop {
            turns().await;
            clock.advance(Duration::from_millis(100));
        }
    };
    or(future, passes).await;
}

/// The name that the module's type has in errors.
fn name_of<T>() -> &'static str {
    std::any::type_name::<T>()
}
