//! The governor of a network at work: it is shown all stages now and then, by whichever of them does something.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::control::process::{Cause, Governor, StageLoad};
use super::network::Network;
use super::shared::Shared;
use super::table::Known;

/// The shortest time between two plans, in nanoseconds. All stages are asked for one, and so it must be rare; a servlet that is missing for so long is not.
const INTERVAL_NS: u64 = 10_000_000;

/// What divides servlets among stages where they share them, and what the cause of an overload is judged by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rank {
    pub(crate) priority: u8,
    pub(crate) frees_resources: bool,
}

/// A stage as it shows itself to the governor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    pub(crate) rank: Rank,
    pub(crate) busy: usize,
    pub(crate) wanted: usize,
    pub(crate) allowed: usize,
    /// What the governor has for it; no bound before the first plan.
    pub(crate) cap: usize,
    pub(crate) queue_len: u64,
    /// Events refused, shed or expired, since the stage was made.
    pub(crate) turned_away: u64,
    /// What batches have taken that ended, waits included, since the stage was made.
    pub(crate) service_ns: u64,
    /// The numbers of the stages whose servlets wait for room in its queue.
    pub(crate) held_up: Vec<u32>,
    /// Others than stages wait for room, too.
    pub(crate) holds_up_others: bool,
}

/// The governor of a network, if it has one.
pub(crate) struct Governing {
    /// When the next plan is due; never without a governor. A hint: it orders nothing.
    due_ns: AtomicU64,
    /// A stage waits for servlets that others have to give up. A hint: whoever gives one up then makes a plan.
    owes: AtomicBool,
    /// Somebody has come for a plan.
    asked: AtomicBool,
    office: Mutex<Option<Office>>,
    cause: Mutex<Option<Cause>>,
}

impl Default for Governing {
    fn default() -> Self {
        Self {
            due_ns: AtomicU64::new(u64::MAX),
            owes: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            office: Mutex::default(),
            cause: Mutex::default(),
        }
    }
}

struct Office {
    governor: Governor,
    /// When the last plan was made.
    last_ns: u64,
    /// What it was made of, in the governor's order of stages.
    seen: Vec<(Known, Load)>,
    /// Stages that the network has forgotten, and whose last batches still run.
    leaving: Vec<Known>,
}

impl Network {
    /// Has a governor divide the servlets of all stages, and find out what an overload comes from. It takes the place of an earlier one.
    ///
    /// It makes a plan at most every 10 ms, when a stage does something; while nothing happens, nothing runs. What a stage may have is a cap apart from what its own
    /// controllers decide, and from the manager of servlets that it may share. No more servlets are at work at any time than the governor has, or one for each stage if that is
    /// more: a stage that is to have more than before gets them as others give theirs up, which they do after their batches. The cause of an overload is kept ([`overload`](Self::overload)), and a
    /// warning is logged when it changes.
    ///
    /// # Examples
    /// ```
    /// use tussah::stage::{Batch, Handler, Network};
    /// use tussah::stage::control::Governor;
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
        *governing.office.lock() = Some(Office {
            governor,
            last_ns: now_ns,
            seen: Vec::new(),
            leaving: Vec::new(),
        });
        governing.due_ns.store(now_ns, Ordering::Relaxed);
        self.replan();
    }

    /// Has the governor make a plan, if there is one: there are other stages than before.
    pub(crate) fn replan(&self) {
        let governing = &self.inner.governing;
        if governing.governs() {
            governing.owes.store(true, Ordering::Relaxed);
            governing.plan_and_tell(self, self.inner.time.now_ns());
        }
    }

    /// What the overload comes from that there was at the governor's last plan, if there was one.
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

    /// Whether a stage waits for servlets that others have to give up.
    #[inline]
    pub(crate) fn owes(&self) -> bool {
        self.owes.load(Ordering::Relaxed)
    }

    /// Whether there is a governor: then a stage has no servlets before it is in a plan.
    pub(crate) fn governs(&self) -> bool {
        self.due_ns.load(Ordering::Relaxed) != u64::MAX
    }

    /// Makes a plan if one is due, or a stage waits for servlets; gives the cause of an overload if it is another than before.
    fn plan(&self, network: &Network, now_ns: u64) -> Option<Option<Cause>> {
        // SeqCst: of one who finds the office taken and the one who leaves it, one at least sees the other. (Both are the same OS thread if a drop callback comes here.)
        self.asked.store(true, Ordering::SeqCst);
        let mut changed = None;
        while self.asked.load(Ordering::SeqCst) {
            let Some(mut office) = self.office.try_lock() else {
                break;
            };
            self.asked.store(false, Ordering::SeqCst);
            let Some(office) = office.as_mut() else { break };
            if !self.is_due(now_ns) && !self.owes() {
                break;
            }
            let next_ns = now_ns.saturating_add(INTERVAL_NS);
            self.due_ns.store(next_ns, Ordering::Relaxed);
            let (stages, _) = network.known();
            // Before anything is read: who gives up something from here on asks for another plan.
            self.owes.store(true, Ordering::Relaxed);
            let (cause, owes) = office.plan(stages, now_ns);
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
        // Told under no lock: who listens may ask the network.
        let name = network.name();
        match self.plan(network, now_ns) {
            None => {}
            Some(Some(cause)) => tracing::warn!(target: "tussah", network = name, "{cause}"),
            Some(None) => tracing::info!(target: "tussah", network = name, "no overload any more"),
        }
    }
}

