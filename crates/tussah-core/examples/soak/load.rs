//! The load on a runtime.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use fastrand::Rng;
use tussah_core::time::Sleep;
use tussah_core::{AbortHandle, Color, Colored, Handle, JoinHandle, with_all, yield_now};

use crate::check::{ASKERS, COLORS, Checks, Meant, SUM, VALUES, Value};
use crate::lengths::{Lengths, spin};

/// Bound, in threads: the number of threads of one asker that are not awaited at a time.
const THREADS_MAX: usize = 256;

/// Bound, in closures and futures: while this number have not ended, no request is made.
const WAITING_MAX: u64 = 20_000;

/// Makes requests from several OS threads until a given time, and waits for those that must end.
pub(crate) fn run(handle: &Handle, checks: &Arc<Checks>, until: Instant, random: &mut Rng) {
    let values: Vec<_> = (0..VALUES)
        .map(|_| Colored::new_in(handle, Value::new(SUM / VALUES as i64)))
        .collect();
    let lengths = Lengths::new(random.u64(..));
    std::thread::scope(|scope| {
        for number in 0..ASKERS {
            let mut asker = Asker {
                handle,
                checks,
                values: &values,
                lengths,
                number,
                posted: vec![0; COLORS],
                requested: vec![0; VALUES],
                threads: Vec::new(),
                random: Rng::with_seed(random.u64(..)),
            };
            scope.spawn(move || asker.run(until));
        }
        while Instant::now() < until {
            // This is refused while a removed worker is in its last event.
            let _ = handle.set_workers(1 + random.u64(..4) as usize);
            std::thread::sleep(Duration::from_millis(random.u64(..200)));
        }
    });
    let sum: i64 = values
        .iter()
        .map(|value| {
            let checks = checks.clone();
            handle.block_on(value.with(move |value| value.write(&checks, |amount| *amount)))
        })
        .sum();
    if sum != SUM {
        checks.broken(format!("the values have {sum} together, and had {SUM}"));
    }
}

/// An OS thread that makes requests.
struct Asker<'a> {
    handle: &'a Handle,
    checks: &'a Arc<Checks>,
    values: &'a [Colored<Value>],
    lengths: Lengths,
    number: usize,
    /// The number of events of each color.
    posted: Vec<u64>,
    /// The number of requests for each value.
    requested: Vec<u64>,
    threads: Vec<JoinHandle<()>>,
    random: Rng,
}

