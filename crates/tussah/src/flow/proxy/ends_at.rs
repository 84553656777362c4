//! The port for items that a proxy did not handle.

use std::sync::Arc;

use super::{Detour, Interposed};
use crate::flow::dropped::Dropped;
use crate::flow::edge::{Edge, Erased, Inlet, Push, Wait};
use crate::flow::flows::Flow;
use crate::flow::keepers::Keepers;
use crate::flow::via::Via;
use crate::stage::{BuildError, Edges, Reason};

/// Makes a port for items that a proxy before this port did not handle.
pub(crate) fn ends_at<T: Send + 'static>(inlet: &Erased) -> Box<Erased> {
    let inlet: Option<&Arc<dyn Inlet<T>>> = inlet.downcast_ref();
    let receiver = inlet.expect("it is the port's own").outside();
    let ends: Arc<dyn Inlet<Dropped<T>>> = Arc::new(EndsAt(receiver));
    Box::new(ends)
}

/// The port of a receiver for items that a proxy did not handle. They end as if the receiver had
/// dropped them.
struct EndsAt<T>(Arc<dyn Push<T>>);

impl<T: Send + 'static> Inlet<Dropped<T>> for EndsAt<T> {
    fn connect(
        &self,
        _: &Edges<'_>,
        _: &Via,
        _: &Arc<Keepers>,
    ) -> Result<Edge<Dropped<T>>, BuildError> {
        Ok(Edge::from(self.outside()))
    }

    fn outside(&self) -> Arc<dyn Push<Dropped<T>>> {
        Arc::new(Self(Arc::clone(&self.0)))
    }

    fn interpose(
        &self,
        _: &Detour<'_>,
        _: &dyn Inlet<Dropped<T>>,
    ) -> Result<Interposed, BuildError> {
        unreachable!("the graph does not know this port")
    }
}

impl<T: Send + 'static> Push<Dropped<T>> for EndsAt<T> {
    fn push(&self, flow: Flow, Dropped { item, reason, .. }: Dropped<T>) -> Option<Wait<'_>> {
        self.0.end(flow, item?, reason).map(|wait| wait as Wait<'_>)
    }

    fn offer(&self, flow: Flow, item: Dropped<T>) -> bool {
        // The receiver reports a loss itself.
        drop(self.push(flow, item));
        true
    }

    fn end(&self, flow: Flow, item: Dropped<T>, _: Reason) -> Option<Wait<'static>> {
        self.0.end(flow, item.item?, item.reason)
    }
}