impl Office {
    /// Makes a plan; returns the cause of an overload, and whether a stage waits for servlets that others have to give up.
    fn plan(&mut self, stages: Vec<Known>, now_ns: u64) -> (Option<Cause>, bool) {
        // A network's stages are in the order in which they were made, and so the new ones come last.
        let governed = |stage: Known| stage.stage.load().map(|load| (stage, load));
        let (stages, loads): (Vec<_>, Vec<_>) = stages.into_iter().filter_map(governed).unzip();
        let there = |id: u32| stages.iter().any(|known| known.id == id);
        for at in (0..self.seen.len()).rev() {
            if !there(self.seen[at].0.id) {
                let (gone, _) = self.seen.remove(at);
                self.leaving.push(gone);
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
            let last = self.seen.get(at).map(|(_, last)| last);
            StageLoad {
                waits_for: waits_for[at],
                ..load.shown(&stages[at].name, last, interval_ns)
            }
        });
        let plan = self.governor.plan(&shown.collect::<Vec<_>>(), now_ns);
        let owes = self.divide(&stages, &loads, &plan.caps);
        self.seen = stages.into_iter().zip(loads).collect();
        (plan.cause, owes)
    }

    /// Gives stages what the plan has for them, as far as others have not still to give it up; returns whether they have.
    fn divide(&mut self, stages: &[Known], loads: &[Load], caps: &[usize]) -> bool {
        let busy = |known: &Known| known.stage.load().map_or(0, |load| load.busy);
        self.leaving.retain(|known| busy(known) > 0);
        let mut used: usize = self.leaving.iter().map(busy).sum();
        let mut owes = used > 0;
        let set = |at: usize, cap: usize| Arc::clone(&stages[at].stage).set_cap(cap);
        // Those who are to have less first. Nobody has more at work than its cap allows from here on, but for what it had before.
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
        // One for each, so that none has none for longer than it must, and then as many as there are.
        for most in [1, usize::MAX] {
            for &at in &more {
                let adds = (caps[at].min(most)).saturating_sub(has[at]).min(free);
                free -= adds;
                has[at] += adds;
            }
        }
        for at in more {
            set(at, has[at]);
            owes |= has[at] < caps[at];
        }
        owes
    }
}

impl Load {
    /// What the governor is shown, but for whom the stage waits for.
    fn shown<'a>(&self, name: &'a str, last: Option<&Self>, interval_ns: u64) -> StageLoad<'a> {
        let allowed = self.allowed.max(1) as f64;
        let ended_ns = last.map_or(0, |last| self.service_ns - last.service_ns);
        // Of batches that run, nothing is counted yet.
        let ended = ended_ns as f64 / (interval_ns as f64 * allowed);
        let now = self.busy as f64 / allowed;
        let turns_away = last.is_some_and(|last| {
            self.turned_away > last.turned_away || self.queue_len > last.queue_len
        });
        StageLoad {
            name,
            priority: self.rank.priority,
            frees_resources: self.rank.frees_resources,
            busy: self.busy,
            wanted: self.wanted,
            queue_len: self.queue_len,
            growing: turns_away || !self.held_up.is_empty() || self.holds_up_others,
            utilisation: ended.max(now).min(1.0),
            waits_for: None,
        }
    }
}

impl<E> Shared<E> {
    /// Has the governor make a plan.
    #[cold]
    pub(crate) fn plan(&self, now_ns: u64) {
        let Some(network) = self.network.upgrade() else {
            return;
        };
        self.governing.plan_and_tell(&network, now_ns);
    }
}
