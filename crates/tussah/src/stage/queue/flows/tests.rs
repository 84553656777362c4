//! Tests of the queue of flows against a model: exclusion, order, and the length of waits.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::stage::state::Random;

/// An event: its flow, and its number in that flow. Flow 0 stands for no flow.
struct Item {
    flow: u64,
    number: u64,
    remembered: Arc<AtomicU32>,
}

fn flow_of(item: &Item) -> (u64, Option<&AtomicU32>) {
    (item.flow, (item.flow != 0).then_some(&item.remembered))
}

#[derive(Clone, Debug)]
enum Step {
    Push {
        flow: u64,
        events: u64,
    },
    /// Opens a share, and takes up to this number of events.
    Take(usize),
    /// Releases one of the open shares after it has given some of its last events back.
    Release {
        which: usize,
        back: usize,
    },
    TakeOut,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..5_u64, 1..80_u64).prop_map(|(flow, events)| Step::Push { flow, events }),
        4 => (0..150_usize).prop_map(Step::Take),
        4 => (0..4_usize, 0..150_usize).prop_map(|(which, back)| Step::Release { which, back }),
        1 => Just(Step::TakeOut),
    ];
    vec(step, 1..60)
}

type Of = fn(&Item) -> (u64, Option<&AtomicU32>);

/// A queue, and what has to be true of it.
struct Model {
    queue: ByFlow<Item, Of>,
    remembered: Vec<Arc<AtomicU32>>,
    /// The events of each flow that were pushed, and the next one to be handled.
    pushed: HashMap<u64, u64>,
    next: HashMap<u64, u64>,
    open: Vec<(usize, Vec<Event<Item>>)>,
    /// The events that were taken out of the order, by flow.
    out: Vec<(u64, u64)>,
}

impl Model {
    fn take(&mut self, most: usize) {
        let Some(share) = self.queue.open(Order::Fifo) else {
            return;
        };
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(event) = self.queue.take_one()
        {
            let (flow, number) = (event.flow, event.number);
            let busy = |(_, events): &(usize, Vec<Event<Item>>)| {
                events.iter().any(|event| event.flow == flow)
            };
            assert!(!self.open.iter().any(busy), "two shares have flow {flow}");
            let next = self.next.entry(flow).or_default();
            while self.out.contains(&(flow, *next)) {
                *next += 1;
            }
            assert_eq!(number, *next, "flow {flow} is out of order");
            *next += 1;
            taken.push(event);
        }
        let flows: HashSet<_> = taken.iter().map(|event: &Event<Item>| event.flow).collect();
        assert!(
            !self.queue.of_one || flows.len() <= 1,
            "one share has {flows:?}"
        );
        self.open.push((share, taken));
    }

    fn release(&mut self, which: usize, back: usize) {
        if self.open.is_empty() {
            return;
        }
        let (share, mut events) = self.open.remove(which % self.open.len());
        let is_whole = back >= events.len();
        for event in events
            .split_off(events.len().saturating_sub(back))
            .into_iter()
            .rev()
        {
            self.next.insert(event.flow, event.number);
            self.queue.push_front(event, Some(share));
        }
        match is_whole {
            true => self.queue.unopen(share, Order::Fifo),
            false => self.queue.release(share),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Push { flow, events } => {
                for _ in 0..events {
                    let pushed = self.pushed.entry(flow).or_default();
                    let item = Item {
                        flow,
                        number: *pushed,
                        remembered: Arc::clone(&self.remembered[flow as usize]),
                    };
                    *pushed += 1;
                    assert!(self.queue.push(Event::new(item)).is_ok());
                }
            }
            Step::Take(most) => self.take(most),
            Step::Release { which, back } => self.release(which, back),
            Step::TakeOut => {
                let out = self.queue.take_out();
                self.out.extend(out.map(|it| (it.flow, it.number)));
            }
        }
    }
}

proptest! {
    #[test]
    fn flows_keep_their_order_and_are_never_shared(steps in steps(), of_one in any::<bool>()) {
        let mut model = Model {
            queue: ByFlow::new(of_one, flow_of),
            remembered: (0..5).map(|_| Arc::default()).collect(),
            pushed: HashMap::new(),
            next: HashMap::new(),
            open: Vec::new(),
            out: Vec::new(),
        };
        steps.into_iter().for_each(|step| model.step(step));
        while !model.open.is_empty() {
            model.release(0, 0);
        }
        while model.queue.is_ready() {
            model.take(100);
            model.release(0, 0);
        }
        for (flow, pushed) in model.pushed {
            let handled = model.next.get(&flow).copied().unwrap_or(0);
            let after = (handled..pushed).all(|number| model.out.contains(&(flow, number)));
            prop_assert!(after, "events of flow {flow} are lost");
        }
        prop_assert_eq!(model.queue.keys(), 0, "an entry is not forgotten");
    }
}

