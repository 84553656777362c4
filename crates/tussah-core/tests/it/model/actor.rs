//! The interpreter of a program on a real runtime, which records what happens.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tussah_core::time::{Clock, Sleep};
use tussah_core::{
    Color, ColorRef, Colored, Handle, JoinError, JoinHandle, PostError, with_all, yield_now,
};

use super::history::{History, Kind, Node, Op, Outcome, Reply, Track, Value};
use super::program::{Action, Body, End, How, NUMBERS, Site, Wait};

/// Bound, in operations a run: nested repetitions end early, so that a run stays short and its
/// graph small.
const OPS_MAX: usize = 400;

/// The panic of a caller that awaits a request that the shutdown dropped.
pub(super) const REQUEST_DROPPED: &str = "the runtime was shut down before the request ran";

/// The panic of a spawn after the shutdown has begun.
pub(super) const SPAWN_REFUSED: &str = "a thread was spawned on a runtime that is shut down";

type Thrown = Box<dyn Any + Send>;
type Asked<'a> = Pin<Box<dyn Future<Output = (Reply, Node)> + Send + 'a>>;

/// The state that all actors of a run share.
pub(super) struct World {
    pub(super) handle: Handle,
    pub(super) clock: Clock,
    pub(super) values: Vec<Colored<Value>>,
    pub(super) history: History,
    /// The number of operations so far.
    pub(super) begun: AtomicUsize,
    /// True if the shutdown may have begun.
    pub(super) ending: AtomicBool,
    /// True if actors outside of the runtime may sleep. If the shutdown dropped their timer, they
    /// would sleep forever.
    pub(super) outside_sleeps: bool,
}

impl World {
    /// Returns whether the shutdown may have begun. Called after the runtime has reported that.
    fn is_ending(&self) -> bool {
        // Pairs with the AcqRel exchange in which the shutdown begins: the runtime's report may
        // come from a Relaxed load.
        fence(Ordering::Acquire);
        self.ending.load(Ordering::Relaxed)
    }

    fn color(&self, site: Site) -> ColorRef {
        match site {
            Site::Number(number) => self.handle.color(Color(number as u64)),
            Site::Value(value) | Site::Beside(value) => self.values[value].color(),
        }
    }
}

fn place(site: Site) -> usize {
    match site {
        Site::Number(number) => number,
        Site::Value(value) | Site::Beside(value) => NUMBERS + value,
    }
}

/// The payload of an actor's panic, which names the step of the panic.
pub(super) struct Planned(pub(super) Node);

/// The party that runs the actions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// An OS thread of its own.
    Outside,
    /// A thread of the runtime: a worker counts its panic.
    Thread,
    /// A posted closure: a worker counts its panic.
    Event,
    /// A closure whose caller gets its panic.
    Closure,
}

/// An actor: it carries out actions, one after the other.
pub(super) struct Actor {
    world: Arc<World>,
    role: Role,
    track: Track,
    /// The colors that it is in while it runs.
    places: Vec<usize>,
    reads: bool,
    /// The running event, by its indices in the logs of its places.
    inside: Option<Vec<usize>>,
}

impl Drop for Actor {
    fn drop(&mut self) {
        if self.inside.is_some() {
            self.leave();
        } else if self.role == Role::Thread {
            // Aborted while it waited, which is an event of its color.
            for &place in &self.places {
                self.world.history.drop_in(place, self.track.actor);
            }
        }
        self.world.history.ended(Track {
            actor: self.track.actor,
            steps: std::mem::take(&mut self.track.steps),
            ops: std::mem::take(&mut self.track.ops),
        });
    }
}

/// A closure that is posted to a color, or part of a request.
struct Job {
    world: Arc<World>,
    op: Arc<Op>,
    body: Body,
    ran: bool,
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.ran {
            return;
        }
        if self.op.returned.load(Ordering::Relaxed) {
            self.op.given_back.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.op.dropped.fetch_add(1, Ordering::Relaxed);
        if self.op.kind == Kind::Post {
            self.world.history.drop_in(self.op.places[0], self.op.event);
        }
    }
}

