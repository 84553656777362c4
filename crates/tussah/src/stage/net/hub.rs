//! All sockets that belong together: how many there are, and how they are closed.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use tussah_core::{Handle, Notify};

use super::desk::Desk;
use super::options::SocketOptions;
use super::shown::{all, show};
use super::stats::{IoStats, SocketStats};
use super::teller::Teller;
use crate::stage::network::Weak as WeakNetwork;
use crate::stage::table::ALWAYS;
use crate::stage::{BuildError, EdgeKind, Network, Sender};

/// What a [`Sockets`](super::Sockets) and its clones share.
pub(super) struct Hub {
    runtime: Handle,
    network: WeakNetwork,
    /// The queues as the network shows them, in the order of [`Queue`].
    shown: OnceLock<[(Arc<str>, u32); 4]>,
    table: Mutex<Table>,
    pub(super) reads: Arc<Desk>,
    pub(super) writes: Arc<Desk>,
    /// There is no socket any more.
    settled: Notify,
}

struct Table {
    members: HashMap<u64, Arc<dyn Member>>,
    closed: bool,
    /// What those have counted that are gone.
    past: SocketStats,
}

/// A connection, a server or an attempt to connect.
pub(super) trait Member: Send + Sync {
    /// Has it come to its end in order.
    fn close(&self);

    /// Adds what it has counted, which stays when it is gone.
    fn add_to(&self, stats: &mut SocketStats);

    /// Adds what it is as long as it is there.
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

    /// What goes through it.
    fn event(self) -> &'static str {
        match self {
            Self::Listen | Self::Connect => "connection",
            Self::Read | Self::Write => "packet",
        }
    }

    /// Its part of what all tell.
    fn of(self) -> fn(&SocketStats) -> IoStats {
        match self {
            Self::Listen => |stats| stats.listen,
            Self::Connect => |stats| stats.connect,
            Self::Read => |stats| stats.read,
            Self::Write => |stats| stats.write,
        }
    }
}

/// A place in the table, until it is dropped.
pub(super) struct Membership {
    hub: Arc<Hub>,
    id: u64,
}

