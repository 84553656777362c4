//! The governor of a network, which runs when a stage is active.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Network;
use super::inspect::Inspect;
use super::table::Known;
use crate::stage::control::process::{Cause, Governor, StageLoad};
use crate::stage::run::Shared;

/// The shortest time between two plans, in nanoseconds. A plan reads the state of all stages, so it
/// must be rare. A stage that lacks a servlet for this time suffers little.
const INTERVAL_NS: u64 = 10_000_000;

/// The properties that determine a stage's share of the servlets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rank {
    pub(crate) priority: u8,
    pub(crate) frees_resources: bool,
}

/// The load of a stage, for the governor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    pub(crate) rank: Rank,
    pub(crate) busy: usize,
    pub(crate) wanted: usize,
    pub(crate) allowed: usize,
    /// The governor's cap for the stage; unbounded before the first plan.
    pub(crate) cap: usize,
    pub(crate) queue_len: u64,
    /// The number of events that were refused, shed or expired since the stage was created.
    pub(crate) rejected: u64,
    /// The total service time of the batches that have ended since the stage was created, including
    /// waits.
    pub(crate) service_ns: u64,
    /// The numbers of the stages whose servlets wait for room in the queue.
    pub(crate) held_up: Vec<u32>,
    /// True if senders other than stages wait for room.
    pub(crate) holds_up_others: bool,
}

/// The governor of a network, if it has one.
pub(crate) struct Governing {
    /// The time at which the next plan is due; never without a governor. This is only a hint:
    /// accesses to it order no other memory accesses.
    due_ns: AtomicU64,
    /// True if a stage waits for servlets that other stages have to give up. This is a hint: a
    /// stage that gives up a servlet then makes a plan.
    owes: AtomicBool,
    /// True if some thread has asked for a plan.
    asked: AtomicBool,
    state: Mutex<Option<GovernorState>>,
    cause: Mutex<Option<Cause>>,
}

impl Default for Governing {
    fn default() -> Self {
        Self {
            due_ns: AtomicU64::new(u64::MAX),
            owes: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            state: Mutex::default(),
            cause: Mutex::default(),
        }
    }
}

struct GovernorState {
    governor: Governor,
    /// When the last plan was made.
    last_ns: u64,
    /// The loads in the last plan, in the governor's order of stages.
    seen: Vec<Seen>,
    /// Stages that the network has forgotten but whose last batches are still running.
    leaving: Vec<Weak<dyn Inspect>>,
}

/// A stage as of the last plan. The reference is weak, because each stage has a reference to the
/// governor.
struct Seen {
    id: u32,
    stage: Weak<dyn Inspect>,
    load: Load,
}

impl Network {
    /// Installs a governor, which distributes servlets among all stages and finds the cause of an
    /// overload. The new governor replaces any earlier governor.
    ///
    /// The governor makes a plan at most once every 10 ms while stages are active, and makes no
    /// plans while the network is idle. The plan limits the servlets of each stage. The
    /// stage's own controllers and its [`ThreadManager`](crate::stage::control::ThreadManager)
    /// limit them as well.
    /// Normally, the number of busy servlets does not exceed the larger of the governor's bound and
    /// the number of stages. If a plan moves servlets from one stage to another, the second stage
    /// gets them when the first stage has finished its batches. As an exception, a new stage gets
    /// its first servlet immediately, because all other servlets may be waiting for that stage. For
    /// each new stage, the number of busy servlets may therefore exceed the bound by one until
    /// another stage gives up a servlet.
    ///
    /// [`overload`](Self::overload) returns the cause of an overload. The network logs each new
    /// cause as a warning, and the end of the overload at level `info`.
    ///
    /// # Examples
    /// ```
    /// use tussah::stage::{Batch, Handler, Network};
    /// use tussah::stage::control::process::Governor;
    ///
    /// struct Nothing;
    ///
    /// impl Handler for Nothing {
    ///     type Event = u32;
    ///     async fn handle(&self, batch: &mut Batch<u32>) {
    ///         batch.drain().for_each(drop);
    ///     }
    /// }
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// let network = Network::on(runtime.handle(), "server");
    /// network.govern(Governor::new(100));
    /// let read = network.stage("read").priority(1).handler(|_| Ok(Nothing));
    /// let write = network.stage("write").frees_resources().handler(|_| Ok(Nothing));
    /// assert!(read.is_ok() && write.is_ok());
    /// assert_eq!(network.overload(), None);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn govern(&self, governor: Governor) {
        let governing = &self.inner.governing;
        let now_ns = self.inner.time.now_ns();
        *governing.state.lock() = Some(GovernorState {
            governor,
            last_ns: now_ns,
            seen: Vec::new(),
            leaving: Vec::new(),
        });
        governing.due_ns.store(now_ns, Ordering::Relaxed);
        self.replan();
    }

    /// Makes a plan because the set of stages has changed, if there is a governor.
    pub(crate) fn replan(&self) {
        let governing = &self.inner.governing;
        if governing.governs() {
            governing.owes.store(true, Ordering::Relaxed);
            governing.plan_and_tell(self, self.inner.time.now_ns());
        }
    }

    /// Returns the cause of the overload, if the governor's last plan found an overload.
    #[must_use]
    pub fn overload(&self) -> Option<Cause> {
        self.inner.governing.cause.lock().clone()
    }
}

