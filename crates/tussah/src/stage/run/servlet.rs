//! A servlet: the tussah thread that takes batches from a stage and runs the handler.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use tussah_core::caught;

use super::host::{Guard, Host};
use super::shared::Shared;
use super::turn::{Next, Servlet};
use crate::stage::event::{Batch, Reason};
use crate::stage::network::Network;
use crate::stage::send::{
    begin, begin_source, collecting, hand_over, is_quick, path, set_path, set_trace,
    take_noted_permit, take_noted_wait, trace, waiting,
};
use crate::stage::state::{Run, Waits, WaitsFor};
use crate::sync::oneshot;

/// A busy servlet. Dropping it returns the events that it has taken.
struct Serving<E: Send + 'static> {
    /// `None` while the servlet is parked. If only parked servlets refer to a stage, it is
    /// therefore dropped, and wakes them.
    stage: Option<Arc<Shared<E>>>,
    weak: Weak<Shared<E>>,
    servlet: Servlet,
    run: Run<E>,
    batch: Batch<E>,
    /// The time at which the last run ended, or at which this servlet was woken.
    now_ns: u64,
    over: bool,
}

/// Serves batches until the stage no longer needs this servlet. The caller has already counted it.
pub(crate) fn serve<E: Send + 'static, H: Host<Event = E>>(
    stage: Arc<Shared<E>>,
    host: Arc<H>,
    generation: u32,
) -> impl Future<Output = ()> + Send {
    let waits = Some(stage.waits_for());
    let serving = Serving {
        servlet: stage.add_servlet(generation),
        run: Run::default(),
        batch: Batch::default(),
        now_ns: 0,
        over: false,
        weak: Arc::downgrade(&stage),
        stage: Some(stage),
    };
    Collecting {
        waits,
        future: serving.serve(host),
    }
}

pin_project_lite::pin_project! {
    /// A wrapper that polls a servlet's future and collects the events that it sends.
    struct Collecting<F> {
        #[pin]
        future: F,
        waits: Option<Arc<Waits>>,
    }
}

impl<F: Future> Future for Collecting<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        collecting(|| waiting(this.waits, || this.future.poll(cx)))
    }
}

/// Collects the events that the source of a graph sends, as those of a handler. Each send reads the
/// time, because a source may take long between two events.
pub(crate) async fn collected<F: Future>(network: Network, source: F) -> F::Output {
    let (mut source, mut quick) = (pin!(source), false);
    let poll = poll_fn(|cx| {
        collecting(|| {
            begin(network.now_ns(), true);
            begin_source(quick);
            let polled = source.as_mut().poll(cx);
            quick = is_quick();
            polled
        })
    });
    poll.await
}

impl<E: Send + 'static> Serving<E> {
    async fn serve<H: Host<Event = E>>(mut self, host: Arc<H>) {
        loop {
            let next = poll_fn(|cx| self.next(cx)).await;
            self.tell_dropped();
            match (next, &self.stage) {
                (Next::Work, Some(stage)) => {
                    let stage = Arc::clone(stage);
                    self.run(&*host, &stage).await;
                }
                (Next::Wait, _) => continue,
                _ => break,
            }
            if !self.run.waits {
                tussah_core::yield_now().await;
            }
        }
        self.over = true;
    }

    /// Handles the events that were taken.
    async fn run<H: Host<Event = E>>(&mut self, host: &H, stage: &Arc<Shared<E>>) {
        let Some(mut handler) = self.enter(host, stage).await else {
            stage.fail(None);
            return;
        };
        begin(self.now_ns, self.run.exact);
        self.batches(&mut handler, stage).await;
        drop(handler);
        hand_over();
        self.now_ns = stage.time.now_ns();
    }

    /// Waits for the handler while a call uses it. The servlet counts as waiting in the meantime.
    async fn enter<'a, H: Host<Event = E>>(
        &mut self,
        host: &'a H,
        stage: &'a Arc<Shared<E>>,
    ) -> Option<H::Guard<'a>> {
        let Self { run, batch, .. } = self;
        let mut entering = pin!(host.enter(stage));
        let entered = poll_fn(|cx| {
            let entered = entering.as_mut().poll(cx);
            if entered.is_pending() && !run.waits {
                run.fill(batch);
                stage.waits(run);
            }
            entered
        });
        let handler = entered.await;
        if run.waits {
            run.resumed_ns = stage.time.now_ns();
            self.now_ns = run.resumed_ns;
        }
        handler
    }

    /// Ends the last run and takes the next run, or parks.
    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        let Self {
            stage: place,
            weak,
            servlet,
            run,
            batch,
            now_ns,
            ..
        } = self;
        if place.is_none() {
            *place = weak.upgrade();
        }
        let Some(stage) = place else {
            return Poll::Ready(Next::End);
        };
        let ended_ns = std::mem::replace(now_ns, stage.time.now_ns());
        let now_ns = *now_ns;
        match stage.turn(servlet, run, batch, (ended_ns, now_ns), Some(cx.waker())) {
            Next::Wait if run.dropped.is_empty() => {
                *place = None;
                Poll::Pending
            }
            next => Poll::Ready(next),
        }
    }

    fn tell_dropped(&mut self) {
        let dropped = self.run.dropped.drain(..);
        if let Some(stage) = &self.stage {
            dropped.for_each(|(event, reason)| stage.dropped(event, reason));
        }
    }

    /// Handles the batches of a run.
    async fn batches(&mut self, handler: &mut impl Guard<Event = E>, stage: &Arc<Shared<E>>) {
        let Self { run, batch, .. } = self;
        loop {
            run.fill(batch);
            if batch.is_empty() {
                return;
            }
            batch.check_events(stage);
            let path = stage.begin_path(batch);
            let outcome = handle(stage, run, batch, handler).await;
            if outcome.is_cancelled {
                batch.dropped(Reason::Cancelled);
            }
            if outcome.has_panicked {
                stage.panicked(batch);
                handler.broke();
            }
            batch.end();
            if let (Some(path), Some(entry)) = (path, &stage.paths) {
                // The handler may have taken the batch, and with it the end of the path here.
                set_path(None);
                batch.leave_path(entry);
                let mut ended = PathEnded::of(path.ended);
                handle(stage, run, batch, &mut ended).await;
                if ended.has_failed && !outcome.is_cancelled {
                    batch.fail_path(path.timed);
                }
            }
            run.ended();
            if outcome.has_panicked || !batch.is_empty() {
                // The remaining events go back to the queue, for the next servlet.
                return;
            }
        }
    }
}

