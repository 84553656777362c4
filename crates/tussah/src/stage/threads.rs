//! Managers of servlets: who may go to work, where stages share what they work with.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::network::Network;
use super::shared::{Inner, Shared};
use super::state::{State, Summon};

/// Says which servlets may go to work, among the stages that it is given to.
///
/// A stage that has no manager decides by itself, by its controllers' settings; this is the default, and costs nothing. A stage that has one
/// asks it each time that a servlet is to go to work, after its own settings have allowed that. Servlets that rest are kept by each stage: no other stage's servlet can
/// do their work.
///
/// While a handler waits, its servlet does not count as at work, unless [`counts_waiting`](Self::counts_waiting) says so; it is let in again before
/// it takes the next events.
///
/// # Examples
/// A manager that lets in one servlet of a stage whose name begins with `b` for as long as it likes, and as many of others as there are:
/// ```
/// use std::sync::Mutex;
/// use tussah::stage::{Applicant, ThreadManager};
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
    /// Whether one more servlet of a stage may go to work. If not, the stage must be [called](Applicant::call) when one may.
    ///
    /// Called under the stage's lock: it must be short, and must not use a stage.
    fn enter(&self, stage: &Applicant) -> bool;

    /// A servlet that was let in is no longer at work. Called under no lock, so this is where others can be called.
    fn leave(&self, stage: &Applicant);

    /// Whether servlets count as at work while their handlers wait. Then stages that wait for each other, through a queue that is full or by whatever else, can wait
    /// forever: those that wait have what the others need.
    fn counts_waiting(&self) -> bool {
        false
    }
}

/// A stage that asks a [`ThreadManager`]. Cheap to clone; it does not keep the stage.
#[derive(Clone)]
pub struct Applicant {
    name: Arc<str>,
    priority: u8,
    stage: Weak<dyn Apply>,
}

impl Applicant {
    /// The stage's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The stage's priority ([`Builder::priority`](super::Builder::priority)): 0 comes before 1.
    #[must_use]
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// Has the stage ask again, if it still wants to. Not under a lock that [`ThreadManager::enter`] takes.
    pub fn call(&self) {
        if let Some(stage) = self.stage.upgrade() {
            stage.apply();
        }
    }

    /// Whether both are the same stage.
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

/// A stage, for its manager.
trait Apply: Send + Sync {
    fn apply(self: Arc<Self>);
}

impl<E: Send + 'static> Apply for Shared<E> {
    fn apply(self: Arc<Self>) {
        let inner = self.lock();
        self.release(inner);
    }
}

/// A bound on the servlets at work of all stages that share it. When one leaves, the stage that comes first by priority, and of these the one that has waited
/// longest, may have another.
///
/// # Examples
/// Two stages whose handlers block, with three OS threads at most between them:
/// ```
/// use std::sync::Arc;
/// use tussah::stage::{Batch, Network, Permits};
///
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// let network = Network::on(runtime.handle(), "disk");
/// let permits = Arc::new(Permits::new(3));
/// for name in ["read", "write"] {
///     let stage = network.stage::<u64>(name).threads(permits.clone());
///     stage.blocking(|_| Ok(|batch: &mut Batch<u64>| batch.drain().for_each(drop))).expect("a new name");
/// }
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Permits {
    counts_waiting: bool,
    desk: Mutex<Desk>,
}

#[derive(Debug)]
struct Desk {
    max: usize,
    busy: usize,
    /// Bound, in stages: each that asks is here at most once.
    waiting: Vec<Applicant>,
}

impl Permits {
    /// At most `max` servlets at work, at least one.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            counts_waiting: false,
            desk: Mutex::new(Desk {
                max: max.max(1),
                busy: 0,
                waiting: Vec::new(),
            }),
        }
    }

    /// Has servlets counted also while their handlers wait; see [`ThreadManager::counts_waiting`] for what must not happen then.
    #[must_use]
    pub fn counting_waiting(mut self) -> Self {
        self.counts_waiting = true;
        self
    }

    /// Servlets at work now.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.desk.lock().busy
    }

    /// Changes how many there may be, at least one. Those that are too many go on until they rest.
    pub fn set_max(&self, max: usize) {
        self.desk.lock().max = max.max(1);
        self.call();
    }

    /// Calls stages for as long as there is a permit for one. A stage that is called and does not want one any more leaves it to the next.
    fn call(&self) {
        loop {
            let next = self.desk.lock().next();
            match next {
                Some(next) => next.call(),
                None => return,
            }
        }
    }
}

impl Desk {
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
        let mut desk = self.desk.lock();
        if desk.busy < desk.max {
            desk.busy += 1;
            return true;
        }
        if !desk.waiting.iter().any(|waiting| waiting.is(stage)) {
            desk.waiting.push(stage.clone());
        }
        false
    }

    fn leave(&self, _: &Applicant) {
        self.desk.lock().busy -= 1;
        self.call();
    }

    fn counts_waiting(&self) -> bool {
        self.counts_waiting
    }
}

impl Network {
    /// Gives all stages that are built from here on a manager of servlets, but for those that are built with one of their own: one for the whole process.
    pub fn set_threads(&self, manager: Arc<dyn ThreadManager>) {
        *self.inner.threads.lock() = Some(manager);
    }
}

/// A stage's manager of servlets.
pub(crate) struct Threads {
    manager: Arc<dyn ThreadManager>,
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
        Self { manager, applicant }
    }

    /// Who is called to work, and how many servlets that were let in no longer are at work.
    pub(crate) fn summon<E>(&self, inner: &mut Inner<E>) -> (Summon, usize) {
        let working = self.working(&inner.state);
        let mut left = inner.permits.saturating_sub(working);
        let mut summon = Summon::Nobody;
        if inner.state.wants() {
            // What one leaves another may have.
            if left > 0 {
                left -= 1;
                summon = inner.state.summon();
            } else if self.manager.enter(&self.applicant) {
                inner.permits += 1;
                summon = inner.state.summon();
            }
        }
        inner.permits -= left;
        (summon, left)
    }

    /// Whether a servlet that is busy may take events. It has no permit if its handler waited, or if it was called to look at the stage again.
    pub(crate) fn goes_on<E>(&self, inner: &mut Inner<E>) -> bool {
        if inner.permits >= self.working(&inner.state) {
            return true;
        }
        let entered = self.manager.enter(&self.applicant);
        inner.permits += usize::from(entered);
        entered
    }

    pub(crate) fn leave(&self, count: usize) {
        for _ in 0..count {
            self.manager.leave(&self.applicant);
        }
    }

    fn working<E>(&self, state: &State<E>) -> usize {
        if self.manager.counts_waiting() {
            state.servlets.busy
        } else {
            state.servlets.busy - state.waiting()
        }
    }
}
