//! A module that assigns items to flows.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;

use crate::flow::{FieldName, Fields, Key, Out, Value, module};

/// Assigns each item to the flow that is named by one of the item's fields.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `by` | text, a field of `T` | the field |
/// | `flows` | count, at least 1, default 10,000 | the maximum number of open flows |
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | `T` with [`Fields`] | an item |
/// | output `out` | `T` | the same items, in order; an item without the field belongs to no flow |
///
/// If a new flow raises the number of open flows above `flows`, the module ends the flow that has
/// been without items for the longest time. The flows of this module stay open when the source
/// ends. When the graph is drained, `end` is therefore not called for these flows in later modules.
/// The module handles one item at a time.
#[module]
pub struct Split<T> {
    by: FieldName<T>,
    flows: usize,
    /// The number of the last item of each open flow, and the flows in the order of these numbers.
    last: HashMap<Key, u64>,
    order: BTreeMap<u64, Key>,
    number: u64,
}

/// Bound, in flows: the default maximum number of open flows. A flow with state takes a few hundred
/// bytes.
const FLOWS_MAX: usize = 10_000;

#[module]
impl<T: Fields + Clone + Send + 'static> Split<T> {
    fn init(by: FieldName<T>, flows: Option<NonZeroUsize>) -> Self {
        Self {
            by,
            flows: flows.map_or(FLOWS_MAX, NonZeroUsize::get),
            last: HashMap::new(),
            order: BTreeMap::new(),
            number: 0,
        }
    }

    fn run(&mut self, item: T, out: &impl Out<T>) {
        let key = match item.field(self.by.get()) {
            None => return out.send(item),
            Some(Value::Count(number)) => Key::from(number),
            Some(value) => Key::from(super::filter::text(&value)),
        };
        self.number += 1;
        if let Some(last) = self.last.insert(key.clone(), self.number) {
            self.order.remove(&last);
        }
        self.order.insert(self.number, key.clone());
        out.to(key, item);
        if self.order.len() > self.flows
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.last.remove(&oldest);
            out.close(oldest);
        }
    }
}
