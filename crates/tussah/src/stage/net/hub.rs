//! All sockets that belong together: how many there are, and how they are closed.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tussah_core::{Handle, Notify};

use super::options::SocketOptions;
use super::stats::SocketStats;

/// What a [`Sockets`](super::Sockets) and its clones share.
pub(super) struct Hub {
    pub(super) runtime: Handle,
    table: Mutex<Table>,
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
    fn kind(&self) -> Kind;

    /// Has it come to its end in order.
    fn close(&self);

    /// Adds what it has counted.
    fn add_to(&self, stats: &mut SocketStats);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Connection,
    Server,
    Attempt,
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
    pub(super) fn new(runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            runtime,
            table: Mutex::new(Table {
                members: HashMap::new(),
                closed: false,
                past: SocketStats::default(),
            }),
            settled: Notify::new(),
        })
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
    pub(super) fn spawn(
        &self,
        id: u64,
        options: &SocketOptions,
        thread: impl Future<Output = ()> + Send + 'static,
    ) {
        // It goes on by itself, and tells of its end by an event.
        drop(match &options.color {
            Some(color) => self.runtime.spawn_in(color(id), thread),
            None => self.runtime.spawn(thread),
        });
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

    pub(super) fn stats(&self) -> SocketStats {
        let table = self.table.lock();
        let mut stats = table.past.clone();
        for member in table.members.values() {
            *match member.kind() {
                Kind::Connection => &mut stats.connections,
                Kind::Server => &mut stats.servers,
                Kind::Attempt => &mut stats.connect.queued,
            } += 1;
            member.add_to(&mut stats);
        }
        stats
    }
}

impl Membership {
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