impl Governing {
    #[inline]
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns.load(Ordering::Relaxed)
    }

    /// Returns whether a stage waits for servlets that other stages have to give up.
    #[inline]
    pub(crate) fn owes(&self) -> bool {
        self.owes.load(Ordering::Relaxed)
    }

    /// Returns whether there is a governor. If so, a new stage has one servlet until a plan
    /// includes it.
    pub(crate) fn governs(&self) -> bool {
        self.due_ns.load(Ordering::Relaxed) != u64::MAX
    }

    /// Makes a plan if one is due or a stage waits for servlets. Returns the cause of an overload
    /// if it has changed.
    fn plan(&self, network: &Network, now_ns: u64) -> Option<Option<Cause>> {
        // SeqCst: one thread finds the lock taken, and another releases it; at least one of them
        // sees the other's write. (Both are the same OS thread if a drop callback calls this.)
        self.asked.store(true, Ordering::SeqCst);
        let mut changed = None;
        while self.asked.load(Ordering::SeqCst) {
            let Some(mut state) = self.state.try_lock() else {
                break;
            };
            self.asked.store(false, Ordering::SeqCst);
            let Some(state) = state.as_mut() else { break };
            if !self.is_due(now_ns) && !self.owes() {
                break;
            }
            let next_ns = now_ns.saturating_add(INTERVAL_NS);
            self.due_ns.store(next_ns, Ordering::Relaxed);
            let (stages, _) = network.known();
            // This comes before anything is read: a stage that gives up a servlet from here on asks
            // for another plan.
            self.owes.store(true, Ordering::Relaxed);
            let (cause, owes) = state.plan(stages, now_ns);
            self.owes.store(owes, Ordering::Relaxed);
            let last = std::mem::replace(&mut *self.cause.lock(), cause.clone());
            let key = |cause: &Option<Cause>| cause.as_ref().map(|it| (it.name.clone(), it.why));
            if key(&last) != key(&cause) {
                changed = Some(cause);
            }
        }
        changed
    }

    fn plan_and_tell(&self, network: &Network, now_ns: u64) {
        // The cause is logged while no lock is held, because a subscriber may call the network.
        let name = network.name();
        match self.plan(network, now_ns) {
            None => {}
            Some(Some(cause)) => tracing::warn!(target: "tussah", network = name, "{cause}"),
            Some(None) => tracing::info!(target: "tussah", network = name, "no overload any more"),
        }
    }
}

