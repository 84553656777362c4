//! The load on a runtime.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tussah_core::time::Sleep;
use tussah_core::{AbortHandle, Color, Colored, Handle, JoinHandle, with_all, yield_now};

use crate::check::{ASKERS, COLORS, Checks, Meant, SUM, VALUES};
use crate::random::Random;

/// Bound, in threads: how many of one asker are not awaited at a time.
const THREADS_MAX: usize = 256;

/// Bound, in closures and futures: with this many that have not ended, no request is made.
const WAITING_MAX: u64 = 20_000;

/// Makes requests from several OS threads until some time, and waits for those that must end.
pub(crate) fn run(handle: &Handle, checks: &Arc<Checks>, until: Instant, random: &mut Random) {
    let values: Vec<_> = (0..VALUES)
        .map(|_| Colored::new_in(handle, SUM / VALUES as i64))
        .collect();
    std::thread::scope(|scope| {
        for number in 0..ASKERS {
            let mut asker = Asker {
                handle,
                checks,
                values: &values,
                number,
                posted: vec![0; COLORS],
                threads: Vec::new(),
                random: Random::new(random.next()),
            };
            scope.spawn(move || asker.run(until));
        }
        while Instant::now() < until {
            // Refused while a removed worker is in its last event.
            let _ = handle.set_workers(1 + random.below(4) as usize);
            std::thread::sleep(Duration::from_millis(random.below(200)));
        }
    });
    let sum: i64 = values
        .iter()
        .map(|value| handle.block_on(value.with(|value| *value)))
        .sum();
    if sum != SUM {
        checks.broken(format!("the values have {sum} together, and had {SUM}"));
    }
}

/// One OS thread that makes requests.
struct Asker<'a> {
    handle: &'a Handle,
    checks: &'a Arc<Checks>,
    values: &'a [Colored<i64>],
    number: usize,
    /// The number of events of each color.
    posted: Vec<u64>,
    threads: Vec<JoinHandle<()>>,
    random: Random,
}

impl<'a> Asker<'a> {
    fn run(&mut self, until: Instant) {
        while Instant::now() < until {
            match self.random.below(100) {
                0..70 => self.post(),
                70..80 => self.transfer(),
                80..90 => self.drop_request(),
                _ => self.spawn(),
            }
            if self.threads.len() > THREADS_MAX {
                self.join();
            }
            while self.checks.waiting() > WAITING_MAX {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.join();
    }

    fn post(&mut self) {
        let color = self.random.below(COLORS as u64) as usize;
        let length = length(&mut self.random);
        let panics = self.random.one_in(500);
        let token = self.checks.token(self.random.one_in(300));
        let (checks, asker) = (self.checks.clone(), self.number);
        self.posted[color] += 1;
        let number = self.posted[color];
        let event = move || {
            let _token = token;
            checks.event(color, asker, number, || spin(length));
            if panics {
                panic_any(Meant);
            }
        };
        if let Err(refused) = self.handle.post_in(Color(1 + color as u64), event) {
            if refused.is_shut_down() {
                self.checks.broken(format!("a post is refused: {refused}"));
            }
            drop_quietly(refused.into_inner());
        }
    }

    /// Moves an amount between values, and waits for it.
    fn transfer(&mut self) {
        let (from, to) = self.two();
        let amount = self.random.below(100) as i64;
        let length = length(&mut self.random);
        self.handle.block_on(with_all((from, to), move |from, to| {
            *from -= amount;
            spin(length);
            *to += amount;
        }));
    }

    /// Makes a request that is dropped after its first poll.
    fn drop_request(&mut self) {
        let (from, to) = self.two();
        let token = self.checks.token(self.random.one_in(300));
        let drop_it = |request: &mut (dyn Future<Output = ()> + Unpin)| {
            let mut context = Context::from_waker(Waker::noop());
            let polled = std::pin::Pin::new(request).poll(&mut context);
            matches!(polled, Poll::Ready(()))
        };
        // A panic of a destructor that runs inline is the caller's.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let mut all = with_all((from, to), move |_, _| drop(token));
            drop_it(&mut all)
        }));
    }

    fn two(&mut self) -> (&'a Colored<i64>, &'a Colored<i64>) {
        let from = self.random.below(VALUES as u64) as usize;
        let other = 1 + self.random.below(VALUES as u64 - 1) as usize;
        (&self.values[from], &self.values[(from + other) % VALUES])
    }

    /// Starts a thread that sleeps, makes requests and yields. Sometimes it panics, or is aborted
    /// at some time.
    fn spawn(&mut self) {
        let token = self.checks.token(self.random.one_in(50));
        let values = self.values.to_vec();
        let checks = self.checks.clone();
        let mut random = Random::new(self.random.next());
        let thread = self.handle.spawn(async move {
            let _token = token;
            for _ in 0..random.below(8) {
                match random.below(4) {
                    0 => {
                        let deadline =
                            tussah_core::time::now() + Duration::from_micros(random.below(5000));
                        Sleep::new_until(deadline).await;
                        if tussah_core::time::now() < deadline {
                            checks.broken("a timer fired before its deadline".to_owned());
                        }
                    }
                    1 => timeout(&values[random.below(VALUES as u64) as usize], &mut random).await,
                    2 => yield_now().await,
                    _ => spin(length(&mut random)),
                }
            }
            if random.one_in(50) {
                panic_any(Meant);
            }
        });
        if self.random.one_in(4) {
            abort_later(self.handle, thread.abort_handle(), self.random.below(3000));
        }
        self.threads.push(thread);
    }

    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            match self.handle.block_on(thread) {
                Ok(()) => {}
                Err(error) if error.is_panic() => {
                    if !error.into_panic().is::<Meant>() {
                        self.checks.broken("a thread panicked".to_owned());
                    }
                }
                Err(_aborted) => {}
            }
        }
    }
}

/// Adds zero to a value, and gives up after a time limit.
async fn timeout(value: &Colored<i64>, random: &mut Random) {
    let limit = Duration::from_micros(random.below(200));
    let length = length(random);
    let mut request = std::pin::pin!(value.with(move |_| spin(length)));
    let mut late = std::pin::pin!(Sleep::new_until(tussah_core::time::now() + limit));
    std::future::poll_fn(|context| match request.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => late.as_mut().poll(context),
    })
    .await;
}

fn abort_later(handle: &Handle, thread: AbortHandle, micros: u64) {
    drop(handle.spawn(async move {
        Sleep::new_until(tussah_core::time::now() + Duration::from_micros(micros)).await;
        thread.abort();
    }));
}

/// Chooses the length of an event: mostly next to nothing, rarely longer than any bound of the
/// scheduler.
fn length(random: &mut Random) -> Duration {
    match random.below(10_000) {
        0..3 => Duration::from_millis(random.below(30)),
        3..50 => Duration::from_micros(random.below(2000)),
        50..1000 => Duration::from_micros(random.below(50)),
        _ => Duration::ZERO,
    }
}

fn spin(length: Duration) {
    if length.is_zero() {
        return;
    }
    let start = Instant::now();
    while start.elapsed() < length {
        std::hint::spin_loop();
    }
}

fn drop_quietly<T>(value: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}
