//! Random small programs for a runtime, with the frequency of their parts.

use std::fmt;
use std::sync::Arc;

use proptest::prelude::*;

/// Colors given by number that a program may name; the first is the default color.
pub(super) const NUMBERS: usize = 3;

/// Colored values that a program may name.
pub(super) const VALUES: usize = 4;

/// Actions, in a shape that closures can share with the program.
pub(super) type Body = Arc<Vec<Action>>;

/// A place where an event may be posted and a thread may run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Site {
    /// A color given by number.
    Number(usize),
    /// A colored value: a post gets the value.
    Value(usize),
    /// The color of a colored value. A post does not get the value, but alternates with posts that
    /// do.
    Beside(usize),
}

/// One step of an actor. In a closure, which cannot wait, requests are polled once and then
/// dropped, and actions that only wait do nothing.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Takes some microseconds and lets other OS threads run, so that the actor holds its colors
    /// for a while.
    Hold(u8),
    Yield,
    /// Milliseconds.
    Sleep(u8),
    Post(Site, Body),
    Try(usize, Body),
    /// A request to one value, or to two or more at once.
    Ask {
        values: Vec<usize>,
        how: How,
        body: Body,
        wait: Wait,
    },
    Spawn {
        home: Option<Site>,
        body: Body,
        end: End,
    },
    Repeat(u8, Body),
    Panic,
    Workers(usize),
    Priority(Site, i8),
    Depth(Site, u32),
}

/// The kind of a request to one value.
#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    With,
    Read,
    Write,
}

/// The fate of a request.
#[derive(Clone, Debug)]
pub(super) enum Wait {
    Await,
    /// The future is polled once, and awaited after some other actions.
    Meanwhile(Body),
    /// The future is polled once, and dropped after some other actions.
    Drop(Body),
    /// The future is dropped before it is polled.
    Never,
}

/// The fate of a child.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Await,
    Detach,
    /// The thread is aborted at once, and then awaited.
    Abort,
}

/// An initial actor.
#[derive(Clone, Debug)]
pub(super) enum Root {
    /// An OS thread outside of the runtime.
    Outside(Body),
    Thread(Option<Site>, Body),
    Event(Site, Body),
}

/// The choice of the color that runs next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Choice {
    Default,
    Newest,
    /// Any color, an index out of range, and now and then a panic; from this seed.
    Wild(u64),
}

/// The end of the runtime.
#[derive(Clone, Copy, Debug)]
pub(super) enum Finish {
    /// After the roots have ended: every posted event runs.
    Drained,
    /// The shutdown drains, but begins after this many operations, while actors go on.
    Draining(usize),
    /// The shutdown begins after this many operations and drains nothing.
    Now(usize),
}

#[derive(Clone)]
pub(super) struct Program {
    pub(super) workers: usize,
    pub(super) stealing: bool,
    pub(super) steal_delay_us: u64,
    pub(super) seed: u64,
    pub(super) choice: Choice,
    /// True if the clock is manual.
    pub(super) manual_clock: bool,
    pub(super) finish: Finish,
    pub(super) roots: Vec<Root>,
}

/// Prints a line for each root: the derived form is either one line or thousands.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            workers,
            stealing,
            steal_delay_us,
            seed,
            choice,
            manual_clock,
            finish,
            roots,
        } = self;
        write!(
            f,
            "workers: {workers}, stealing: {stealing}, steal_delay_us: {steal_delay_us}, "
        )?;
        write!(
            f,
            "seed: {seed}, choice: {choice:?}, manual_clock: {manual_clock}, "
        )?;
        writeln!(f, "finish: {finish:?}, roots:")?;
        roots.iter().try_for_each(|root| writeln!(f, "  {root:?}"))
    }
}

/// One of them as often as all others together, so that it is contended.
fn value() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), 1..VALUES]
}

fn site() -> impl Strategy<Value = Site> {
    prop_oneof![
        2 => (0..NUMBERS).prop_map(Site::Number),
        4 => value().prop_map(Site::Value),
        1 => value().prop_map(Site::Beside),
    ]
}

