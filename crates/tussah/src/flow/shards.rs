//! Shards: several instances that share the items of one input port.

use std::hash::{BuildHasher as _, DefaultHasher, Hasher, RandomState};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::edge::{Edge, Erased, InPort, Inlet, Push, Wait};
use super::error::GraphError;
use super::fields::HashField;
use super::flows::Flow;
use super::keepers::Keepers;
use super::proxy::{Detour, Interposed};
use super::via::Via;
use crate::stage::{BuildError, Edges, Reason};

/// The way in which the items of a port are divided among shards.
#[derive(Clone, Debug, Default)]
pub(crate) struct By {
    /// The field whose value chooses the shard. Without a field, the shards take turns.
    pub(crate) field: Option<String>,
    /// All ports of an instance hash with the same keys, which outsiders cannot guess.
    keys: RandomState,
}

/// Several instances with one name, the shards.
pub(super) struct Group {
    pub(super) name: String,
    /// The numbers of the instances.
    pub(super) shards: Range<usize>,
    by: By,
}

impl Group {
    pub(super) fn new(name: &str, shards: Range<usize>, field: Option<&str>) -> Self {
        Self {
            name: name.to_owned(),
            shards,
            by: By {
                field: field.map(str::to_owned),
                keys: RandomState::new(),
            },
        }
    }

    /// Returns the ports of all shards together.
    pub(super) fn join(&self, shards: &[(String, Vec<InPort>)]) -> Result<Vec<InPort>, GraphError> {
        let (_, first) = &shards[0];
        let joined = first.iter().enumerate().map(|(number, port)| {
            let inlets = shards.iter().map(|(_, ports)| &*ports[number].inlet);
            let inlets: Vec<_> = inlets.collect();
            let inlet = (port.join)(&inlets, &self.by);
            let inlet = inlet.map_err(|why| GraphError::instance(&self.name, why))?;
            Ok(InPort {
                inlet,
                join: Arc::clone(&port.join),
                entry: None,
                ..*port
            })
        });
        joined.collect()
    }
}

/// Combines the input ports of several shards into one. All of them are an `Arc<dyn Inlet<T>>`.
///
/// # Errors
/// Returns an error if the items do not have the field.
pub(crate) fn join<T: Send + 'static>(
    inlets: &[&Erased],
    by: &By,
    hash: Option<HashField<T>>,
) -> Result<Box<Erased>, String> {
    let inlets = inlets.iter().map(|inlet| {
        let inlet: Option<&Arc<dyn Inlet<T>>> = inlet.downcast_ref();
        Arc::clone(inlet.expect("all shards are instances of one module"))
    });
    let inlets: Vec<_> = inlets.collect();
    if by.field.is_some() && hash.is_none() {
        return Err(format!(
            "`{}` has no fields to choose a shard by: expected `#[derive(Fields)]`",
            std::any::type_name::<T>()
        ));
    }
    let joined: Arc<dyn Inlet<T>> = Arc::new(Joined {
        inlets,
        by: by.clone(),
        hash,
    });
    Ok(Box::new(joined))
}

/// The input port of several shards.
struct Joined<T> {
    inlets: Vec<Arc<dyn Inlet<T>>>,
    by: By,
    hash: Option<HashField<T>>,
}

impl<T: Send + 'static> Joined<T> {
    fn edge(&self, edges: Vec<Arc<dyn Push<T>>>) -> Arc<dyn Push<T>> {
        Arc::new(Sharded {
            edges,
            by: self.by.clone(),
            hash: self.hash,
            next: AtomicUsize::new(0),
        })
    }
}

impl<T: Send + 'static> Inlet<T> for Joined<T> {
    fn connect(
        &self,
        edges: &Edges<'_>,
        via: &Via,
        keepers: &Arc<Keepers>,
    ) -> Result<Edge<T>, BuildError> {
        let all = self.inlets.iter();
        let all = all.map(|inlet| inlet.connect(edges, via, keepers).map(Edge::into_any));
        Ok(Edge::from(self.edge(all.collect::<Result<_, _>>()?)))
    }

    fn outside(&self) -> Arc<dyn Push<T>> {
        self.edge(self.inlets.iter().map(|inlet| inlet.outside()).collect())
    }

    fn interpose(&self, _: &Detour<'_>, _: &dyn Inlet<T>) -> Result<Interposed, BuildError> {
        unreachable!("an edge to shards was refused")
    }
}

/// The edges to several shards.
struct Sharded<T> {
    edges: Vec<Arc<dyn Push<T>>>,
    by: By,
    hash: Option<HashField<T>>,
    /// The shard whose turn is next.
    next: AtomicUsize,
}

impl<T> Sharded<T> {
    fn choose(&self, item: &T) -> &dyn Push<T> {
        let number = match (&self.by.field, self.hash) {
            (Some(field), Some(hash)) => {
                let mut choice = Choice::Hash(self.by.keys.build_hasher());
                hash(item, field, &mut choice);
                choice.finish() as usize
            }
            _ => self.next.fetch_add(1, Ordering::Relaxed),
        };
        &*self.edges[number % self.edges.len()]
    }
}

/// The shard of an item: a hash, or the number that the item names.
enum Choice {
    Hash(DefaultHasher),
    Number(usize),
}

impl Hasher for Choice {
    fn write(&mut self, bytes: &[u8]) {
        if let Self::Hash(hasher) = self {
            hasher.write(bytes);
        }
    }

    fn write_usize(&mut self, number: usize) {
        *self = Self::Number(number);
    }

    fn finish(&self) -> u64 {
        match self {
            Self::Hash(hasher) => hasher.finish(),
            Self::Number(number) => *number as u64,
        }
    }
}

impl<T: Send + 'static> Push<T> for Sharded<T> {
    fn push(&self, flow: Flow, item: T) -> Option<Wait<'_>> {
        self.choose(&item).push(flow, item)
    }

    fn offer(&self, flow: Flow, item: T) -> bool {
        self.choose(&item).offer(flow, item)
    }

    fn end(&self, flow: Flow, item: T, why: Reason) -> Option<Wait<'static>> {
        self.choose(&item).end(flow, item, why)
    }
}
