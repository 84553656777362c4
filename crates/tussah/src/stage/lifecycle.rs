//! How a stage is paused, drained, closed and given another handler, and how it is called.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tussah_core::Notified;

use super::batch::Batch;
use super::error::BuildError;
use super::event::Reason;
use super::host::Gone;
use super::network::Network;
use super::queue::Queue;
use super::shared::Shared;
use super::state::{Gate, Kind};

impl<E: Send + 'static> Shared<E> {
    /// Moves the gate, if it is where the caller thinks.
    pub(crate) fn set_gate(self: &Arc<Self>, from: Gate, to: Gate) {
        let mut inner = self.lock();
        if inner.state.gate == from {
            inner.state.gate = to;
        }
        self.release(inner);
    }

    /// Lets nothing in any more. Senders that wait are told.
    pub(crate) fn close_for_draining(self: &Arc<Self>) {
        let mut inner = self.lock();
        if inner.state.gate != Gate::Closed {
            inner.state.gate = Gate::Draining;
        }
        self.release(inner);
    }

    /// Waits until nothing is queued and no batch runs.
    pub(crate) async fn settled(&self) {
        while let Some(settled) = self.settles() {
            settled.await;
        }
    }

    /// Calls no servlet for a while, or does again.
    pub(crate) fn hold_back(self: &Arc<Self>, held: bool) {
        let mut inner = self.lock();
        inner.state.held_back = held;
        self.release(inner);
    }

    /// The handler can't be made any more.
    pub(crate) fn fail(self: &Arc<Self>, why: Option<String>) {
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
        let network = network.as_ref().map(Network::name);
        tracing::error!(target: "tussah", network, "stage {:?} is closed: {why}", self.name);
        if let Some(on_close) = &self.on_close {
            tussah_core::quietly(|| on_close(&why));
        }
    }

    /// Lets nothing in or out any more, and drops what is queued; returns how much that was.
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

    /// The runtime, or the pool of OS threads, starts no servlet any more: the stage ends with the last that it has.
    pub(crate) fn orphan(self: &Arc<Self>) {
        let mut inner = self.lock();
        inner.state.orphaned = true;
        self.release(inner);
    }

    /// # Errors
    /// If the stage has been closed: it makes no edges any more, and gets none.
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

    /// Whether the handler blocks its OS thread.
    pub(crate) fn blocks(&self) -> bool {
        self.lock().state.kind == Kind::Blocking
    }

    /// Sees to it that the queue holds so many credits at least.
    pub(crate) fn make_room(self: &Arc<Self>, credits: u64) {
        let mut inner = self.lock();
        if inner.state.bounds.queue_max < credits {
            inner.state.set_queue_max(credits);
        }
        self.release(inner);
    }

    /// Has at most one servlet.
    pub(crate) fn make_serial(&self) {
        self.lock().state.set_servlets_max(1);
    }

    /// Has no batch begun until what this returns is dropped, and waits until those that run are finished, if they may not run beside what
    /// another handler does. Swaps come one after the other.
    pub(crate) async fn begin_swap(
        self: &Arc<Self>,
        serial: bool,
    ) -> Result<Swapping<'_, E>, BuildError> {
        let turn = self.swaps.lock().await;
        let alone = self.hold_for_swap()?;
        let swapping = Swapping {
            stage: self,
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

    /// Has no further batch begun; says whether those that run have to end first.
    fn hold_for_swap(&self) -> Result<bool, BuildError> {
        let mut inner = self.lock();
        if matches!(inner.state.gate, Gate::Draining | Gate::Closed) {
            return Err(self.is_closed());
        }
        inner.state.swapping = true;
        Ok(matches!(inner.state.queue, Queue::Keyed(_)) || inner.state.servlets.max == 1)
    }

    /// What completes when nothing is queued and in service, unless that is so now.
    fn settles(&self) -> Option<Notified<'_>> {
        let settled = self.settled.notified();
        let mut inner = self.lock();
        if inner.state.is_empty() {
            return None;
        }
        inner.settling = true;
        Some(settled)
    }

    async fn nothing_runs(&self) {
        poll_fn(|cx| {
            let mut inner = self.lock();
            if inner.state.in_service() == 0 {
                return Poll::Ready(());
            }
            inner.swap = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Calls the present handler, by whatever way a call has to take.
    pub(crate) async fn call_any(
        self: &Arc<Self>,
        batch: &mut Batch<E>,
        from: u32,
    ) -> Result<(), Gone> {
        if self.call_by_proxy(batch, from).await.is_some() {
            return Ok(());
        }
        self.calls.add(batch.len() as u64);
        if batch.traces().has_any() {
            return self.call_traced(batch).await;
        }
        self.call_direct(batch).await
    }

    /// Calls the present handler, and no proxy.
    pub(crate) async fn call_direct(self: &Arc<Self>, batch: &mut Batch<E>) -> Result<(), Gone> {
        if matches!(self.lock().state.queue, Queue::Keyed(_)) {
            return self.call_by_key(batch).await;
        }
        self.call_present(batch).await
    }

    async fn call_present(self: &Arc<Self>, batch: &mut Batch<E>) -> Result<(), Gone> {
        loop {
            let host = self.present().ok_or(Gone)?;
            if host.call(batch, &self.time).await.is_ok() {
                return Ok(());
            }
            // Another handler may have taken its place while this call waited, or be about to.
            let changed = self.keys.notified();
            if self.lock().state.swapping {
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

    /// Has the events of a batch handled key by key, each when its key is free. What is left goes to the batch's end.
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

/// The events of one key, out of a batch that they go back to when this is dropped, but for those that were taken.
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

/// A handler is being swapped; whether it has been or not, the stage goes on when this is dropped.
pub(crate) struct Swapping<'a, E: Send + 'static> {
    stage: &'a Arc<Shared<E>>,
    _turn: async_lock::MutexGuard<'a, ()>,
}

impl<E: Send + 'static> Drop for Swapping<'_, E> {
    fn drop(&mut self) {
        let mut inner = self.stage.lock();
        inner.state.swapping = false;
        self.stage.release(inner);
        // Calls that found the earlier handler retired.
        self.stage.keys.notify_waiters();
    }
}

/// Frees a key when dropped.
struct BusyKey<'a, E: Send + 'static>(&'a Arc<Shared<E>>, usize);

impl<E: Send + 'static> Drop for BusyKey<'_, E> {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        if let Queue::Keyed(keyed) = &mut inner.state.queue {
            keyed.release(self.1);
        }
        self.0.release(inner);
        self.0.keys.notify_waiters();
    }
}
