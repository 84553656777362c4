//! The open flows of an output port, and the bounds on their number.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::args::Args;
use super::flows::{Flow, Key, Open};
use super::keepers::Keepers;
use super::param::Param;
use crate::time::now;

/// The bounds on the open flows of each output port of a module.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowBounds {
    /// Bound, in flows: the maximum number of open flows. Another flow ends the one that has been
    /// idle for the longest time.
    pub(crate) flows: Option<usize>,
    /// The time without an item after which a flow ends.
    pub(crate) idle: Option<Duration>,
}

impl FlowBounds {
    /// Reads the arguments `flows` and `idle`.
    ///
    /// # Errors
    /// Returns the reason if an argument is invalid.
    pub(crate) fn read(args: &Args) -> Result<Self, String> {
        let flows: Option<usize> = args.get_if("flows", Some(Param::read))?;
        let idle: Option<Duration> = args.get_if("idle", Some(Param::read))?;
        if flows == Some(0) {
            return Err("the argument `flows` is 0: expected at least 1".to_owned());
        }
        if idle == Some(Duration::ZERO) {
            return Err("the argument `idle` is 0: expected the time without an item".to_owned());
        }
        Ok(Self { flows, idle })
    }

    fn is_any(&self) -> bool {
        self.flows.is_some() || self.idle.is_some()
    }
}

/// The flows that a port has opened and not closed.
#[derive(Default)]
pub(crate) struct OpenFlows {
    open: HashSet<Open>,
    /// The order in which they were used, if there are bounds.
    uses: Option<Uses>,
    bounds: FlowBounds,
}

/// The times of the last items of flows.
#[derive(Default)]
struct Uses {
    /// The number of the last item of each flow, and the flows in the order of these numbers.
    last: HashMap<Key, u64>,
    order: BTreeMap<u64, (Key, Instant)>,
    number: u64,
}

impl OpenFlows {
    pub(crate) fn set_bounds(&mut self, bounds: FlowBounds) {
        self.bounds = bounds;
        self.uses = bounds.is_any().then(Uses::default);
    }

    /// Returns the flow with this name, which is opened if necessary, and the flow that must end to
    /// make room for it.
    pub(crate) fn begin(&mut self, key: Key, keepers: &Arc<Keepers>) -> (Flow, Option<Flow>) {
        let idlest = self.uses.as_mut().and_then(|uses| {
            uses.note(&key);
            uses.beyond(self.bounds.flows?)
        });
        let ended = idlest.and_then(|idlest| self.take(&idlest));
        if let Some(Open(flow)) = self.open.get(&key) {
            return (flow.clone(), ended);
        }
        let flow = Flow::open(key, keepers);
        self.open.insert(Open(flow.clone()));
        (flow, ended)
    }

    /// Takes out the flow of this name.
    pub(crate) fn take(&mut self, key: &Key) -> Option<Flow> {
        if let Some(uses) = &mut self.uses {
            uses.forget(key);
        }
        self.open.take(key).map(|Open(flow)| flow)
    }

    /// Takes out the flows that have been idle for too long. Also returns the time at which the
    /// next flow may be.
    pub(crate) fn take_idle(&mut self) -> (Vec<Flow>, Option<Instant>) {
        let (mut ended, now) = (Vec::new(), now());
        let Some(idle) = self.bounds.idle else {
            return (ended, None);
        };
        while let Some((key, ends)) = self.uses.as_ref().and_then(|uses| uses.oldest(idle)) {
            if ends > now {
                return (ended, Some(ends));
            }
            ended.extend(self.take(&key));
        }
        (ended, None)
    }

    /// Returns all flows.
    pub(crate) fn all(&self) -> Vec<Flow> {
        self.open.iter().map(|open| open.0.clone()).collect()
    }
}

impl Drop for OpenFlows {
    /// Closes the flows: no more items of them arrive from here.
    fn drop(&mut self) {
        self.open.drain().for_each(|Open(flow)| flow.close());
    }
}

impl Uses {
    /// Records an item of the flow.
    fn note(&mut self, key: &Key) {
        self.number += 1;
        if let Some(last) = self.last.insert(key.clone(), self.number) {
            self.order.remove(&last);
        }
        self.order.insert(self.number, (key.clone(), now()));
    }

    fn forget(&mut self, key: &Key) {
        if let Some(last) = self.last.remove(key) {
            self.order.remove(&last);
        }
    }

    /// Returns the flow that was idle for the longest time, if there are more than `most` flows.
    fn beyond(&self, most: usize) -> Option<Key> {
        let is_beyond = self.order.len() > most;
        let (_, (key, _)) = self.order.first_key_value().filter(|_| is_beyond)?;
        Some(key.clone())
    }

    /// Returns the flow that was idle for the longest time, and the end of its idle time.
    fn oldest(&self, idle: Duration) -> Option<(Key, Instant)> {
        let (_, (key, at)) = self.order.first_key_value()?;
        Some((key.clone(), *at + idle))
    }
}
