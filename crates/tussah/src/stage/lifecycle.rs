//! How a stage is paused, drained, closed and given another handler, and how it is called.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::batch::Batch;
use super::error::BuildError;
use super::event::Reason;
use super::host::Gone;
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
    pub(crate) fn drain(self: &Arc<Self>) {
        let mut inner = self.lock();
        if inner.state.gate != Gate::Closed {
            inner.state.gate = Gate::Draining;
        }
        self.release(inner);
        self.room.notify_waiters();
    }

    /// Calls no servlet for a while, or does again.
    pub(crate) fn hold_back(self: &Arc<Self>, held: bool) {
        let mut inner = self.lock();
        inner.state.held_back = held;
        self.release(inner);
    }

    /// The handler can't be made any more.
    pub(crate) fn fail(self: &Arc<Self>) {
        self.end(Reason::Panicked);
    }

    /// Lets nothing in or out any more, and drops what is queued; returns how much that was.
    pub(crate) fn close(self: &Arc<Self>) -> u64 {
        self.end(Reason::ShutDown)
    }

    fn end(self: &Arc<Self>, reason: Reason) -> u64 {
        let mut inner = self.lock();
        inner.state.gate = Gate::Closed;
        let mut dropped = Vec::new();
        while let Some(event) = inner.state.take_out() {
            dropped.push(event);
        }
        let parked = inner.call_parked();
        self.release(inner);
        parked.into_iter().for_each(Waker::wake);
        self.room.notify_waiters();
        // The handler goes with its last servlet; a cycle of stages that refer to each other ends here.
        drop(self.take_handler());
        let count = dropped.len() as u64;
        for event in dropped {
            self.dropped(event, reason);
        }
        count
    }

    /// Whether the handler blocks its OS thread.
    pub(crate) fn blocks(&self) -> bool {
        self.lock().state.kind() == Kind::Blocking
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

    /// Stops taking events, and waits until what was taken is finished, if it may not run beside what another handler does.
    pub(crate) async fn begin_swap(self: &Arc<Self>) -> Result<(), BuildError> {
        let mut inner = self.lock();
        let gate = inner.state.gate;
        if matches!(gate, Gate::Draining | Gate::Closed) {
            return Err(BuildError::Closed {
                stage: self.name.to_string(),
            });
        }
        if gate == Gate::Open {
            inner.state.gate = Gate::Swapping;
        }
        let alone = matches!(inner.state.queue, Queue::Keyed(_)) || inner.state.servlets.max == 1;
        drop(inner);
        // A swap that is given up goes on with the earlier handler.
        let goes_on = GoesOn(self);
        if alone {
            self.nothing_runs().await;
        }
        if let Some(present) = self.present() {
            present.retire().await;
        }
        std::mem::forget(goes_on);
        Ok(())
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
        if let Some(proxy) = self.proxy(from) {
            return Box::pin(proxy.stage.call_any(batch, 0)).await;
        }
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
            // Another handler may have taken its place while this call waited.
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
                Queue::Keyed(keyed) => keyed.enter(&batch.events_mut()[0]),
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

/// Opens a stage again whose handler was not swapped after all.
struct GoesOn<'a, E: Send + 'static>(&'a Arc<Shared<E>>);

impl<E: Send + 'static> Drop for GoesOn<'_, E> {
    fn drop(&mut self) {
        self.0.set_gate(Gate::Swapping, Gate::Open);
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