/// The wait for the end of a path, which is accounted for like a handler.
struct PathEnded<E> {
    ended: Option<oneshot::Receiver<bool>>,
    has_failed: bool,
    event: PhantomData<fn(E)>,
}

impl<E> PathEnded<E> {
    fn of(ended: oneshot::Receiver<bool>) -> Self {
        Self {
            ended: Some(ended),
            has_failed: false,
            event: PhantomData,
        }
    }
}

impl<E: Send> Guard for PathEnded<E> {
    type Event = E;

    async fn handle(&mut self, _batch: &mut Batch<E>) {
        if let Some(ended) = self.ended.take() {
            self.has_failed = ended.await == Ok(true);
        }
    }

    fn broke(&mut self) {}

    const IS_DROPPED: bool = false;
}

/// The outcome of handling a batch.
struct Outcome {
    /// True if the handler was dropped before its end.
    is_cancelled: bool,
    /// True if the handler panicked, or its future did when it was dropped.
    has_panicked: bool,
}

/// Ends a wait of a handler, and continues the trace and the path of the event that it took last.
#[inline]
fn go_on<E>(run: &mut Run<E>, now_ns: u64) {
    let waited_ns = std::mem::replace(&mut run.resumed_ns, now_ns);
    let away_ns = now_ns.saturating_sub(waited_ns);
    match std::mem::take(&mut run.waits_for) {
        WaitsFor::Room => run.held_up_ns += away_ns,
        WaitsFor::Permit => run.limited_ns += away_ns,
        WaitsFor::Other if run.yielded => run.ready_ns += away_ns,
        WaitsFor::Other => {}
    }
    begin(now_ns, run.exact);
    if run.trace != 0 {
        set_trace(run.trace);
    }
    if run.path.is_some() {
        set_path(run.path.take());
    }
}

/// Handles one batch to its end, or until its only event is cancelled.
async fn handle<E: Send + 'static, G: Guard<Event = E>>(
    stage: &Arc<Shared<E>>,
    run: &mut Run<E>,
    batch: &mut Batch<E>,
    handler: &mut G,
) -> Outcome {
    let mut outcome = Outcome {
        is_cancelled: false,
        has_panicked: false,
    };
    let is_dropped = G::IS_DROPPED && run.one_by_one;
    let cancelled = is_dropped.then(|| batch.drops_handler()).flatten();
    let mut cancelled = cancelled.map(Box::pin);
    let Some(future) = caught(move || handler.handle(batch)) else {
        outcome.has_panicked = true;
        return outcome;
    };
    let mut future = pin!(Some(future));
    let (mut suspended, mut has_permit) = (false, false);
    let polled = poll_fn(|cx| {
        if suspended {
            go_on(run, stage.time.now_ns());
        }
        if let Some(cancelled) = &mut cancelled
            && cancelled.as_mut().poll(cx).is_ready()
        {
            outcome.is_cancelled = true;
            return Poll::Ready(Some(()));
        }
        let polling = future.as_mut().as_pin_mut();
        let polling = polling.expect("it is dropped when it has ended");
        let polled = caught(|| polling.poll(cx));
        let noted = take_noted_wait();
        has_permit |= take_noted_permit();
        match polled {
            Some(Poll::Ready(())) => Poll::Ready(Some(())),
            None => Poll::Ready(None),
            Some(Poll::Pending) => {
                suspended = true;
                let now_ns = stage.time.now_ns();
                run.compute_ns += now_ns.saturating_sub(run.resumed_ns);
                run.resumed_ns = now_ns;
                (run.trace, run.path) = (trace(), path());
                run.waits_for = noted;
                run.yielded = tussah_core::has_yielded();
                let changes = run.only_yields && !run.yielded || run.waits_for != run.counted;
                if !run.waits || changes {
                    // Before the earlier keys of the run are free: what was sent for their events
                    // precedes what is sent for their next events.
                    hand_over();
                    stage.waits(run);
                }
                Poll::Pending
            }
        }
    })
    .await;
    let dropped = caught(|| future.set(None));
    run.path = None;
    run.permits += u64::from(has_permit);
    outcome.has_panicked = dropped.and(polled).is_none();
    outcome
}

impl<E: Send + 'static> Drop for Serving<E> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        self.stage = self.stage.take().or_else(|| self.weak.upgrade());
        if let Some(stage) = &self.stage {
            stage.remove_servlet(&self.servlet, &mut self.run, &mut self.batch);
        }
        self.tell_dropped();
    }
}
