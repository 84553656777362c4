//! The set of all connections and servers of one `Sockets`, and its end.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use tussah_core::{Handle, Notify};

use super::options::SocketOptions;
use super::pacer::Pacer;
use super::shown::{all, show};
use super::sink::EventSink;
use super::stats::{IoStats, SocketStats};
use crate::stage::network::{ALWAYS, Weak as WeakNetwork};
use crate::stage::observe::EdgeKind;
use crate::stage::{BuildError, Network, Sender};

/// The state that a [`Sockets`](super::Sockets) and its clones share.
pub(super) struct SocketSet {
    runtime: Handle,
    network: WeakNetwork,
    /// The queues as the network shows them, in the order of [`Queue`].
    shown: OnceLock<[(Arc<str>, u32); 4]>,
    table: Mutex<Table>,
    pub(super) reads: Arc<Pacer>,
    pub(super) writes: Arc<Pacer>,
    /// Notified when no socket is left.
    settled: Notify,
}

struct Table {
    entries: HashMap<u64, Arc<dyn Entry>>,
    closed: bool,
    /// The counts of sockets that no longer exist.
    past: SocketStats,
}

/// A connection, a server or an attempt to connect.
pub(super) trait Entry: Send + Sync {
    /// Ends the socket gracefully.
    fn close(&self);

    /// Adds the counts that remain when the socket no longer exists.
    fn add_to(&self, stats: &mut SocketStats);

    /// Adds the numbers of a socket that exists.
    fn add_now(&self, stats: &mut SocketStats);
}

/// A queue of sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Queue {
    Listen,
    Connect,
    Read,
    Write,
}

impl Queue {
    const ALL: [Self; 4] = [Self::Listen, Self::Connect, Self::Read, Self::Write];

    fn name(self) -> &'static str {
        match self {
            Self::Listen => "listen",
            Self::Connect => "connect",
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// Returns the name of the events in the queue.
    fn event(self) -> &'static str {
        match self {
            Self::Listen | Self::Connect => "connection",
            Self::Read | Self::Write => "packet",
        }
    }

    /// Returns the function that selects the numbers of this queue.
    fn of(self) -> fn(&SocketStats) -> IoStats {
        match self {
            Self::Listen => |stats| stats.listen,
            Self::Connect => |stats| stats.connect,
            Self::Read => |stats| stats.read,
            Self::Write => |stats| stats.write,
        }
    }
}

/// A socket's entry in the table, which is removed when this is dropped.
pub(super) struct Membership {
    set: Arc<SocketSet>,
    id: u64,
}