impl Job {
    /// Runs with exclusive access to its color or colors. A post without a value has no value here.
    fn run(mut self, values: &mut [&mut Value]) -> (Reply, Node) {
        let (mut actor, reply) = self.begin(false);
        for (value, &place) in values.iter_mut().zip(&self.op.places) {
            actor.world.history.write(place, self.op.event, value);
        }
        actor.run(&self.body);
        for (value, &place) in values.iter().zip(&self.op.places) {
            actor.world.history.read(place, self.op.event, value);
        }
        (reply, actor.here())
    }

    fn read(mut self, value: &Value) -> (Reply, Node) {
        let (mut actor, reply) = self.begin(true);
        let (place, event) = (self.op.places[0], self.op.event);
        actor.world.history.read(place, event, value);
        actor.run(&self.body);
        actor.world.history.read(place, event, value);
        (reply, actor.here())
    }

    fn begin(&mut self, reads: bool) -> (Actor, Reply) {
        self.ran = true;
        self.op.ran.fetch_add(1, Ordering::Relaxed);
        let role = if self.op.kind == Kind::Post {
            Role::Event
        } else {
            Role::Closure
        };
        let mut actor = Actor::new(&self.world, role, self.op.actor, self.op.places.clone());
        actor.reads = reads;
        let reply = actor.enter(self.op.event, Some(self.op.issued));
        (actor, reply)
    }
}

impl Actor {
    fn new(world: &Arc<World>, role: Role, actor: u32, places: Vec<usize>) -> Self {
        Self {
            world: world.clone(),
            role,
            track: Track {
                actor,
                steps: Vec::new(),
                ops: Vec::new(),
            },
            places,
            reads: false,
            inside: None,
        }
    }

    pub(super) fn outside(world: &Arc<World>) -> Self {
        let mut actor = Self::new(world, Role::Outside, world.history.number(), Vec::new());
        actor.step(&[]);
        actor
    }

    /// Begins the next step, after the given steps of others.
    fn step(&mut self, saw: &[Node]) -> Node {
        self.track.steps.push(saw.to_vec());
        self.here()
    }

    fn here(&self) -> Node {
        (self.track.actor, self.track.steps.len() as u32 - 1)
    }

    /// Begins an event of the actor in its places.
    fn enter(&mut self, event: u32, issued: Option<Node>) -> Reply {
        let begin = self.step(issued.as_slice());
        let mut reply = Vec::new();
        for &place in &self.places {
            let history = &self.world.history;
            let (index, state) = history.enter(place, event, issued, begin, self.reads);
            reply.push((place, index, state));
        }
        self.inside = Some(reply.iter().map(|&(_, index, _)| index).collect());
        reply
    }

    fn leave(&mut self) {
        let indices = self.inside.take().unwrap_or_default();
        for (&place, index) in self.places.iter().zip(indices) {
            self.world.history.leave(place, index, self.here());
        }
    }

    fn fail(&self, what: &str) {
        let text = format!("{what}, in actor {}", self.track.actor);
        self.world.history.fail(text);
    }

    // Actions that do not wait.

