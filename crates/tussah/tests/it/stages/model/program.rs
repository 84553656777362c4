//! Random programs: three stages in a row, the events that are sent to each of them, and the
//! operations on the stages meanwhile.

use proptest::prelude::*;

/// Stages, each of which sends to the next.
pub const STAGES: usize = 3;

/// The action of a handler on an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    Pass,
    WaitAndPass,
    Discard,
    Panic,
    WaitAndPanic,
}

/// The kind of a stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// N servlets.
    Many(usize),
    Serial,
    /// By key, with N servlets.
    Keyed(usize),
}

/// The part of a batch that a handler takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Takes {
    /// One event after the other.
    Each,
    /// One; it leaves the rest.
    One,
    /// The handler forwards all events unchanged.
    Whole,
}

/// How a stage sends to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edge {
    Queue,
    Offer,
    Call,
}

#[derive(Clone, Copy, Debug)]
pub struct Stage {
    pub form: Form,
    pub takes: Takes,
    pub edge: Edge,
    pub batch: usize,
    pub queue: u64,
    pub classes: usize,
    pub has_shares: bool,
    pub whole_path: bool,
}

/// An event as its sender sends it.
#[derive(Clone, Copy, Debug)]
pub struct Send {
    pub class: u8,
    pub key: u8,
    pub credits: u32,
    pub acts: [Act; STAGES],
    pub waits: bool,
    /// Its deadline, in microseconds.
    pub within_us: Option<u64>,
}

/// A sender to the stage `entry`.
#[derive(Clone, Debug)]
pub struct Sender {
    pub entry: usize,
    pub sends: Vec<Send>,
}

#[derive(Clone, Copy, Debug)]
pub enum Control {
    Pause(usize),
    Resume(usize),
    Swap(usize),
    SetQueueMax(usize, u64),
    Yield(u8),
    Destroy(usize),
}

#[derive(Clone, Debug)]
pub struct Program {
    pub workers: usize,
    pub stages: [Stage; STAGES],
    pub senders: Vec<Sender>,
    pub control: Vec<Control>,
    /// The runtime ends when all control has been done.
    pub shuts_down: bool,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => Just(Act::Pass),
        4 => Just(Act::WaitAndPass),
        1 => Just(Act::Discard),
        1 => Just(Act::Panic),
        1 => Just(Act::WaitAndPanic),
    ]
}

fn stage() -> impl Strategy<Value = Stage> {
    let form = prop_oneof![
        (1..4usize).prop_map(Form::Many),
        Just(Form::Serial),
        (1..4usize).prop_map(Form::Keyed),
    ];
    let takes = prop_oneof![
        4 => Just(Takes::Each),
        1 => Just(Takes::One),
        1 => Just(Takes::Whole),
    ];
    let edge = prop_oneof![
        3 => Just(Edge::Queue),
        1 => Just(Edge::Offer),
        1 => Just(Edge::Call),
    ];
    let batch = prop_oneof![Just(1usize), Just(3), Just(100)];
    let queue = prop_oneof![Just(1u64), Just(4), Just(100)];
    let classes = (1..3usize, prop::bool::weighted(0.3));
    let whole_path = prop::bool::weighted(0.3);
    (form, takes, edge, batch, queue, classes, whole_path).prop_map(
        |(form, takes, edge, batch, queue, (classes, has_shares), whole_path)| Stage {
            form,
            takes,
            edge,
            batch,
            queue,
            classes,
            has_shares,
            whole_path,
        },
    )
}

fn send() -> impl Strategy<Value = Send> {
    let credits = prop_oneof![8 => Just(1u32), 1 => 2..6u32];
    (
        0..2u8,
        0..3u8,
        credits,
        [act(), act(), act()],
        prop::bool::weighted(0.8),
        prop::option::weighted(0.15, 0..2000u64),
    )
        .prop_map(|(class, key, credits, acts, waits, within_us)| Send {
            class,
            key,
            credits,
            acts,
            waits,
            within_us,
        })
}

fn sender() -> impl Strategy<Value = Sender> {
    let entry = prop_oneof![3 => Just(0), 1 => Just(1), 1 => Just(2)];
    (entry, prop::collection::vec(send(), 1..40)).prop_map(|(entry, sends)| Sender { entry, sends })
}

fn control() -> impl Strategy<Value = Control> {
    let at = 0..STAGES;
    prop_oneof![
        2 => at.clone().prop_map(Control::Pause),
        2 => at.clone().prop_map(Control::Resume),
        2 => at.clone().prop_map(Control::Swap),
        1 => (at.clone(), 1..8u64).prop_map(|(at, max)| Control::SetQueueMax(at, max)),
        4 => (1..20u8).prop_map(Control::Yield),
        1 => at.prop_map(Control::Destroy),
    ]
}

pub fn program() -> impl Strategy<Value = Program> {
    (
        1..3usize,
        [stage(), stage(), stage()],
        prop::collection::vec(sender(), 1..4),
        prop::collection::vec(control(), 0..12),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(workers, stages, senders, control, shuts_down)| Program {
            workers,
            stages,
            senders,
            control,
            shuts_down,
        })
}
