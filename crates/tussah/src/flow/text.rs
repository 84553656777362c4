//! Conversion of items to and from text, for tests that watch ports and send items.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tussah_core::Handle;
use tussah_weave::Type;

use super::delay::Delayed;
use super::edge::{Edge, InPort, Inlet, Push, Wait};
use super::error::GraphError;
use super::flows::Flow;
use super::install::{Installed, Instance};
use super::keepers::Keepers;
use super::outlet::AnyOutlet;
use super::proxy::{Detour, Interposed};
use super::running::{Input, Running};
use super::tap::{Ports, Show, Shown};
use super::via::Via;
use crate::stage::{BuildError, Edges, Network, Reason};
use crate::sync::Limit;

/// The items that have arrived at a port, as text.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// The conversions of a type of items from and to text.
pub(crate) struct Text<T> {
    pub(crate) item: Type,
    pub(crate) parse: Option<fn(&str) -> Option<T>>,
    pub(crate) show: Option<Show<T>>,
    pub(crate) debug: Option<Show<T>>,
}

/// A [`Text`] whose type is erased.
pub(crate) trait AnyText: Send + Sync + UnwindSafe + RefUnwindSafe {
    fn item(&self) -> &Type;

    /// Returns whether an item can be made of text.
    fn parses(&self) -> bool;

    /// Returns whether an item has a `Display` text.
    fn displays(&self) -> bool;

    /// Returns whether an item has a `Debug` text.
    fn debugs(&self) -> bool;

    /// Returns an instance that takes items at its `run` port, and records them in a log.
    ///
    /// # Errors
    /// Returns an error if the type cannot be converted to text.
    fn recorder(&self, log: &Log) -> Result<Box<dyn Instance>, String>;

    /// Returns an item that is sent to a port when the future runs.
    ///
    /// # Errors
    /// Returns an error if the text is not an item, or if the port takes items of another type.
    fn send(&self, running: &Running, end: &str, text: &str) -> Result<Wait<'static>, String>;
}

impl<T: Send + 'static> AnyText for Text<T> {
    fn item(&self) -> &Type {
        &self.item
    }

    fn parses(&self) -> bool {
        self.parse.is_some()
    }

    fn displays(&self) -> bool {
        self.show.is_some()
    }

    fn debugs(&self) -> bool {
        self.debug.is_some()
    }

    fn recorder(&self, log: &Log) -> Result<Box<dyn Instance>, String> {
        let show = self.show.or(self.debug).ok_or_else(|| {
            let item = self.item.short();
            format!("`{item}` cannot be shown as text: expected it to have `Display` or `Debug`")
        })?;
        let log = Arc::clone(log);
        Ok(Box::new(Arc::new(Recorder { show, log })))
    }

    fn send(&self, running: &Running, end: &str, text: &str) -> Result<Wait<'static>, String> {
        let name = self.item.short();
        let parse = self.parse.ok_or_else(|| {
            format!("`{name}` cannot be made of text: expected it to have `FromStr`")
        })?;
        let item = parse(text).ok_or_else(|| format!("{text:?} is not a `{name}`"))?;
        let input: Result<Input<T>, GraphError> = running.input(end);
        let input = input.map_err(|error| error.to_string())?;
        Ok(Box::pin(async move { input.send(item).await }))
    }
}

/// The port of an instance that records the items that it receives. It has no queue, and records
/// each item when it is sent.
struct Recorder<T> {
    show: Show<T>,
    log: Log,
}

/// A recorder in a graph.
struct Placed<T> {
    recorder: Arc<Recorder<T>>,
    runtime: Handle,
}

impl<T: Send + 'static> Instance for Arc<Recorder<T>> {
    fn has_state(&self) -> bool {
        false
    }

    fn starts(&self) -> bool {
        false
    }

    fn blocks(&self) -> bool {
        false
    }

    fn read_args(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn set_target(&mut self, _target: Duration) {}

    fn set_limit(&mut self, _limit: Limit) {}

    fn set_slot(&mut self, _slot: usize) {}

    fn declare(
        &mut self,
        network: &Network,
        _: (&str, &Arc<str>),
        _: bool,
    ) -> Result<Vec<InPort>, BuildError> {
        let inlet: Arc<dyn Inlet<T>> = Arc::new(Placed {
            recorder: Arc::clone(self),
            runtime: network.handle().clone(),
        });
        Ok(vec![InPort::new("run", inlet, None)])
    }

    fn outs(&mut self, _f: &mut dyn FnMut(&'static str, &mut dyn AnyOutlet)) {}

    fn ports(&self) -> Option<Arc<dyn Ports>> {
        None
    }

    fn install(self: Box<Self>, _keepers: &Arc<Keepers>) -> Result<Installed, BuildError> {
        Ok(Installed::default())
    }
}

impl<T: Send + 'static> Inlet<T> for Placed<T> {
    fn connect(
        &self,
        _edges: &Edges<'_>,
        via: &Via,
        keepers: &Arc<Keepers>,
    ) -> Result<Edge<T>, BuildError> {
        let edge = self.outside();
        Ok(Edge::from(match via.after.is_zero() {
            true => edge,
            false => Arc::new(Delayed::new(edge, via, keepers, &self.runtime)),
        }))
    }

    fn outside(&self) -> Arc<dyn Push<T>> {
        self.recorder.clone()
    }

    fn interpose(&self, _: &Detour<'_>, _: &dyn Inlet<T>) -> Result<Interposed, BuildError> {
        unreachable!("an edge to a double was refused")
    }
}

impl<T: Send + 'static> Push<T> for Recorder<T> {
    fn push(&self, _flow: Flow, item: T) -> Option<Wait<'_>> {
        let text = Shown(&item, self.show).to_string();
        self.log.lock().push(text);
        None
    }

    fn offer(&self, flow: Flow, item: T) -> bool {
        // Nothing waits here.
        self.push(flow, item).is_none()
    }

    fn end(&self, _flow: Flow, _item: T, _why: Reason) -> Option<Wait<'static>> {
        None
    }
}
