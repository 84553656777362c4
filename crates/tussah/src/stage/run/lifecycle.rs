//! The lifecycle of a stage: pausing, draining, closing, swapping its handler, and calls.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tussah_core::Notified;

use super::host::{Gone, Home};
use super::shared::Shared;
use crate::stage::error::BuildError;
use crate::stage::event::{Batch, Reason};
use crate::stage::network::Network;
use crate::stage::queue::Queue;
use crate::stage::send::Counted;
use crate::stage::state::{Gate, Kind};

impl<E: Send + 'static> Home for Arc<Shared<E>> {
    fn now_ns(&self) -> u64 {
        self.time.now_ns()
    }

    fn is_open(&self) -> bool {
        self.lock().state.gate != Gate::Closed
    }

    fn fail(&self, why: &str) {
        Shared::fail(self, Some(why));
    }
}

impl<E: Send + 'static> Shared<E> {
    /// Changes the gate if its current state is `from`.
    pub(crate) fn set_gate(self: &Arc<Self>, from: Gate, to: Gate) {
        let mut inner = self.lock();
        if inner.state.gate == from {
            inner.state.gate = to;
        }
        self.release(inner);
    }

    /// Stops admission. Waiting senders receive an error.
    pub(crate) fn close_for_draining(self: &Arc<Self>) {
        let mut inner = self.lock();
        if inner.state.gate != Gate::Closed {
            inner.state.gate = Gate::Draining;
            inner.take_back_room();
        }
        self.release(inner);
    }

    /// Waits until nothing is queued and no batch is running.
    pub(crate) async fn settled(&self) {
        while let Some(settled) = self.settles() {
            settled.await;
        }
    }

    /// Stops or resumes starting servlets.
    pub(crate) fn hold_back(self: &Arc<Self>, held: bool) {
        let mut inner = self.lock();
        inner.state.held_back = held;
        self.release(inner);
    }

    /// Closes the stage because its handler can no longer be created.
    pub(crate) fn fail(self: &Arc<Self>, why: Option<&str>) {
        let why: Option<Arc<str>> = why.map(Into::into);
        let mut inner = self.lock();
        let closes = inner.state.gate != Gate::Closed;
        if closes {
            inner.state.closed_for.clone_from(&why);
        }
        inner.state.close(Reason::Panicked);
        self.release(inner);
        let (true, Some(why)) = (closes, why) else {
            return;
        };
        let network = self.network.upgrade();
        let position = network.as_ref().map(|it| it.position(&self.name));
        let position = position.unwrap_or_default();
        let network = network.as_ref().map(Network::name);
        let name = &self.name;
        tracing::error!(target: "tussah", network, "stage {name:?} ({position}) is closed: {why}");
        if let Some(on_close) = &self.on_close {
            tussah_core::quietly(|| on_close(&why));
        }
    }

    /// Closes the stage and drops all queued events. Returns their number.
    pub(crate) fn close(self: &Arc<Self>) -> u64 {
        self.end(Reason::ShutDown)
    }

    fn end(self: &Arc<Self>, reason: Reason) -> u64 {
        let mut inner = self.lock();
        let count = inner.state.len();
        inner.state.close(reason);
        self.release(inner);
        count
    }

    /// Notes that the runtime or the pool of OS threads starts no more servlets: the stage ends
    /// with its last servlet.
    pub(crate) fn orphan(self: &Arc<Self>) {
        let mut inner = self.lock();
        inner.state.orphaned = true;
        self.release(inner);
    }

    /// Checks that the stage is not closed.
    ///
    /// # Errors
    /// Returns an error if the stage is closed; it then cannot have new edges.
    pub(crate) fn check_open(&self) -> Result<(), BuildError> {
        match self.lock().state.gate {
            Gate::Closed => Err(self.is_closed()),
            _ => Ok(()),
        }
    }

    pub(crate) fn is_closed(&self) -> BuildError {
        BuildError::Closed {
            stage: self.name.to_string(),
        }
    }

    /// Returns whether the handler blocks its OS thread.
    pub(crate) fn blocks(&self) -> bool {
        self.lock().state.kind == Kind::Blocking
    }

    /// Makes the queue hold at least this many credits.
    pub(crate) fn make_room(self: &Arc<Self>, credits: u64) {
        let mut inner = self.lock();
        if inner.state.bounds.queue_max < credits {
            inner.state.set_queue_max(credits);
        }
        self.release(inner);
    }

    /// Limits batches to one event.
    pub(crate) fn make_batches_single(&self) {
        self.lock().state.set_batch_max(1);
    }

    /// Limits the stage to this number of servlets, unless its limit is lower.
    pub(crate) fn limit_servlets(&self, most: usize) {
        let mut inner = self.lock();
        let most = most.min(inner.state.bounds.servlets_max);
        inner.state.set_servlets_max(most);
    }

    /// Stops new batches until the returned guard is dropped. Waits until the running batches have
    /// finished, if they must not overlap with another handler. Only one swap runs at a time.
    pub(crate) async fn begin_swap(
        self: &Arc<Self>,
        serial: bool,
    ) -> Result<Swapping<'_, E>, BuildError> {
        let turn = self.swaps.lock().await;
        let alone = self.can_swap()?;
        let swapping = Swapping {
            _held: self.hold(),
            _turn: turn,
        };
        if alone || serial {
            self.nothing_runs().await;
        }
        if let Some(present) = self.present() {
            present.retire().await;
        }
        Ok(swapping)
    }

    /// Stops new batches until the returned value is dropped.
    pub(crate) fn hold(self: &Arc<Self>) -> Held<E> {
        self.lock().state.held += 1;
        Held(Arc::clone(self))
    }

    /// Returns whether the running batches have to end before a swap.
    fn can_swap(&self) -> Result<bool, BuildError> {
        let inner = self.lock();
        if matches!(inner.state.gate, Gate::Draining | Gate::Closed) {
            return Err(self.is_closed());
        }
        Ok(matches!(inner.state.queue, Queue::Keyed(_)) || inner.state.servlets.max == 1)
    }

    /// Returns a future that completes when nothing is queued or in service; `None` if this is
    /// already so.
    fn settles(&self) -> Option<Notified<'_>> {
        let settled = self.settled.notified();
        let mut inner = self.lock();
        if inner.state.is_empty() {
            return None;
        }
        inner.settling = true;
        Some(settled)
    }

    /// Waits until no batch is running.
    pub(crate) async fn nothing_runs(&self) {
        poll_fn(|cx| {
            let mut inner = self.lock();
            if inner.state.in_service() == 0 {
                return Poll::Ready(());
            }
            let mut waiting = inner.resting.iter();
            if !waiting.any(|waker| waker.will_wake(cx.waker())) {
                inner.resting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Calls the current handler, or the proxy.
    pub(crate) async fn call_any(
        self: &Arc<Self>,
        batch: &mut Batch<E>,
        from: u32,
    ) -> Result<(), Gone> {
        if self.call_by_proxy(batch, from).await.is_some() {
            return Ok(());
        }
        let counted = Counted::of(self, batch);
        let batch = &mut *counted.batch;
        if batch.is_watched() {
            return self.call_traced(batch).await;
        }
        self.call_direct(batch).await
    }

    /// Calls the current handler, not a proxy.
    pub(crate) async fn call_direct(self: &Arc<Self>, batch: &mut Batch<E>) -> Result<(), Gone> {
        if matches!(self.lock().state.queue, Queue::Keyed(_)) {
            return self.call_by_key(batch).await;
        }
        self.call_present(batch).await
    }

    async fn call_present(self: &Arc<Self>, batch: &mut Batch<E>) -> Result<(), Gone> {
        loop {
            let host = self.present().ok_or(Gone)?;
            if host.call(batch, self).await.is_ok() {
                return Ok(());
            }
            // Another handler may have replaced it while this call waited, or may be about to.
            let changed = self.keys.notified();
            if self.lock().state.held > 0 {
                changed.await;
                continue;
            }
            let same = self
                .present()
                .is_none_or(|present| Arc::ptr_eq(&present, &host));
            if same {
                return Err(Gone);
            }
        }
    }

    /// Handles the events of a batch key by key, each when its key is free. Unhandled events move
    /// to the batch's end.
    async fn call_by_key(self: &Arc<Self>, batch: &mut Batch<E>) -> Result<(), Gone> {
        let mut to_do = batch.len();
        while to_do > 0 {
            let key = self.enter_key(batch).await;
            let _busy = BusyKey(self, key);
            let mut part = Part::of(batch);
            if let Queue::Keyed(keyed) = &self.lock().state.queue {
                part.whole
                    .part(&mut part.same, |one, other| keyed.same(one, other));
            }
            to_do -= part.same.len();
            self.call_present(&mut part.same).await?;
        }
        Ok(())
    }

    /// Waits until the key of the batch's next event is free, and makes it busy.
    async fn enter_key(&self, batch: &mut Batch<E>) -> usize {
        loop {
            let mut notified = std::pin::pin!(self.keys.notified());
            notified.as_mut().enable();
            let entered = match &mut self.lock().state.queue {
                Queue::Keyed(keyed) => keyed.enter(&batch.contiguous()[0]),
                Queue::Lanes(_) => unreachable!("a stage by key stays one"),
            };
            match entered {
                Some(key) => return key,
                None => notified.await,
            }
        }
    }
}

/// The events of one key from a batch. Dropping this returns the events that were not taken.
struct Part<'a, E> {
    whole: &'a mut Batch<E>,
    same: Batch<E>,
}

impl<'a, E> Part<'a, E> {
    fn of(whole: &'a mut Batch<E>) -> Self {
        Self {
            whole,
            same: Batch::default(),
        }
    }
}

impl<E> Drop for Part<'_, E> {
    fn drop(&mut self) {
        self.whole.absorb(&mut self.same);
    }
}

/// A swap in progress. Dropping this resumes the stage, whether or not the handler was swapped.
pub(crate) struct Swapping<'a, E: Send + 'static> {
    _held: Held<E>,
    _turn: async_lock::MutexGuard<'a, ()>,
}

/// A stage in which no batch begins. Dropping this resumes the stage, unless something else holds
/// it.
pub(crate) struct Held<E: Send + 'static>(Arc<Shared<E>>);

impl<E: Send + 'static> Drop for Held<E> {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.state.held -= 1;
        self.0.release(inner);
        // Wakes calls that found the earlier handler retired.
        self.0.keys.notify_waiters();
    }
}

/// Frees a key when dropped.
struct BusyKey<'a, E: Send + 'static>(&'a Arc<Shared<E>>, usize);

impl<E: Send + 'static> Drop for BusyKey<'_, E> {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.state.release_key(self.1);
        self.0.release(inner);
        self.0.keys.notify_waiters();
    }
}