/// Returns a number that no other socket of the process has.
pub(super) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl SocketSet {
    /// Creates the set, and shows its queues in the network.
    ///
    /// # Errors
    /// Returns an error if a name is taken.
    pub(super) fn new(
        network: &Network,
        name: &str,
        position: &Arc<str>,
    ) -> Result<Arc<Self>, BuildError> {
        let time = &network.inner.time;
        let pacer = |set: &Weak<Self>, queue| {
            let seed = network.inner.runtime.seed();
            Arc::new(Pacer::new(set.clone(), queue, time.clone(), seed))
        };
        let set = Arc::new_cyclic(|set| Self {
            reads: pacer(set, Queue::Read),
            writes: pacer(set, Queue::Write),
            runtime: network.inner.runtime.clone(),
            network: network.downgrade(),
            shown: OnceLock::new(),
            table: Mutex::new(Table {
                entries: HashMap::new(),
                closed: false,
                past: SocketStats::default(),
            }),
            settled: Notify::new(),
        });
        let names = Queue::ALL.map(|at| Arc::<str>::from(format!("{name}.{}", at.name())));
        let queues = Queue::ALL.into_iter().zip(&names);
        let shown = queues.map(|(at, name)| {
            let of = at.of();
            let weak = Arc::downgrade(&set);
            let ask = move || {
                weak.upgrade()
                    .map_or_else(IoStats::default, |set| of(&set.stats()))
            };
            let controllers = match at {
                Queue::Read => Some(Arc::clone(&set.reads)),
                Queue::Write => Some(Arc::clone(&set.writes)),
                Queue::Listen | Queue::Connect => None,
            };
            show(network, [name, position], at.event(), controllers, ask)
        });
        let ids = all(network, shown)?;
        let ids: Vec<_> = names.into_iter().zip(ids).collect();
        let shown = ids.try_into().expect("there are four queues");
        // No other thread has the set yet.
        let _ = set.shown.set(shown);
        Ok(set)
    }

    /// Returns a sender of a queue's events to a stage. If the stage belongs to the same network,
    /// the network shows the edge.
    pub(super) fn sink<E: Send + 'static>(
        &self,
        queue: Queue,
        to: &Sender<E>,
        options: &SocketOptions,
    ) -> EventSink<E> {
        let shown = self
            .shown
            .get()
            .expect("it is initialized with the sockets");
        let (name, id) = &shown[queue as usize];
        let own = self.network.is(&to.stage.network);
        if let (true, Some(network)) = (own, self.network.upgrade()) {
            let connected = network.connect(name, &to.stage.name, (EdgeKind::Queue, 0), ALWAYS);
            connected.expect("nothing is sent to a queue of sockets, so there is no cycle");
        }
        EventSink {
            to: Sender {
                offers: false,
                stage: Arc::clone(&to.stage),
                // The number belongs to another stage in another network.
                from: if own { *id } else { 0 },
            },
            when_rejected: options.when_rejected,
        }
    }

    /// Adds a socket.
    ///
    /// # Errors
    /// Returns an error if the sockets were closed.
    pub(super) fn join(
        self: &Arc<Self>,
        id: u64,
        entry: Arc<dyn Entry>,
    ) -> io::Result<Arc<Membership>> {
        self.table.lock().insert(id, entry)?;
        Ok(Arc::new(Membership {
            set: Arc::clone(self),
            id,
        }))
    }

    /// Starts the thread of a socket.
    ///
    /// # Errors
    /// Returns an error if the runtime is shut down; the socket is then closed.
    pub(super) fn spawn(
        &self,
        id: u64,
        options: &SocketOptions,
        thread: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let spawned = match &options.color {
            Some(color) => self.runtime.try_spawn_in(color(id), thread),
            None => self.runtime.try_spawn(thread),
        };
        // The thread is detached, and reports its end by an event.
        spawned.map(drop).map_err(|_| {
            let text = "the runtime of the sockets is shut down";
            io::Error::new(io::ErrorKind::NotConnected, text)
        })
    }

    /// Counts an attempt to connect that has ended.
    pub(super) fn count_attempt(&self, made: bool) {
        let past = &mut self.table.lock().past.connect;
        *if made {
            &mut past.finished
        } else {
            &mut past.failed
        } += 1;
    }

    /// Closes all sockets gracefully. No socket can be added afterwards.
    pub(super) fn close(&self) {
        let mut table = self.table.lock();
        table.closed = true;
        let entries: Vec<_> = table.entries.values().cloned().collect();
        drop(table);
        for entry in entries {
            entry.close();
        }
    }

    /// Waits until no socket is left.
    pub(super) async fn settled(&self) {
        loop {
            let mut settled = pin!(self.settled.notified());
            settled.as_mut().enable();
            if self.table.lock().entries.is_empty() {
                return;
            }
            settled.await;
        }
    }

    /// Returns the number of sockets.
    pub(super) fn len(&self) -> usize {
        self.table.lock().entries.len()
    }

    /// Returns the name of a queue in the network.
    pub(super) fn name_of(&self, queue: Queue) -> &str {
        let shown = self
            .shown
            .get()
            .expect("it is initialized with the sockets");
        &shown[queue as usize].0
    }

    pub(super) fn stats(&self) -> SocketStats {
        let table = self.table.lock();
        let mut stats = table.past;
        for entry in table.entries.values() {
            entry.add_to(&mut stats);
            entry.add_now(&mut stats);
        }
        stats
    }
}

impl Drop for SocketSet {
    fn drop(&mut self) {
        if let (Some(network), Some(shown)) = (self.network.upgrade(), self.shown.get()) {
            shown.iter().for_each(|(_, id)| network.remove(*id));
        }
    }
}

impl Membership {
    pub(super) fn set(&self) -> &SocketSet {
        &self.set
    }

    /// Replaces the socket in this place.
    ///
    /// # Errors
    /// Returns an error if the sockets were closed.
    pub(super) fn replace(self: &Arc<Self>, entry: Arc<dyn Entry>) -> io::Result<Arc<Self>> {
        self.set.table.lock().insert(self.id, entry)?;
        Ok(Arc::clone(self))
    }
}

impl Table {
    fn insert(&mut self, id: u64, entry: Arc<dyn Entry>) -> io::Result<()> {
        if self.closed {
            let text = "the sockets were closed before";
            return Err(io::Error::new(io::ErrorKind::NotConnected, text));
        }
        self.entries.insert(id, entry);
        Ok(())
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut table = self.set.table.lock();
        let entry = table.entries.remove(&self.id);
        if let Some(entry) = &entry {
            entry.add_to(&mut table.past);
        }
        let empty = table.entries.is_empty();
        drop(table);
        // The entry is dropped while no lock is held, because it may be the last reference to a
        // user's data.
        drop(entry);
        if empty {
            self.set.settled.notify_waiters();
        }
    }
}