/// A number that no other socket of the process has.
pub(super) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Hub {
    /// Makes one, and shows its queues in the network.
    ///
    /// # Errors
    /// If a name is taken.
    pub(super) fn new(network: &Network, name: &str) -> Result<Arc<Self>, BuildError> {
        let time = &network.inner.time;
        let desk = |hub: &Weak<Self>, queue| {
            let seed = network.inner.runtime.seed();
            Arc::new(Desk::new(hub.clone(), queue, time.clone(), seed))
        };
        let hub = Arc::new_cyclic(|hub| Self {
            reads: desk(hub, Queue::Read),
            writes: desk(hub, Queue::Write),
            runtime: network.inner.runtime.clone(),
            network: network.downgrade(),
            shown: OnceLock::new(),
            table: Mutex::new(Table {
                members: HashMap::new(),
                closed: false,
                past: SocketStats::default(),
            }),
            settled: Notify::new(),
        });
        let names = Queue::ALL.map(|at| Arc::<str>::from(format!("{name}.{}", at.name())));
        let queues = Queue::ALL.into_iter().zip(&names);
        let shown = queues.map(|(at, name)| {
            let of = at.of();
            let weak = Arc::downgrade(&hub);
            let ask = move || {
                weak.upgrade()
                    .map_or_else(IoStats::default, |hub| of(&hub.stats()))
            };
            let controllers = match at {
                Queue::Read => Some(Arc::clone(&hub.reads)),
                Queue::Write => Some(Arc::clone(&hub.writes)),
                Queue::Listen | Queue::Connect => None,
            };
            show(network, name, at.event(), controllers, ask)
        });
        let ids = all(network, shown)?;
        let ids: Vec<_> = names.into_iter().zip(ids).collect();
        let shown = ids.try_into().expect("there are four queues");
        // Nobody else has it yet.
        let _ = hub.shown.set(shown);
        Ok(hub)
    }

    /// What tells a stage of what comes out of a queue. The network shows the edge, if the stage is one of its own.
    pub(super) fn teller<E: Send + 'static>(
        &self,
        queue: Queue,
        to: &Sender<E>,
        options: &SocketOptions,
    ) -> Teller<E> {
        let shown = self.shown.get().expect("it is set when the hub is made");
        let (name, id) = &shown[queue as usize];
        let own = self.network.is(&to.stage.network);
        if let (true, Some(network)) = (own, self.network.upgrade()) {
            let connected = network.connect(name, &to.stage.name, (EdgeKind::Queue, 0), ALWAYS);
            connected.expect("nothing is sent to a queue of sockets, so there is no cycle");
        }
        Teller {
            to: Sender {
                offers: false,
                stage: Arc::clone(&to.stage),
                // In another network this is the number of another stage.
                from: if own { *id } else { 0 },
            },
            when_rejected: options.when_rejected,
        }
    }

    /// Adds a socket.
    ///
    /// # Errors
    /// If the sockets were closed.
    pub(super) fn join(
        self: &Arc<Self>,
        id: u64,
        member: Arc<dyn Member>,
    ) -> io::Result<Arc<Membership>> {
        self.table.lock().insert(id, member)?;
        Ok(Arc::new(Membership {
            hub: Arc::clone(self),
            id,
        }))
    }

    /// Starts the thread of a socket.
    ///
    /// # Errors
    /// If the runtime is shut down; the socket is closed then.
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
        // It goes on by itself, and tells of its end by an event.
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

    /// Closes all sockets in order, and lets no other be added.
    pub(super) fn close(&self) {
        let mut table = self.table.lock();
        table.closed = true;
        let members: Vec<_> = table.members.values().cloned().collect();
        drop(table);
        for member in members {
            member.close();
        }
    }

    /// Waits until there is no socket.
    pub(super) async fn settled(&self) {
        loop {
            let mut settled = pin!(self.settled.notified());
            settled.as_mut().enable();
            if self.table.lock().members.is_empty() {
                return;
            }
            settled.await;
        }
    }

    /// How many sockets there are.
    pub(super) fn len(&self) -> usize {
        self.table.lock().members.len()
    }

    /// What a queue is called in the network.
    pub(super) fn name_of(&self, queue: Queue) -> &str {
        let shown = self.shown.get().expect("it is set when the hub is made");
        &shown[queue as usize].0
    }

    pub(super) fn stats(&self) -> SocketStats {
        let table = self.table.lock();
        let mut stats = table.past;
        for member in table.members.values() {
            member.add_to(&mut stats);
            member.add_now(&mut stats);
        }
        stats
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        if let (Some(network), Some(shown)) = (self.network.upgrade(), self.shown.get()) {
            shown.iter().for_each(|(_, id)| network.remove(*id));
        }
    }
}

impl Membership {
    pub(super) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Puts another socket in the place.
    ///
    /// # Errors
    /// If the sockets were closed.
    pub(super) fn replace(self: &Arc<Self>, member: Arc<dyn Member>) -> io::Result<Arc<Self>> {
        self.hub.table.lock().insert(self.id, member)?;
        Ok(Arc::clone(self))
    }
}

impl Table {
    fn insert(&mut self, id: u64, member: Arc<dyn Member>) -> io::Result<()> {
        if self.closed {
            let text = "the sockets were closed before";
            return Err(io::Error::new(io::ErrorKind::NotConnected, text));
        }
        self.members.insert(id, member);
        Ok(())
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut table = self.hub.table.lock();
        let member = table.members.remove(&self.id);
        if let Some(member) = &member {
            member.add_to(&mut table.past);
        }
        let empty = table.members.is_empty();
        drop(table);
        // Under no lock: it may be the last reference to what a user keeps with it.
        drop(member);
        if empty {
            self.hub.settled.notify_waiters();
        }
    }
}
