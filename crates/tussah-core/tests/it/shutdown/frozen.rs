//! An OS thread that a signal holds, at any instruction, while its runtime is dropped.
//!
//! Its objects may then be used and dropped, and the runtime's memory exists as long as any of
//! them. A debug build checks that a runtime is freed when nothing of it is in use.
//! AddressSanitizer detects a use after free, and more of them in more rounds:
//!
//! ```sh
//! FROZEN_ROUNDS=20000 cargo xtask asan frozen
//! ```

use std::future::{pending, poll_fn};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::thread::JoinHandleExt;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Once, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tussah_core::io::{Direction, Source};
use tussah_core::time::Sleep;
use tussah_core::{Color, Colored, Handle, Runtime};

/// How long an OS thread is held if the end of the runtime waits for a lock that it has.
const HOLD_LIMIT: Duration = Duration::from_millis(20);

/// The OS thread that the signal holds: `GO`, `HOLD`, or `HELD` once it stands still.
static STATE: AtomicU32 = AtomicU32::new(GO);
const GO: u32 = 0;
const HOLD: u32 = 1;
const HELD: u32 = 2;

extern "C" fn hold(_: libc::c_int) {
    // Only atomics and one system call, since this is a signal handler.
    let held = STATE.compare_exchange(HOLD, HELD, Ordering::AcqRel, Ordering::Relaxed);
    while held.is_ok() && STATE.load(Ordering::Acquire) == HELD {
        // SAFETY: the kernel reads a static, and sleeps as long as that says `HELD`.
        unsafe {
            let forever = std::ptr::null::<libc::timespec>();
            libc::syscall(
                libc::SYS_futex,
                STATE.as_ptr(),
                libc::FUTEX_WAIT,
                HELD,
                forever,
            );
        }
    }
}

fn let_go() {
    STATE.store(GO, Ordering::Release);
    // SAFETY: the kernel wakes the waiters at a static.
    unsafe { libc::syscall(libc::SYS_futex, STATE.as_ptr(), libc::FUTEX_WAKE, 1) };
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: a zeroed `sigaction` is a valid one, whose handler is then set to a function that
        // is safe in a signal handler.
        let installed = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = hold as extern "C" fn(libc::c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut())
        };
        assert_eq!(installed, 0, "the signal gets its handler");
    });
}

/// Uses a runtime until it is refused, again and again. Returns the objects that it has then.
type Attack = fn(&Handle, &Target, &mut Vec<Box<dyn Left>>) -> bool;

/// An object of a dropped runtime: used once more, then dropped.
trait Left {
    fn touch(&mut self);
}

struct Touch<T, F: FnMut(&mut T)>(T, F);

impl<T, F: FnMut(&mut T)> Left for Touch<T, F> {
    fn touch(&mut self) {
        (self.1)(&mut self.0);
    }
}

fn leave<T: 'static>(left: &mut Vec<Box<dyn Left>>, value: T, touch: impl FnMut(&mut T) + 'static) {
    // Some, so that memory comes back while the runtime ends.
    if left.len() == 4 {
        left.clear();
    }
    left.push(Box::new(Touch(value, touch)));
}

/// The objects in the runtime that the attacks use.
struct Target {
    value: Option<Colored<u64>>,
    /// Handles of a thread that never ends, and of one in a color.
    wakers: Vec<Waker>,
}

impl Target {
    fn new(runtime: &Runtime, is_bare: bool) -> Self {
        if is_bare {
            return Self {
                value: None,
                wakers: Vec::new(),
            };
        }
        let (give, take) = mpsc::channel();
        for color in [None, Some(Color(3))] {
            let give = give.clone();
            let mut first = true;
            let future = poll_fn(move |context: &mut Context<'_>| {
                if std::mem::take(&mut first) {
                    give.send(context.waker().clone())
                        .expect("it is waited for");
                }
                Poll::<()>::Pending
            });
            drop(match color {
                Some(color) => runtime.spawn_in(color, future),
                None => runtime.spawn(future),
            });
        }
        Self {
            value: Some(Colored::new_in(runtime, 0)),
            wakers: take.iter().take(2).collect(),
        }
    }

    fn value(&self) -> &Colored<u64> {
        self.value.as_ref().expect("it is not bare")
    }
}

/// Only this one thread is left of the runtime.
fn spawn(handle: &Handle, _: &Target, left: &mut Vec<Box<dyn Left>>) -> bool {
    left.clear();
    let Ok(thread) = handle.try_spawn(async {}) else {
        return false;
    };
    let abort = thread.abort_handle();
    leave(left, (thread, abort), |(thread, abort)| {
        abort.abort();
        let _ = (thread.is_finished(), abort.is_finished());
        let _ = Pin::new(thread).poll(&mut Context::from_waker(Waker::noop()));
    });
    handle.post(|| {}).is_ok()
}

fn spawn_in(handle: &Handle, _: &Target, left: &mut Vec<Box<dyn Left>>) -> bool {
    left.clear();
    let Ok(thread) = handle.try_spawn_in(Color(7), pending::<()>()) else {
        return false;
    };
    leave(left, thread, |thread| thread.abort());
    handle.post(|| {}).is_ok()
}

fn post(handle: &Handle, target: &Target, left: &mut Vec<Box<dyn Left>>) -> bool {
    let posted = handle.post_in(Color(9), || {}).is_ok();
    leave(
        left,
        (handle.color(Color(9)), target.value().color()),
        |_| {},
    );
    posted && target.value().post(|value| *value += 1).is_ok()
}

