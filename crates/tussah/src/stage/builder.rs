//! prototype
use super::account::Council;
use super::event::CLASSES_MAX;
use super::handler::{Handler, SerialHandler};
use super::host::{Host, Many, One};
use super::process::Process;
use super::queue::{Lanes, Queue};
use super::sender::Sender;
use super::servlet::serve;
use super::shared::{Shared, Time};
use super::state::{Bounds, Kind, Parts, State};
use std::sync::Arc;

#[doc(hidden)]
pub struct Proto {
    pub queue: u64,
    pub batch: usize,
    pub servlets: usize,
}
impl Proto {
    pub fn handler<H: Handler>(&self, h: H) -> Sender<H::Event> {
        self.host(Many(h), self.servlets)
    }
    pub fn serial<H: SerialHandler>(&self, h: H) -> Sender<H::Event> {
        self.host(
            One {
                handler: async_lock::Mutex::new(h),
            },
            1,
        )
    }
    fn host<E: Send + 'static, H: Host<E>>(&self, h: H, servlets: usize) -> Sender<E> {
        let runtime = tussah_core::Handle::current();
        let clock = runtime.clock();
        let time = Time {
            start: clock.now(),
            clock,
        };
        let state = State::new(Parts {
            queue: Queue::Lanes(Lanes::new(1)),
            council: Council::new(vec![], 1, 0),
            bounds: Bounds {
                queue_max: self.queue,
                class_max: [u64::MAX; CLASSES_MAX],
                batch_max: self.batch,
                servlets_max: servlets,
            },
            classes: 1,
            kind: Kind::Async,
            workers: runtime.workers(),
            servlets,
            batch: self.batch,
            seed: 1,
            process: Arc::new(Process::default()),
        });
        let shared = Arc::new(Shared::new("x".into(), runtime, time, state, None, None));
        let h = Arc::new(h);
        shared.set_start(Arc::new(move |shared| {
            drop(
                shared
                    .runtime
                    .spawn(serve(Arc::clone(shared), Arc::clone(&h))),
            );
        }));
        Sender { stage: shared }
    }
}
impl<E: Send + 'static> Sender<E> {
    #[doc(hidden)]
    pub fn debug(&self) -> String {
        let i = self.stage.lock();
        format!(
            "{:?} mean {} batch {}",
            i.state.counts,
            i.state.mean_ns(),
            i.state.batch
        )
    }
}