impl<'a> Asker<'a> {
    fn run(&mut self, until: Instant) {
        while Instant::now() < until {
            match self.random.u64(..100) {
                0..70 => self.post(),
                70..76 => self.transfer(),
                76..81 => self.read(),
                81..87 => self.drop_request(),
                87..90 => self.panicking_wakers(),
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
        let color = self.random.u64(..COLORS as u64) as usize;
        let panics = self.random.u64(..500) == 0;
        let token = self.checks.token(self.random.u64(..300) == 0);
        let (checks, asker) = (self.checks.clone(), self.number);
        self.posted[color] += 1;
        let number = self.posted[color];
        let length = self.lengths.of(color, number, &mut self.random);
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

    /// Moves an amount between values, and waits for this transfer.
    fn transfer(&mut self) {
        let (from, to) = self.two();
        let change = self.random.u64(..100) as i64;
        let length = self.length_for(from);
        let checks = self.checks.clone();
        let (from, to) = (&self.values[from], &self.values[to]);
        self.handle.block_on(with_all((from, to), move |from, to| {
            from.write(&checks, |amount| *amount -= change);
            spin(length);
            to.write(&checks, |amount| *amount += change);
        }));
    }

    /// Reads a value. Waits for the result, or drops the request after its first poll.
    fn read(&mut self) {
        let (value, _) = self.two();
        let length = self.length_for(value);
        let checks = self.checks.clone();
        let request = self.values[value].read(move |value| value.read(&checks, |_| spin(length)));
        if self.random.u64(..2) == 0 {
            self.handle.block_on(request);
        } else {
            poll_and_drop(request, Waker::noop());
        }
    }

    /// Makes a request that is dropped after its first poll.
    fn drop_request(&mut self) {
        let (from, to) = self.two();
        let token = self.checks.token(self.random.u64(..300) == 0);
        let (from, to) = (&self.values[from], &self.values[to]);
        poll_and_drop(with_all((from, to), move |_, _| drop(token)), Waker::noop());
    }

    /// Waits for a timer, for a writer and for a reader, with wakers that panic when they are
    /// called.
    fn panicking_wakers(&mut self) {
        let (one, two) = self.two();
        let lengths = [self.length_for(one), self.length_for(two)];
        let [one, two] = [&self.values[one], &self.values[two]].map(Colored::clone);
        let [writes, reads] = [(); 2].map(|()| self.checks.clone());
        let token = self.checks.token(false);
        let stays = Duration::from_micros(self.random.u64(..3000));
        let thread = self.handle.spawn(async move {
            let _token = token;
            let deadline = tussah_core::time::now() + stays / 2;
            let mut late = std::pin::pin!(Sleep::new_until(deadline));
            let mut write = std::pin::pin!(one.with(move |value| {
                value.write(&writes, |_| spin(lengths[0]));
            }));
            let mut read = std::pin::pin!(two.read(move |value| {
                value.read(&reads, |_| spin(lengths[1]));
            }));
            {
                let waker = Waker::from(Arc::new(Panics));
                let mut context = Context::from_waker(&waker);
                let _ = late.as_mut().poll(&mut context);
                let _ = write.as_mut().poll(&mut context);
                let _ = read.as_mut().poll(&mut context);
            }
            // The wakers may be called from now on.
            Sleep::new_until(tussah_core::time::now() + stays).await;
            late.await;
        });
        self.threads.push(thread);
    }

    /// Returns the length of the next request for a value.
    fn length_for(&mut self, value: usize) -> Duration {
        self.requested[value] += 1;
        let number = self.requested[value];
        self.lengths.of(COLORS + value, number, &mut self.random)
    }

    fn two(&mut self) -> (usize, usize) {
        let from = self.random.u64(..VALUES as u64) as usize;
        let other = 1 + self.random.u64(..VALUES as u64 - 1) as usize;
        (from, (from + other) % VALUES)
    }

    /// Starts a thread that sleeps, makes requests and yields. Sometimes the thread panics, or is
    /// aborted after some time.
    fn spawn(&mut self) {
        let token = self.checks.token(self.random.u64(..50) == 0);
        let (values, lengths) = (self.values.to_vec(), self.lengths);
        let checks = self.checks.clone();
        let mut random = Rng::with_seed(self.random.u64(..));
        let thread = self.handle.spawn(async move {
            let _token = token;
            for _ in 0..random.u64(..8) {
                match random.u64(..4) {
                    0 => {
                        let deadline =
                            tussah_core::time::now() + Duration::from_micros(random.u64(..5000));
                        Sleep::new_until(deadline).await;
                        if tussah_core::time::now() < deadline {
                            checks.broken("a timer fired before its deadline".to_owned());
                        }
                    }
                    1 => {
                        let value = random.u64(..VALUES as u64) as usize;
                        let length = lengths.of(COLORS + value, random.u64(..), &mut random);
                        let limit = Duration::from_micros(random.u64(..200));
                        timeout(&values[value], checks.clone(), length, limit).await;
                    }
                    2 => yield_now().await,
                    _ => spin(lengths.any(&mut random)),
                }
            }
            if random.u64(..50) == 0 {
                panic_any(Meant);
            }
        });
        if self.random.u64(..4) == 0 {
            abort_later(self.handle, thread.abort_handle(), self.random.u64(..3000));
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

/// Requests a writer, and gives up after a time limit.
async fn timeout(value: &Colored<Value>, checks: Arc<Checks>, length: Duration, limit: Duration) {
    let write = move |value: &mut Value| value.write(&checks, |_| spin(length));
    let mut request = std::pin::pin!(value.with(write));
    let mut late = std::pin::pin!(Sleep::new_until(tussah_core::time::now() + limit));
    std::future::poll_fn(|context| match request.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => late.as_mut().poll(context),
    })
    .await;
}

/// Polls a request once, then drops it. A panic of a closure or of a destructor that runs inline is
/// passed to the caller.
fn poll_and_drop<R>(request: impl Future<Output = R>, waker: &Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let request = std::pin::pin!(request);
        request.poll(&mut Context::from_waker(waker)).is_ready()
    }));
}

/// A waker that panics when it is called.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic_any(Meant);
    }
}

fn abort_later(handle: &Handle, thread: AbortHandle, micros: u64) {
    drop(handle.spawn(async move {
        Sleep::new_until(tussah_core::time::now() + Duration::from_micros(micros)).await;
        thread.abort();
    }));
}

fn drop_quietly<T>(value: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}
