//! Queues of the runtime, shown as stages of a network.

use std::sync::Arc;
use std::time::Duration;

use tussah_core::Handle;

use super::pacer::Pacer;
use super::stats::IoStats;
use crate::stage::control::{Order, Servlets};
use crate::stage::network::{ALWAYS, Inspect, Known, here};
use crate::stage::observe::{Responses, StageStats};
use crate::stage::state::Digest;
use crate::stage::{BuildError, Network};

/// A queue that is shown as a stage without being one.
struct Shown {
    name: Arc<str>,
    /// Its controllers, if it can have any.
    controllers: Option<Arc<Pacer>>,
    ask: Box<dyn Fn() -> IoStats + Send + Sync>,
}

/// Shows a queue with its source position in a network, and returns its number there.
///
/// # Errors
/// Returns an error if the name is taken.
pub(super) fn show(
    network: &Network,
    [name, position]: [&Arc<str>; 2],
    event: &'static str,
    controllers: Option<Arc<Pacer>>,
    ask: impl Fn() -> IoStats + Send + Sync + 'static,
) -> Result<u32, BuildError> {
    let shown = Shown {
        name: Arc::clone(name),
        controllers,
        ask: Box::new(ask),
    };
    let id = network.number();
    network.add(Known {
        id,
        name: Arc::clone(name),
        position: Arc::clone(position),
        event,
        stage: Arc::new(shown),
        making: ALWAYS,
    })?;
    Ok(id)
}

/// Collects the numbers of queues that are shown one after the other.
///
/// # Errors
/// Returns an error if one of the queues cannot be shown; the queues before it are then removed.
pub(super) fn all(
    network: &Network,
    queues: impl Iterator<Item = Result<u32, BuildError>>,
) -> Result<Vec<u32>, BuildError> {
    let mut ids = Vec::new();
    for shown in queues {
        match shown {
            Ok(id) => ids.push(id),
            Err(error) => {
                ids.iter().for_each(|id| network.remove(*id));
                return Err(error);
            }
        }
    }
    Ok(ids)
}

impl Network {
    /// Shows the runtime's own queues as stages in the [graph](Self::graph) and in
    /// [recordings](Self::record). Events cannot be sent to these stages. Their names are:
    ///
    /// - `runtime.workers`: colors that are ready to run;
    /// - `runtime.files`: file operations in the kernel;
    /// - `runtime.blocking`: the jobs of the blocking pool, including file operations on systems
    ///   without io_uring.
    ///
    /// # Errors
    /// Returns an error if one of the names is taken, for example by an earlier call. If this
    /// method returns an error, it adds no queues to the network.
    ///
    /// # Examples
    /// ```
    /// use tussah::stage::Network;
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// let network = Network::on(runtime.handle(), "network");
    /// network.show_runtime()?;
    /// for stage in network.stats() {
    ///     println!("{}: {} queued, {} in service", stage.name, stage.queued, stage.in_service);
    /// }
    /// # assert_eq!(network.stats().len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn show_runtime(&self) -> Result<(), BuildError> {
        let (position, runtime) = (here(), &self.inner.runtime);
        let of = |ask: fn(&Handle) -> IoStats| {
            let runtime = runtime.clone();
            move || ask(&runtime)
        };
        let workers = of(|runtime| {
            let workers = runtime.stats().workers;
            IoStats {
                queued: workers.iter().map(|one| one.queue_len as u64).sum(),
                finished: workers.iter().map(|one| one.turns).sum(),
                ..IoStats::default()
            }
        });
        let files = of(|runtime| IoStats {
            in_service: runtime.driver().files_in_flight() as u64,
            ..IoStats::default()
        });
        let blocking = of(|runtime| {
            let blocking = runtime.blocking().stats();
            IoStats {
                queued: blocking.queued as u64,
                in_service: blocking.running as u64,
                finished: blocking.completed,
                failed: blocking.panicked,
                ..IoStats::default()
            }
        });
        let queues = [
            ("runtime.workers", "color", workers),
            ("runtime.files", "operation", files),
            ("runtime.blocking", "job", blocking),
        ];
        let shown = queues
            .into_iter()
            .map(|(name, event, ask)| show(self, [&name.into(), &position], event, None, ask));
        all(self, shown)?;
        Ok(())
    }
}

impl Inspect for Shown {
    fn stats_and_responses(self: Arc<Self>) -> (StageStats, Digest) {
        (self.stats(), Digest::default())
    }

    fn stats(self: Arc<Self>) -> StageStats {
        let io = (self.ask)();
        let ended = io.finished + io.failed + io.refused;
        StageStats {
            name: Arc::clone(&self.name),
            gate: "open",
            queued: io.queued,
            queue_len: io.queued,
            queue_max: io.queue_max,
            threshold: io.queue_max,
            queued_by_class: vec![io.queued],
            keys: 0,
            queue_bytes: io.queued_bytes,
            in_service: io.in_service,
            servlets: Servlets::default(),
            cap: None,
            waiting: 0,
            batch_max: 1,
            order: Order::default(),
            target: None,
            arrived: ended + io.queued + io.in_service,
            refused: io.refused,
            shed: 0,
            rejected_by: Vec::new(),
            would_reject: 0,
            expired: 0,
            cancelled: 0,
            shut_down: 0,
            finished: io.finished + io.failed,
            failed: io.failed,
            panicked: 0,
            lost: 0,
            closed: None,
            batches: 0,
            called: 0,
            service: Duration::ZERO,
            compute: Duration::ZERO,
            response: Responses::default(),
            controllers: self
                .controllers
                .as_ref()
                .map_or_else(Vec::new, |pacer| pacer.controllers()),
        }
    }
}
