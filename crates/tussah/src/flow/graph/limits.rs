//! The limits of a graph: sets of instances, each with a maximum number of items.

use std::collections::BTreeSet;

use super::Graph;
use crate::flow::error::GraphError;
use crate::flow::shards::Group;
use crate::sync::Limit;

impl Graph {
    /// Limits the number of items inside a set of instances. The limit counts both queued items and
    /// items that an instance is handling. If the set is full, an item from outside waits until the
    /// set is no longer full. If the set is full and the edge of an incoming item sheds or drops
    /// items, the item goes to the receiver's `dropped` port immediately. An item from outside, and
    /// all items that the instances send for it in any flow, together count as one item until all
    /// of them have left the set. A call to `tick`, `wake` or `end` also counts as an item from
    /// outside. A pending alarm does not count.
    ///
    /// Even with a limit, each cycle inside the set must have an edge that can drop items. An edge
    /// that closes a cycle drops no items if its capacity is at least `items` and each module sends
    /// at most one item for each item that it handles. In Weave, the capacity of an edge that
    /// closes a cycle is at least the limit of its set, unless the policy of the edge is `shed` or
    /// `drop_oldest`.
    ///
    /// # Errors
    /// Returns an error if an instance does not exist, is already in a set, or has the method
    /// `start`, or if a name denotes one shard instead of all shards. Also returns an error if
    /// `items` is 0.
    pub fn limit(&mut self, items: usize, instances: &[&str]) -> Result<(), GraphError> {
        let mut inside = BTreeSet::new();
        for name in instances {
            for place in self.place(name)? {
                let is_taken = self.limit_of(place).is_some() || inside.contains(&place);
                let mut groups = self.groups.iter();
                let group = groups.find(|it| it.shards.contains(&place) && it.name != *name);
                let why = match group {
                    Some(Group { name, .. }) => {
                        format!("it is one shard: expected a limit for all, as `{name}`")
                    }
                    None if items == 0 => "it is in a limit of 0 items: expected at least 1".into(),
                    None if is_taken => "it is in two limits: expected one".into(),
                    None if self.instances[place].instance.starts() => {
                        "it has `start`, whose items a limit does not count: expected a limit \
                         without it"
                            .into()
                    }
                    None => {
                        inside.insert(place);
                        continue;
                    }
                };
                return Err(GraphError::instance(&self.instances[place].name, why));
            }
        }
        let limit = Limit::new(format!("{}: {}", self.name, instances.join(", ")), items);
        for &place in &inside {
            self.limited.insert(place, self.limits.len());
            self.instances[place].instance.set_limit(limit.clone());
        }
        self.limits.push((limit, inside));
        Ok(())
    }

    pub(super) fn limit_of(&self, instance: usize) -> Option<&Limit> {
        let limit = self.limited.get(&instance)?;
        Some(&self.limits[*limit].0)
    }
}
