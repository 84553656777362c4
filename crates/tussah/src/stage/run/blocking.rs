//! Servlets of a blocking handler: each runs on an OS thread of a pool until nothing is queued.

use std::sync::Arc;
use std::time::Duration;

use tussah_core::{BlockingPool, Guarded, Handle, caught};

use super::shared::{Shared, Start};
use super::turn::{Next, Servlet};
use crate::stage::event::Batch;
use crate::stage::send::{blocking, collecting, take_noted_permit};
use crate::stage::state::{Run, Waits};

/// The time that a stage waits before it retries a pool that refused its job.
const AGAIN: Duration = Duration::from_millis(1);

/// The source of a stage's OS threads.
#[derive(Clone)]
pub(crate) enum Pool {
    /// The runtime's pool.
    Runtime,
    /// A pool that stages may share.
    Shared(Arc<BlockingPool>),
}

impl Pool {
    pub(crate) fn of<'p>(&'p self, runtime: &'p Handle) -> &'p BlockingPool {
        match self {
            Self::Runtime => runtime.blocking(),
            Self::Shared(pool) => pool,
        }
    }
}

/// Returns the function that starts a servlet of this handler in the pool.
pub(crate) fn start<E, F>(pool: Pool, handler: F) -> Start<E>
where
    E: Send + 'static,
    F: Fn(&mut Batch<E>) + Send + Sync + 'static,
{
    let handler = Arc::new(Guarded::new(handler));
    Arc::new(move |stage: &Arc<Shared<E>>, generation| {
        let serving = Serving {
            servlet: stage.add_servlet(generation),
            run: Run::default(),
            batch: Batch::default(),
            waits: Some(stage.waits_for()),
            stage: Arc::clone(stage),
            pool: pool.clone(),
            over: false,
        };
        let handler = Arc::clone(&handler);
        let job = move || serving.serve(&**handler);
        let Err(refused) = pool.of(&stage.runtime).submit(job) else {
            return;
        };
        // Dropping the servlet decrements the number of servlets. Without this call, the stage
        // would start another servlet immediately.
        stage.hold_back(true);
        let ends = refused.is_shut_down();
        drop(refused);
        if ends {
            stage.orphan();
            return;
        }
        let again = Again(Some(Arc::clone(stage)));
        let later = async move {
            crate::time::sleep(AGAIN).await;
            again.go_on();
        };
        drop(stage.runtime.try_spawn(later));
    })
}

/// A pending retry, which lets a stage start servlets again. If it is dropped instead, the runtime
/// has ended, and the stage ends.
struct Again<E: Send + 'static>(Option<Arc<Shared<E>>>);

impl<E: Send + 'static> Again<E> {
    fn go_on(mut self) {
        if let Some(stage) = self.0.take() {
            stage.hold_back(false);
        }
    }
}

impl<E: Send + 'static> Drop for Again<E> {
    fn drop(&mut self) {
        if let Some(stage) = self.0.take() {
            stage.orphan();
        }
    }
}

/// A busy servlet. Dropping it returns the events that it has taken.
struct Serving<E: Send + 'static> {
    stage: Arc<Shared<E>>,
    servlet: Servlet,
    run: Run<E>,
    batch: Batch<E>,
    waits: Option<Arc<Waits>>,
    pool: Pool,
    over: bool,
}

impl<E: Send + 'static> Serving<E> {
    fn serve(mut self, handler: &impl Fn(&mut Batch<E>)) {
        let mut now_ns = self.stage.time.now_ns();
        loop {
            let Self {
                stage,
                servlet,
                run,
                batch,
                waits,
                pool,
                ..
            } = &mut self;
            let next = stage.turn(servlet, run, batch, (now_ns, now_ns), None);
            for (event, reason) in run.dropped.drain(..) {
                stage.dropped(event, reason);
            }
            if next == Next::End {
                break;
            }
            while !run.ahead.is_empty() {
                run.fill(batch);
                batch.check_events(stage);
                let path = stage.begin_path(batch);
                let handle = || blocking(waits, || caught(|| handler(batch)));
                let (handled, limited_ns) = collecting(handle);
                run.permits += u64::from(take_noted_permit());
                run.limited_ns += limited_ns;
                // The rest of the time counts as computing.
                run.resumed_ns += limited_ns;
                if handled.is_none() {
                    stage.panicked(batch);
                }
                batch.end();
                if let (Some(path), Some(entry)) = (path, &stage.paths) {
                    batch.leave_path(entry);
                    if path.ended.recv() == Ok(true) {
                        batch.fail_path(path.timed);
                    }
                }
                run.ended();
                if !batch.is_empty() {
                    // The remaining events go back to the queue, for the next servlet.
                    break;
                }
            }
            now_ns = stage.time.now_ns();
            // Other stages may wait for this OS thread. If this stage has more events, it starts
            // another servlet, whose job is queued behind theirs.
            servlet.gives_way = pool.of(&stage.runtime).stats().queued > 0;
        }
        self.over = true;
    }
}

impl<E: Send + 'static> Drop for Serving<E> {
    fn drop(&mut self) {
        if !self.over {
            self.stage
                .remove_servlet(&self.servlet, &mut self.run, &mut self.batch);
            for (event, reason) in self.run.dropped.drain(..) {
                self.stage.dropped(event, reason);
            }
        }
    }
}