/// Returns the flows of the events that the next share takes.
fn next_flows(queue: &mut ByFlow<Item, Of>, most: usize) -> (usize, Vec<u64>) {
    let share = queue.open(Order::Fifo).expect("there are events");
    let taken = std::iter::from_fn(|| queue.take_one()).take(most);
    (share, taken.map(|event| event.flow).collect())
}

#[test]
fn a_long_flow_does_not_hold_up_the_others() {
    let mut queue: ByFlow<Item, Of> = ByFlow::new(false, flow_of);
    let flows = std::iter::repeat_n(1, 1000).chain([2]);
    let remembered = [1, 2].map(|_| Arc::<AtomicU32>::default());
    for (number, flow) in flows.enumerate() {
        let item = Item {
            flow,
            number: number as u64,
            remembered: Arc::clone(&remembered[flow as usize - 1]),
        };
        assert!(queue.push(Event::new(item)).is_ok());
    }
    let (share, flows) = next_flows(&mut queue, 100);
    queue.release(share);
    assert_eq!(
        flows.iter().filter(|&&flow| flow == 1).count(),
        FLOW_SHARE_MAX
    );
    assert!(flows.contains(&2));
}

#[test]
fn an_event_of_a_busy_flow_does_not_hold_up_the_others() {
    let mut queue: ByFlow<Item, Of> = ByFlow::new(false, flow_of);
    let remembered = [1, 2].map(|_| Arc::<AtomicU32>::default());
    for (number, flow) in [(0, 1), (1, 1), (0, 2)] {
        let remembered = Arc::clone(&remembered[flow as usize - 1]);
        let item = Item {
            flow,
            number,
            remembered,
        };
        assert!(queue.push(Event::new(item)).is_ok());
    }
    let (first, flows) = next_flows(&mut queue, 1);
    assert_eq!(flows, [1]);
    let (second, flows) = next_flows(&mut queue, 9);
    assert_eq!(flows, [2]);
    assert!(!queue.is_ready(), "flow 1 is busy");
    queue.release(first);
    queue.release(second);
    let (_, flows) = next_flows(&mut queue, 9);
    assert_eq!(flows, [1]);
}

/// The number of a share's generation comes back after 2^14 shares, and with it the mark of a flow
/// that had no events in the meantime.
#[test]
fn a_mark_that_is_out_of_date_mixes_no_flows() {
    let mut queue: ByFlow<Item, Of> = ByFlow::new(true, flow_of);
    let remembered = [1, 2, 3].map(|_| Arc::<AtomicU32>::default());
    let push = |queue: &mut ByFlow<Item, Of>, flow: u64| {
        let item = Item {
            flow,
            number: 0,
            remembered: Arc::clone(&remembered[flow as usize - 1]),
        };
        assert!(queue.push(Event::new(item)).is_ok());
    };
    for flow in std::iter::once(1).chain(std::iter::repeat_n(2, (1 << 14) - 1)) {
        push(&mut queue, flow);
        let (share, flows) = next_flows(&mut queue, 9);
        assert_eq!(flows, [flow]);
        queue.release(share);
    }
    push(&mut queue, 1);
    push(&mut queue, 3);
    let (share, flows) = next_flows(&mut queue, 9);
    assert_eq!(flows, [1]);
    queue.release(share);
    assert_eq!(next_flows(&mut queue, 9).1, [3]);
}

/// Two servlets are never idle, and each event that ends makes room for another one. With a
/// queue in the order of arrival, an event would wait for as many others as there is room for.
#[test]
fn an_event_that_is_set_aside_waits_for_few_others() {
    const ROOM: u64 = 1024;
    let mut queue: ByFlow<Item, Of> = ByFlow::new(false, flow_of);
    let flows: Vec<_> = (0..1000).map(|_| Arc::default()).collect();
    let mut random = Random::new(1);
    let mut push = |queue: &mut ByFlow<Item, Of>, number| {
        let flow = random.next() as usize % flows.len();
        let item = Item {
            flow: flow as u64 + 1,
            number,
            remembered: Arc::clone(&flows[flow]),
        };
        assert!(queue.push(Event::new(item)).is_ok());
    };
    (0..ROOM).for_each(|_| push(&mut queue, 0));
    let (mut busy, mut ended, mut longest) = (VecDeque::new(), 0, 0);
    while ended < 200_000 {
        let share = queue.open(Order::Fifo).expect("there are events");
        let taken = std::iter::from_fn(|| queue.take_one()).take(32);
        busy.push_back((share, taken.collect::<Vec<_>>()));
        if busy.len() == 2 {
            let (share, events) = busy.pop_front().expect("there are two");
            queue.release(share);
            for event in events {
                longest = longest.max(ended - event.number);
                ended += 1;
                push(&mut queue, ended);
            }
        }
    }
    assert!(longest < 2 * ROOM, "an event waited for {longest} others");
}