impl GovernorState {
    /// Makes a plan. Returns the cause of an overload, and whether a stage waits for servlets that
    /// other stages have to give up.
    fn plan(&mut self, stages: Vec<Known>, now_ns: u64) -> (Option<Cause>, bool) {
        // A network's stages are in the order in which they were created, so new stages come last.
        let governed = |stage: Known| stage.stage.load().map(|load| (stage, load));
        let (stages, loads): (Vec<_>, Vec<_>) = stages.into_iter().filter_map(governed).unzip();
        let there = |id: u32| stages.iter().any(|known| known.id == id);
        for at in (0..self.seen.len()).rev() {
            if !there(self.seen[at].id) {
                self.leaving.push(self.seen.remove(at).stage);
                self.governor.remove(at);
            }
        }
        let interval_ns = now_ns.saturating_sub(self.last_ns).max(1);
        self.last_ns = now_ns;
        let place_of = |id: u32| stages.iter().position(|known| known.id == id);
        let mut waits_for = vec![None; stages.len()];
        for (at, load) in loads.iter().enumerate() {
            for place in load.held_up.iter().filter_map(|id| place_of(*id)) {
                waits_for[place] = Some(at);
            }
        }
        let shown = loads.iter().enumerate().map(|(at, load)| {
            let last = self.seen.get(at).map(|seen| &seen.load);
            StageLoad {
                waits_for: waits_for[at],
                ..load.shown(&stages[at].name, last, interval_ns)
            }
        });
        let plan = self.governor.plan(&shown.collect::<Vec<_>>(), now_ns);
        let owes = self.divide(&stages, &loads, &plan.caps);
        let seen = |(known, load): (Known, Load)| Seen {
            id: known.id,
            stage: Arc::downgrade(&known.stage),
            load,
        };
        self.seen = stages.into_iter().zip(loads).map(seen).collect();
        (plan.cause, owes)
    }

    /// Gives stages their planned servlets, unless other stages have to give them up first. Returns
    /// whether some stages still have to give up servlets.
    fn divide(&mut self, stages: &[Known], loads: &[Load], caps: &[usize]) -> bool {
        // A busy servlet keeps its stage alive.
        let busy = |stage: &Weak<dyn Inspect>| {
            let load = stage.upgrade().and_then(|stage| stage.load());
            load.map_or(0, |load| load.busy)
        };
        self.leaving.retain(|stage| busy(stage) > 0);
        let mut used: usize = self.leaving.iter().map(busy).sum();
        let mut owes = used > 0;
        let set = |at: usize, cap: usize| Arc::clone(&stages[at].stage).set_cap(cap);
        // Stages with lower caps come first. From here on no stage starts servlets beyond its cap.
        let mut has = Vec::with_capacity(stages.len());
        for (at, load) in loads.iter().enumerate() {
            let cap = load.cap.min(caps[at]);
            let busy = set(at, cap);
            owes |= busy > cap;
            has.push(cap.max(busy));
            used += cap.max(busy);
        }
        let mut free = self
            .governor
            .servlets_max()
            .max(stages.len())
            .saturating_sub(used);
        let mut more: Vec<_> = (0..stages.len())
            .filter(|at| caps[*at] > has[*at])
            .collect();
        more.sort_by_key(|at| (loads[*at].rank.priority, !loads[*at].rank.frees_resources));
        for &at in &more {
            let adds = (caps[at] - has[at]).min(free);
            free -= adds;
            has[at] += adds;
        }
        for at in more {
            set(at, has[at]);
            owes |= has[at] < caps[at];
        }
        owes
    }
}

impl Load {
    /// Returns the stage's load for the governor, without `waits_for`.
    fn shown<'a>(&self, name: &'a str, last: Option<&Self>, interval_ns: u64) -> StageLoad<'a> {
        let allowed = self.allowed.max(1) as f64;
        let ended_ns = last.map_or(0, |last| self.service_ns - last.service_ns);
        // Running batches have not been counted yet.
        let ended = ended_ns as f64 / (interval_ns as f64 * allowed);
        let now = self.busy as f64 / allowed;
        let rejects = last
            .is_some_and(|last| self.rejected > last.rejected || self.queue_len > last.queue_len);
        StageLoad {
            name,
            priority: self.rank.priority,
            frees_resources: self.rank.frees_resources,
            busy: self.busy,
            wanted: self.wanted,
            queue_len: self.queue_len,
            growing: rejects || !self.held_up.is_empty() || self.holds_up_others,
            utilisation: ended.max(now).min(1.0),
            waits_for: None,
        }
    }
}

impl<E> Shared<E> {
    /// Makes a plan of the governor.
    #[cold]
    pub(crate) fn plan(&self, now_ns: u64) {
        let Some(network) = self.network.upgrade() else {
            return;
        };
        self.governing.plan_and_tell(&network, now_ns);
    }
}