    pub(super) fn run(&mut self, actions: &[Action]) {
        for action in actions {
            self.act(action);
        }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Hold(times) => (0..*times).for_each(|_| hold()),
            Action::Yield | Action::Sleep(_) => {}
            Action::Post(site, body) => self.post(*site, body),
            Action::Try(value, body) => self.try_with(*value, body),
            Action::Ask {
                values,
                how,
                body,
                wait,
            } => self.ask_in_passing(values, *how, body, wait),
            Action::Spawn { home, body, end } => {
                if let Some((_, child)) = self.spawn(*home, body)
                    && matches!(end, End::Abort)
                {
                    child.abort();
                }
            }
            Action::Repeat(times, body) => (0..*times).for_each(|_| self.run(body)),
            Action::Panic => self.panic(),
            Action::Workers(workers) => self.set_workers(*workers),
            Action::Priority(site, priority) => self.world.color(*site).set_priority(*priority),
            Action::Depth(site, depth) => {
                self.world.history.limit(place(*site));
                self.world.color(*site).set_depth_max(*depth);
            }
        }
    }

    /// Creates a closure for these places, unless the run has reached its bound.
    fn issue(&mut self, kind: Kind, places: Vec<usize>, body: &Body) -> Option<(Arc<Op>, Job)> {
        if self.world.begun.fetch_add(1, Ordering::Relaxed) >= OPS_MAX {
            return None;
        }
        let op = Arc::new(Op {
            event: self.world.history.number(),
            kind,
            places,
            issued: self.step(&[]),
            actor: self.world.history.number(),
            outcome: Mutex::new(Outcome::Unseen),
            returned: AtomicBool::new(false),
            ran: 0.into(),
            dropped: 0.into(),
            given_back: 0.into(),
        });
        self.track.ops.push(op.clone());
        let job = Job {
            world: self.world.clone(),
            op: op.clone(),
            body: body.clone(),
            ran: false,
        };
        Some((op, job))
    }

    fn post(&mut self, site: Site, body: &Body) {
        let Some((op, job)) = self.issue(Kind::Post, vec![place(site)], body) else {
            return;
        };
        let alone = |job: Job| move || drop(job.run(&mut []));
        let refused = match site {
            Site::Number(number) => {
                let posted = self.world.handle.post_in(Color(number as u64), alone(job));
                posted.err().map(|error| self.take_back(&op, error))
            }
            Site::Beside(value) => {
                let color = self.world.values[value].color();
                let posted = self.world.handle.post_in(&color, alone(job));
                posted.err().map(|error| self.take_back(&op, error))
            }
            Site::Value(value) => {
                let run = move |value: &mut Value| drop(job.run(&mut [value]));
                let posted = self.world.values[value].post(run);
                posted.err().map(|error| self.take_back(&op, error))
            }
        };
        *op.outcome.lock() = refused.map_or(Outcome::Accepted, |()| Outcome::Refused);
    }

    fn take_back<F>(&self, op: &Op, error: PostError<F>) {
        if error.is_full() && !self.world.history.is_limited(op.places[0]) {
            self.fail("a color without a limit was full");
        }
        if error.is_shut_down() && !self.world.is_ending() {
            self.fail("a post was refused as if the runtime had been shut down");
        }
        op.returned.store(true, Ordering::Relaxed);
        drop(error.into_inner());
    }

    fn try_with(&mut self, value: usize, body: &Body) {
        let Some((op, job)) = self.issue(Kind::Try, vec![NUMBERS + value], body) else {
            return;
        };
        let world = self.world.clone();
        let tried = catch_unwind(AssertUnwindSafe(|| {
            world.values[value].try_with(move |value| job.run(&mut [value]))
        }));
        match tried {
            Ok(Ok(reply)) => self.settle(&op, Ok(reply)),
            Ok(Err(closure)) => {
                op.returned.store(true, Ordering::Relaxed);
                drop(closure);
                *op.outcome.lock() = Outcome::Refused;
            }
            Err(thrown) => self.settle(&op, Err(thrown)),
        }
    }

    /// Makes a request of a caller that cannot wait: it is polled once.
    fn ask_in_passing(&mut self, values: &[usize], how: How, body: &Body, wait: &Wait) {
        let places = values.iter().map(|value| NUMBERS + value).collect();
        let Some((op, job)) = self.issue(Kind::Request, places, body) else {
            return;
        };
        let world = self.world.clone();
        let mut asked = ask(&world, values, how, job);
        if matches!(wait, Wait::Never) {
            return;
        }
        let mut context = Context::from_waker(Waker::noop());
        match poll_caught(&mut asked, &mut context) {
            Poll::Ready(result) => self.settle(&op, result),
            Poll::Pending => {
                if let Wait::Meanwhile(body) | Wait::Drop(body) = wait {
                    self.run(body);
                }
            }
        }
    }

    /// Records the result of an operation.
    fn settle(&mut self, op: &Op, result: Result<(Reply, Node), Thrown>) {
        let outcome = match result {
            Ok((reply, end)) => {
                self.step(&[end]);
                Outcome::Replied(reply)
            }
            Err(thrown) => {
                if thrown.downcast_ref::<&str>() == Some(&REQUEST_DROPPED) && self.world.is_ending()
                {
                    Outcome::ShutDown
                } else {
                    self.see_panic(op.actor, thrown);
                    Outcome::Panicked
                }
            }
        };
        *op.outcome.lock() = outcome;
    }

    /// Records that another actor's panic reached this one.
    fn see_panic(&mut self, actor: u32, thrown: Thrown) {
        match thrown.downcast::<Planned>() {
            Ok(planned) if planned.0.0 == actor => drop(self.step(&[planned.0])),
            Ok(_) => self.fail("a panic came to who did not wait for it"),
            Err(thrown) => {
                let text = thrown.downcast_ref::<&str>();
                self.fail(&format!("somebody threw what was not planned: {text:?}"));
            }
        }
    }

    fn panic(&mut self) {
        if matches!(self.role, Role::Thread | Role::Event) {
            self.world.history.panics.fetch_add(1, Ordering::Relaxed);
        }
        // Without the hook, which would print.
        resume_unwind(Box::new(Planned(self.step(&[]))));
    }

    fn set_workers(&self, workers: usize) {
        if let Err(error) = self.world.handle.set_workers(workers)
            && error.kind() != ErrorKind::WouldBlock
            && !self.world.is_ending()
        {
            self.fail(&format!("the number of workers was not changed: {error}"));
        }
    }

    /// Starts a thread with its number, unless the shutdown has begun.
    pub(super) fn spawn(
        &mut self,
        home: Option<Site>,
        body: &Body,
    ) -> Option<(u32, JoinHandle<Node>)> {
        let child = self.world.history.number();
        let issued = self.step(&[]);
        let places = home.map(place).into_iter().collect();
        let (world, body) = (self.world.clone(), body.clone());
        let thread = async move {
            let mut actor = Actor::new(&world, Role::Thread, child, places);
            actor.begin_poll(Some(issued));
            actor.run_async(&body).await;
            actor.here()
        };
        let world = self.world.clone();
        let spawned = catch_unwind(AssertUnwindSafe(|| match home {
            None => world.handle.spawn(thread),
            Some(Site::Number(number)) => world.handle.spawn_in(Color(number as u64), thread),
            Some(site) => world.handle.spawn_in(&world.color(site), thread),
        }));
        if let Err(thrown) = &spawned
            && !(thrown.downcast_ref::<&str>() == Some(&SPAWN_REFUSED) && self.world.is_ending())
        {
            self.fail("a spawn panicked");
        }
        spawned.ok().map(|handle| (child, handle))
    }

    /// Records the end of a thread.
    pub(super) fn joined(&mut self, child: u32, result: Result<Node, JoinError>, aborted: bool) {
        match result {
            Ok(end) if end.0 == child => drop(self.step(&[end])),
            Ok(_) => self.fail("a child gave another one's result"),
            Err(error) if error.is_panic() => self.see_panic(child, error.into_panic()),
            Err(_) if aborted || self.world.is_ending() => {}
            Err(_) => self.fail("a child was cancelled"),
        }
    }

    // Actions that wait.

    pub(super) fn run_async<'a>(
        &'a mut self,
        actions: &'a [Action],
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            for action in actions {
                match action {
                    Action::Yield => self.yields().await,
                    Action::Sleep(ms) => self.sleep(*ms).await,
                    Action::Ask {
                        values,
                        how,
                        body,
                        wait,
                    } => self.ask(values, *how, body, wait).await,
                    Action::Spawn { home, body, end } => {
                        let Some((child, mut handle)) = self.spawn(*home, body) else {
                            continue;
                        };
                        let aborted = matches!(end, End::Abort);
                        if aborted {
                            handle.abort();
                        }
                        if !matches!(end, End::Detach)
                            && let Ok(result) = self.wait(&mut handle, None).await
                        {
                            self.joined(child, result, aborted);
                        }
                    }
                    Action::Repeat(times, body) => {
                        for _ in 0..*times {
                            self.run_async(body).await;
                        }
                    }
                    other => self.act(other),
                }
            }
        })
    }

    async fn yields(&mut self) {
        // Queued once this poll ends, behind all posts before this step.
        let issued = self.step(&[]);
        let waited = self.wait(&mut yield_now(), Some(issued)).await;
        waited.unwrap_or_else(|_| self.fail("a yield panicked"));
    }

    async fn sleep(&mut self, ms: u8) {
        if self.role == Role::Outside && !self.world.outside_sleeps {
            return;
        }
        let deadline = self.world.clock.after(Duration::from_millis(ms.into()));
        let mut sleep = Box::pin(Sleep::new_until(deadline));
        let waited = self.wait(&mut sleep, None).await;
        waited.unwrap_or_else(|_| self.fail("a sleep panicked"));
        if self.world.clock.now() < deadline {
            self.fail("a timer fired early");
        }
    }

    async fn ask(&mut self, values: &[usize], how: How, body: &Body, wait: &Wait) {
        let meanwhile = match wait {
            Wait::Meanwhile(body) | Wait::Drop(body) => Some(body),
            Wait::Await | Wait::Never => None,
        };
        let places = values.iter().map(|value| NUMBERS + value).collect();
        let Some((op, job)) = self.issue(Kind::Request, places, body) else {
            return;
        };
        let world = self.world.clone();
        let mut asked = ask(&world, values, how, job);
        if let Wait::Never = wait {
            return;
        }
        if let Some(meanwhile) = meanwhile {
            let first = poll_fn(|context| Poll::Ready(poll_caught(&mut asked, context))).await;
            if let Poll::Ready(result) = first {
                return self.settle(&op, result);
            }
            self.run_async(meanwhile).await;
        }
        if !matches!(wait, Wait::Drop(_)) {
            let result = self.wait(&mut asked, None).await;
            self.settle(&op, result);
        }
    }

    /// Waits, outside of the actor's color. `issued` is the step that will have woken it, if that
    /// is known.
    async fn wait<F: Future + Unpin>(
        &mut self,
        future: &mut F,
        issued: Option<Node>,
    ) -> Result<F::Output, Thrown> {
        poll_fn(|context| {
            if self.inside.is_none() {
                self.begin_poll(issued);
            }
            let polled = poll_caught(future, context);
            if polled.is_pending() {
                self.leave();
            }
            polled
        })
        .await
    }

    fn begin_poll(&mut self, issued: Option<Node>) {
        let event = self.world.history.number();
        self.enter(event, issued);
    }
}