fn wake(handle: &Handle, target: &Target, left: &mut Vec<Box<dyn Left>>) -> bool {
    for waker in &target.wakers {
        leave(left, waker.clone(), |waker| waker.wake_by_ref());
        waker.wake_by_ref();
    }
    handle.post(|| {}).is_ok()
}

fn request(handle: &Handle, target: &Target, left: &mut Vec<Box<dyn Left>>) -> bool {
    let (value, other) = (target.value().clone(), Colored::new_in(handle, 1));
    // The request waits for a color that this OS thread has, and is given up while its ticket is in
    // the queue.
    let _ = value.try_with(|_| {
        let mut with = pin!(value.with(|value| *value += 1));
        let mut all = pin!(tussah_core::with_all((&value, &other), |a, b| *a += *b));
        let mut context = Context::from_waker(&target.wakers[0]);
        let _ = with.as_mut().poll(&mut context);
        let _ = all.as_mut().poll(&mut context);
    });
    leave(left, other, |other| {
        let _ = other.try_with(|other| *other += 1);
    });
    handle.post(|| {}).is_ok()
}

fn wait(handle: &Handle, target: &Target, left: &mut Vec<Box<dyn Left>>) -> bool {
    let mut context = Context::from_waker(&target.wakers[1]);
    let mut sleep = Box::pin(Sleep::new_until(Instant::now() + Duration::from_secs(60)));
    handle.block_on(async {
        let _ = sleep.as_mut().poll(&mut context);
    });
    let (ours, theirs) = UnixStream::pair().expect("there are descriptors");
    ours.set_nonblocking(true).expect("it is a socket");
    let source = Source::new_in(handle, OwnedFd::from(ours));
    let _ = source.poll_ready(&mut context, Direction::Read);
    let idle = Box::pin(handle.idle());
    leave(
        left,
        (sleep, source, theirs, idle),
        |(sleep, source, _, idle)| {
            let mut context = Context::from_waker(Waker::noop());
            let _ = sleep.as_mut().poll(&mut context);
            let _ = source.poll_ready(&mut context, Direction::Read);
            let _ = idle.as_mut().poll(&mut context);
        },
    );
    let job = handle.blocking().submit(|| {});
    job.is_ok() && handle.post(|| {}).is_ok()
}

/// Each attack with its name, and whether nothing else is to be left of the runtime.
const ATTACKS: [(&str, Attack, bool); 6] = [
    ("spawn", spawn, true),
    ("spawn_in", spawn_in, true),
    ("post", post, false),
    ("wake", wake, false),
    ("request", request, false),
    ("wait", wait, false),
];

/// Drops a runtime while an OS thread that attacks it is held. Returns whether it was held to the
/// end.
fn round(attack: Attack, is_bare: bool, instructions: u32) -> bool {
    let runtime = Runtime::builder()
        .workers(1)
        .no_watchdog()
        .build()
        .expect("a worker starts");
    let (handle, target) = (runtime.handle().clone(), Target::new(&runtime, is_bare));
    let begun = Arc::new(AtomicBool::new(false));
    let attacker = thread::spawn({
        let begun = begun.clone();
        move || {
            let mut left = Vec::new();
            begun.store(true, Ordering::Release);
            while attack(&handle, &target, &mut left) {}
            // The remaining object has to work without everything else that keeps the runtime.
            drop((handle, target));
            left.iter_mut().for_each(|left| left.touch());
        }
    });
    // Made beforehand, and signaled by a flag: the held OS thread may have the allocator's lock.
    let (end, ended) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let ender = thread::spawn({
        let (end, ended, main) = (end.clone(), ended.clone(), thread::current());
        move || {
            wait_for(&end);
            drop(runtime);
            ended.store(true, Ordering::Release);
            main.unpark();
        }
    });
    wait_for(&begun);
    (0..instructions).for_each(|_| std::hint::spin_loop());
    STATE.store(HOLD, Ordering::Release);
    // SAFETY: the OS thread is not joined yet, so its number is its own.
    let sent = unsafe { libc::pthread_kill(attacker.as_pthread_t(), libc::SIGUSR2) };
    assert_eq!(sent, 0, "the attacker is there");
    while STATE.load(Ordering::Acquire) == HOLD {
        thread::yield_now();
    }
    end.store(true, Ordering::Release);
    // If it is held with a lock that the end needs, it goes on.
    let limit = Instant::now() + HOLD_LIMIT;
    while !ended.load(Ordering::Acquire) && Instant::now() < limit {
        thread::park_timeout(HOLD_LIMIT);
    }
    let held = ended.load(Ordering::Acquire);
    let_go();
    ender.join().expect("no panic");
    attacker.join().expect("no panic");
    held
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::Acquire) {
        thread::yield_now();
    }
}

#[test]
fn an_os_thread_is_held_while_its_runtime_ends() {
    install();
    let rounds = std::env::var("FROZEN_ROUNDS").ok();
    let rounds: u64 = rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(60);
    let only = std::env::var("FROZEN_ATTACK").ok();
    let mut held = [0; ATTACKS.len()];
    let mut random = Rng::with_seed(1);
    for number in 0..rounds {
        let at = number as usize % ATTACKS.len();
        let (name, attack, is_bare) = ATTACKS[at];
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        held[at] += u32::from(round(attack, is_bare, random.u32(..1 << 14)));
    }
    println!("held to the end of the runtime, of {rounds}: {held:?}");
}
