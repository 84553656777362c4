//! Managers of servlets, for stages that share the resources that servlets use.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tussah_core::{Guarded, caught, quietly};

use super::shared::{Inner, Shared};
use crate::stage::network::Network;
use crate::stage::state::{State, Wake};

/// A manager that decides which servlets of its stages may become busy.
///
/// A stage without a manager decides on its own, based on its controllers' settings; this is the
/// default, and costs nothing. A stage with a manager asks the manager each time the stage's own
/// settings allow another servlet to become busy. Each stage keeps its idle servlets, because a
/// servlet cannot work for another stage.
///
/// While a handler waits, its servlet does not count as busy, unless
/// [`counts_waiting`](Self::counts_waiting) returns true. The manager must admit the servlet again
/// before the servlet takes more events.
///
/// If a manager panics, the panic is caught and the servlet is admitted. Even for a servlet that
/// was admitted because of a panic, the stage calls [`leave`](Self::leave) once the servlet is no
/// longer busy.
///
/// # Examples
/// This manager allows one busy servlet at a time among all stages whose names begin with `b`, and
/// any number in other stages:
/// ```
/// use std::sync::Mutex;
/// use tussah::stage::control::{Applicant, ThreadManager};
///
/// #[derive(Default)]
/// struct OneB {
///     busy: Mutex<bool>,
///     waiting: Mutex<Vec<Applicant>>,
/// }
///
/// impl ThreadManager for OneB {
///     fn enter(&self, stage: &Applicant) -> bool {
///         if !stage.name().starts_with('b') {
///             return true;
///         }
///         let mut busy = self.busy.lock().expect("nobody panics");
///         if *busy {
///             self.waiting.lock().expect("nobody panics").push(stage.clone());
///         }
///         !std::mem::replace(&mut *busy, true)
///     }
///
///     fn leave(&self, stage: &Applicant) {
///         if stage.name().starts_with('b') {
///             *self.busy.lock().expect("nobody panics") = false;
///             let waiting = std::mem::take(&mut *self.waiting.lock().expect("nobody panics"));
///             waiting.iter().for_each(Applicant::call);
///         }
///     }
/// }
/// ```
pub trait ThreadManager: Send + Sync + 'static {
    /// Returns whether one more servlet of a stage may become busy. If this method returns false,
    /// the manager must use [`Applicant::call`] as soon as one more servlet of the stage may become
    /// busy.
    ///
    /// The stage holds its lock during the call to `enter`, so an implementation must return
    /// quickly, and must not use a stage or [`Applicant::call`].
    fn enter(&self, stage: &Applicant) -> bool;

    /// Records that an admitted servlet is no longer busy. The stage calls `leave` while it holds
    /// no lock, so an implementation can use [`Applicant::call`].
    fn leave(&self, stage: &Applicant);

    /// Returns whether servlets count as busy while their handlers wait. If this method returns
    /// true, stages can deadlock. For example, if all servlets that may be busy wait for space in
    /// the queue of another stage, that stage gets no servlet to empty its queue.
    fn counts_waiting(&self) -> bool {
        false
    }
}

/// A handle to a stage that asks a [`ThreadManager`] whether another servlet may become busy. An
/// `Applicant` is cheap to clone, and does not keep the stage alive.
#[derive(Clone)]
pub struct Applicant {
    name: Arc<str>,
    priority: u8,
    stage: Weak<dyn Apply>,
}

impl Applicant {
    /// Returns the stage's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the stage's priority
    /// ([`StageBuilder::priority`](crate::stage::StageBuilder::priority)); 0 is the highest.
    #[must_use]
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// Makes the stage call [`ThreadManager::enter`] again if the stage still needs another
    /// servlet. Do not call this method while you hold a lock that [`ThreadManager::enter`] takes.
    pub fn call(&self) {
        if let Some(stage) = self.stage.upgrade() {
            stage.apply();
        }
    }

    /// Returns whether both handles refer to the same stage.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Weak::ptr_eq(&self.stage, &other.stage)
    }
}

impl fmt::Debug for Applicant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Applicant").field(&self.name).finish()
    }
}

/// A stage, as its manager sees it.
trait Apply: Send + Sync {
    fn apply(self: Arc<Self>);
}

impl<E: Send + 'static> Apply for Shared<E> {
    fn apply(self: Arc<Self>) {
        let inner = self.lock();
        self.release(inner);
    }
}

/// A [`ThreadManager`] that limits the total number of busy servlets of several stages. Each busy
/// servlet holds a permit. When a permit becomes free, the waiting stage with the highest priority
/// gets it. Among stages of equal priority, the stage that has waited longest comes first.
///
/// # Examples
/// Here, two stages with blocking handlers together use at most three OS threads at a time:
/// ```
/// use std::sync::Arc;
/// use tussah::stage::control::Permits;
/// use tussah::stage::{Batch, Network};
///
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// let network = Network::on(runtime.handle(), "disk");
/// let permits = Arc::new(Permits::new(3));
/// for name in ["read", "write"] {
///     let stage = network.stage::<u64>(name).threads(permits.clone());
///     let handler = |batch: &mut Batch<u64>| batch.drain().for_each(drop);
///     stage.blocking(|_| Ok(handler)).expect("a new name");
/// }
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Permits {
    counts_waiting: bool,
    state: Mutex<PermitState>,
}

