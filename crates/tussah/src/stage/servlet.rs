//! A servlet: the tussah thread that takes batches of a stage and has them handled.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use tussah_core::caught;

use super::batch::Batch;
use super::host::{Guard, Host};
use super::outgoing::{begin, collecting, hand_over, set_trace, take_held_up, trace};
use super::shared::Shared;
use super::state::Run;
use super::turn::{Next, Servlet};

/// A servlet at work. Dropping it gives back what it has taken.
struct Serving<E: Send + 'static> {
    stage: Arc<Shared<E>>,
    servlet: Servlet,
    run: Run<E>,
    batch: Batch<E>,
    /// When the last run ended, or this servlet was called.
    now_ns: u64,
    over: bool,
}

/// Serves batches until the stage has no more use for this servlet. The caller has counted it.
pub(crate) fn serve<E: Send + 'static, H: Host<Event = E>>(
    stage: Arc<Shared<E>>,
    host: Arc<H>,
    generation: u32,
) -> impl Future<Output = ()> + Send {
    let serving = Serving {
        servlet: stage.enlist(generation),
        run: Run::default(),
        batch: Batch::default(),
        now_ns: 0,
        over: false,
        stage,
    };
    Collecting {
        future: serving.serve(host),
    }
}

pin_project_lite::pin_project! {
    /// Polls a servlet's future so that what it sends is collected.
    struct Collecting<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Collecting<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let future = self.project().future;
        collecting(|| future.poll(cx))
    }
}

impl<E: Send + 'static> Serving<E> {
    async fn serve<H: Host<Event = E>>(mut self, host: Arc<H>) {
        self.now_ns = self.stage.time.now_ns();
        loop {
            let next = poll_fn(|cx| self.next(cx)).await;
            self.tell_dropped();
            match next {
                Next::End => break,
                Next::Wait => continue,
                Next::Work => {}
            }
            let Some(mut handler) = self.enter(&*host).await else {
                self.stage.fail(host.gone().await);
                continue;
            };
            begin(self.now_ns, self.run.exact);
            self.batches(&mut handler).await;
            drop(handler);
            hand_over();
            self.now_ns = self.stage.time.now_ns();
            if !self.run.waits {
                tussah_core::yield_now().await;
            }
        }
        self.over = true;
    }

    /// Waits for the handler, as one that waits, if a call uses it.
    async fn enter<'a, H: Host<Event = E>>(&mut self, host: &'a H) -> Option<H::Guard<'a>> {
        let Self {
            stage, run, batch, ..
        } = self;
        let mut entering = pin!(host.enter(&stage.time));
        let entered = poll_fn(|cx| {
            let entered = entering.as_mut().poll(cx);
            if entered.is_pending() && !run.waits {
                batch.fill(&mut run.ahead, run.limit);
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

    /// Ends the last run and takes the next, or parks.
    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        let ended_ns = self.now_ns;
        self.now_ns = self.stage.time.now_ns();
        let now_ns = self.now_ns;
        let Self {
            stage,
            servlet,
            run,
            batch,
            ..
        } = self;
        match stage.turn(servlet, run, batch, (ended_ns, now_ns), Some(cx.waker())) {
            Next::Wait if run.dropped.is_empty() => Poll::Pending,
            next => Poll::Ready(next),
        }
    }

    fn tell_dropped(&mut self) {
        for (event, reason) in self.run.dropped.drain(..) {
            self.stage.dropped(event, reason);
        }
    }

    /// Has the batches of a run handled.
    async fn batches(&mut self, handler: &mut impl Guard<Event = E>) {
        let Self {
            stage, run, batch, ..
        } = self;
        loop {
            batch.fill(&mut run.ahead, run.limit);
            if batch.is_empty() {
                return;
            }
            batch.check_deadlines(stage);
            let outcome = handle(stage, run, batch, handler).await;
            if outcome.is_none() {
                stage.panicked(batch);
                handler.broke();
                batch.end();
                run.ended();
                return;
            }
            batch.end();
            run.ended();
            if !batch.is_empty() {
                // What is left goes back to the queue, for whoever takes next.
                return;
            }
        }
    }
}

/// Has one batch handled to its end; `None` if the handler panics, or what it leaves behind when that is dropped.
async fn handle<E: Send + 'static>(
    stage: &Arc<Shared<E>>,
    run: &mut Run<E>,
    batch: &mut Batch<E>,
    handler: &mut impl Guard<Event = E>,
) -> Option<()> {
    let mut future = pin!(Some(caught(move || handler.handle(batch))?));
    let mut suspended = false;
    let outcome = poll_fn(|cx| {
        if suspended {
            let waited_ns = run.resumed_ns;
            run.resumed_ns = stage.time.now_ns();
            let away_ns = run.resumed_ns.saturating_sub(waited_ns);
            if std::mem::take(&mut run.held_up) {
                run.held_up_ns += away_ns;
            } else if run.yielded {
                run.ready_ns += away_ns;
            }
            begin(run.resumed_ns, run.exact);
            if run.trace != 0 {
                set_trace(run.trace);
            }
        }
        let polling = future.as_mut().as_pin_mut();
        let polling = polling.expect("it is dropped when it has ended");
        let polled = caught(|| polling.poll(cx));
        match polled {
            Some(Poll::Ready(())) => Poll::Ready(Some(())),
            None => Poll::Ready(None),
            Some(Poll::Pending) => {
                suspended = true;
                let now_ns = stage.time.now_ns();
                run.compute_ns += now_ns.saturating_sub(run.resumed_ns);
                run.resumed_ns = now_ns;
                run.trace = trace();
                run.held_up = take_held_up();
                run.yielded = tussah_core::has_yielded();
                if !run.waits || run.only_yields && !run.yielded {
                    stage.waits(run);
                }
                Poll::Pending
            }
        }
    })
    .await;
    caught(|| future.set(None)).and(outcome)
}

impl<E: Send + 'static> Drop for Serving<E> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        self.stage
            .dismiss(&self.servlet, &mut self.run, &mut self.batch);
        self.tell_dropped();
    }
}