fn home() -> impl Strategy<Value = Option<Site>> {
    prop_oneof![Just(None), site().prop_map(Some)]
}

/// One value, or several in any order.
fn values() -> impl Strategy<Value = Vec<usize>> {
    let all: Vec<_> = (0..VALUES).collect();
    prop_oneof![
        2 => value().prop_map(|value| vec![value]),
        1 => prop::sample::subsequence(all, 2..=4).prop_shuffle(),
    ]
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![1 => Just(How::With), 2 => Just(How::Read), 1 => Just(How::Write)]
}

fn body(action: impl Strategy<Value = Action>) -> impl Strategy<Value = Body> {
    prop::collection::vec(action, 0..4).prop_map(Arc::new)
}

fn simple() -> impl Strategy<Value = Action> {
    let nothing = Body::default;
    prop_oneof![
        12 => (1..4_u8).prop_map(Action::Hold),
        4 => Just(Action::Yield),
        2 => (0..3_u8).prop_map(Action::Sleep),
        8 => site().prop_map(move |site| Action::Post(site, nothing())),
        12 => (values(), how()).prop_map(move |(values, how)| Action::Ask {
            values,
            how,
            body: nothing(),
            wait: Wait::Await,
        }),
        2 => Just(Action::Panic),
        1 => (1..=4_usize).prop_map(Action::Workers),
        1 => (site(), any::<i8>()).prop_map(|(site, priority)| Action::Priority(site, priority)),
        1 => (site(), 0..4_u32).prop_map(|(site, depth)| Action::Depth(site, depth)),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    simple().prop_recursive(4, 48, 4, |inner| {
        let inner = inner.boxed();
        let wait = prop_oneof![
            4 => Just(Wait::Await),
            2 => body(inner.clone()).prop_map(Wait::Meanwhile),
            2 => body(inner.clone()).prop_map(Wait::Drop),
            1 => Just(Wait::Never),
        ];
        let end = prop_oneof![3 => Just(End::Await), 1 => Just(End::Detach), 1 => Just(End::Abort)];
        prop_oneof![
            4 => (site(), body(inner.clone())).prop_map(|(site, body)| Action::Post(site, body)),
            2 => (value(), body(inner.clone())).prop_map(|(value, body)| Action::Try(value, body)),
            6 => (values(), how(), body(inner.clone()), wait).prop_map(
                |(values, how, body, wait)| Action::Ask { values, how, body, wait }
            ),
            3 => (home(), body(inner.clone()), end)
                .prop_map(|(home, body, end)| Action::Spawn { home, body, end }),
            4 => (2..12_u8, body(inner)).prop_map(|(times, body)| Action::Repeat(times, body)),
        ]
    })
}

fn root() -> impl Strategy<Value = Root> {
    let actions = || prop::collection::vec(action(), 1..6).prop_map(Arc::new);
    prop_oneof![
        2 => actions().prop_map(Root::Outside),
        3 => (home(), actions()).prop_map(|(home, body)| Root::Thread(home, body)),
        1 => (site(), actions()).prop_map(|(site, body)| Root::Event(site, body)),
    ]
}

pub(super) fn program() -> impl Strategy<Value = Program> {
    let choice = prop_oneof![
        4 => Just(Choice::Default),
        1 => Just(Choice::Newest),
        1 => any::<u64>().prop_map(Choice::Wild),
    ];
    let finish = prop_oneof![
        3 => Just(Finish::Drained),
        1 => (0..100_usize).prop_map(Finish::Draining),
        1 => (0..100_usize).prop_map(Finish::Now),
    ];
    (
        1..=4_usize,
        prop::bool::weighted(0.8),
        prop_oneof![Just(1), 1..200_u64],
        any::<u64>(),
        choice,
        prop::bool::weighted(0.25),
        finish,
        prop::collection::vec(root(), 1..=6),
    )
        .prop_map(
            |(workers, stealing, steal_delay_us, seed, choice, manual_clock, finish, roots)| {
                Program {
                    workers,
                    stealing,
                    steal_delay_us,
                    seed,
                    choice,
                    manual_clock,
                    finish,
                    roots,
                }
            },
        )
}