#[derive(Debug)]
struct PermitState {
    max: usize,
    busy: usize,
    /// The stages that wait for a permit. Each stage that asks is in this list at most once.
    waiting: Vec<Applicant>,
}

impl Permits {
    /// Creates a limit of `max` busy servlets; 0 counts as 1.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            counts_waiting: false,
            state: Mutex::new(PermitState {
                max: max.max(1),
                busy: 0,
                waiting: Vec::new(),
            }),
        }
    }

    /// Counts servlets as busy even while their handlers wait. [`ThreadManager::counts_waiting`]
    /// describes how this setting can cause a deadlock.
    #[must_use]
    pub fn counting_waiting(mut self) -> Self {
        self.counts_waiting = true;
        self
    }

    /// Returns the number of busy servlets.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.state.lock().busy
    }

    /// Sets the maximum number of busy servlets; 0 counts as 1. Servlets that are already busy are
    /// not interrupted, even if there are more than `max`.
    pub fn set_max(&self, max: usize) {
        self.state.lock().max = max.max(1);
        self.call();
    }

    /// Calls waiting stages while there are permits. A stage that no longer wants a permit leaves
    /// it to the next stage.
    fn call(&self) {
        loop {
            let next = self.state.lock().next();
            match next {
                Some(next) => next.call(),
                None => return,
            }
        }
    }
}

impl PermitState {
    fn next(&mut self) -> Option<Applicant> {
        if self.busy >= self.max {
            return None;
        }
        let stages = self.waiting.iter().enumerate();
        let first = stages.min_by_key(|(at, stage)| (stage.priority, *at));
        let at = first?.0;
        Some(self.waiting.remove(at))
    }
}

impl ThreadManager for Permits {
    fn enter(&self, stage: &Applicant) -> bool {
        let mut state = self.state.lock();
        if state.busy < state.max {
            state.busy += 1;
            return true;
        }
        if !state.waiting.iter().any(|waiting| waiting.is(stage)) {
            state.waiting.push(stage.clone());
        }
        false
    }

    fn leave(&self, _: &Applicant) {
        self.state.lock().busy -= 1;
        self.call();
    }

    fn counts_waiting(&self) -> bool {
        self.counts_waiting
    }
}

impl Network {
    /// Sets the default manager for stages that are built after this call. Several networks can
    /// share a manager, for example one manager for the whole process.
    pub fn set_threads(&self, manager: Arc<dyn ThreadManager>) {
        let manager = Some(Guarded::new(manager));
        // The old manager's destructor is foreign code: it runs without the lock.
        let old = std::mem::replace(&mut *self.inner.threads.lock(), manager);
        drop(old);
    }

    /// Returns the manager of servlets for stages that are built without their own manager.
    pub(crate) fn manager(&self) -> Option<Arc<dyn ThreadManager>> {
        let manager = self.inner.threads.lock();
        manager.as_ref().map(|manager| Arc::clone(manager))
    }
}

/// A stage's manager of servlets.
pub(crate) struct Threads {
    manager: Guarded<Arc<dyn ThreadManager>>,
    applicant: Applicant,
}

impl Threads {
    pub(crate) fn new<E: Send + 'static>(
        manager: Arc<dyn ThreadManager>,
        name: Arc<str>,
        priority: u8,
        stage: &Weak<Shared<E>>,
    ) -> Self {
        let applicant = Applicant {
            name,
            priority,
            stage: Weak::clone(stage) as _,
        };
        Self {
            manager: Guarded::new(manager),
            applicant,
        }
    }

    /// Returns the servlet to wake, and the number of admitted servlets that no longer work.
    pub(crate) fn wake_servlet<E>(&self, inner: &mut Inner<E>) -> (Wake, usize) {
        let working = self.working(&inner.state);
        let mut left = inner.permits.saturating_sub(working);
        let mut wake_servlet = Wake::Nobody;
        if inner.state.wants() {
            // A servlet that leaves passes its permit on to another servlet.
            if left > 0 {
                left -= 1;
                wake_servlet = inner.state.wake_servlet();
            } else if self.enters() {
                inner.permits += 1;
                wake_servlet = inner.state.wake_servlet();
            }
        }
        inner.permits -= left;
        (wake_servlet, left)
    }

    /// Returns whether a busy servlet may take events. It has no permit if its handler waited, or
    /// if it was woken to check the stage again.
    pub(crate) fn goes_on<E>(&self, inner: &mut Inner<E>) -> bool {
        if inner.permits >= self.working(&inner.state) {
            return true;
        }
        let entered = self.enters();
        inner.permits += usize::from(entered);
        entered
    }

    pub(crate) fn leave(&self, count: usize) {
        for _ in 0..count {
            quietly(|| self.manager.leave(&self.applicant));
        }
    }

    /// Asks the manager. If the manager panics, queued events are handled nevertheless.
    fn enters(&self) -> bool {
        caught(|| self.manager.enter(&self.applicant)).unwrap_or(true)
    }

    fn working<E>(&self, state: &State<E>) -> usize {
        if caught(|| self.manager.counts_waiting()).unwrap_or(false) {
            state.servlets.busy
        } else {
            state.servlets.busy - state.waiting()
        }
    }
}