/// Takes about a microsecond, and lets others run.
fn hold() {
    (0..50).for_each(|_| std::hint::spin_loop());
    std::thread::yield_now();
}

fn poll_caught<F: Future + Unpin>(
    future: &mut F,
    context: &mut Context<'_>,
) -> Poll<Result<F::Output, Thrown>> {
    match catch_unwind(AssertUnwindSafe(|| Pin::new(future).poll(context))) {
        Ok(polled) => polled.map(Ok),
        Err(thrown) => Poll::Ready(Err(thrown)),
    }
}

fn ask<'a>(world: &'a World, values: &[usize], how: How, job: Job) -> Asked<'a> {
    let at = |index: usize| &world.values[values[index]];
    match (values.len(), how) {
        (1, How::With) => Box::pin(at(0).with(move |a| job.run(&mut [a]))),
        (1, How::Write) => Box::pin(at(0).write(move |a| job.run(&mut [a]))),
        (1, How::Read) => Box::pin(at(0).read(move |a| job.read(a))),
        (2, _) => Box::pin(with_all((at(0), at(1)), move |a, b| job.run(&mut [a, b]))),
        (3, _) => {
            let all = (at(0), at(1), at(2));
            Box::pin(with_all(all, move |a, b, c| job.run(&mut [a, b, c])))
        }
        _ => {
            let all = (at(0), at(1), at(2), at(3));
            let run = move |a: &mut _, b: &mut _, c: &mut _, d: &mut _| job.run(&mut [a, b, c, d]);
            Box::pin(with_all(all, run))
        }
    }
}
