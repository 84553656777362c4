//! Races between simulated connections, with a clock that is moved by hand.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use super::*;
use crate::net::eyeballs::ATTEMPT_DELAY;
use crate::{Clock, Runtime};

const LIMIT: Duration = Duration::from_secs(10);
const V6: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 80);
const V4: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 80);

/// The outcome of a connection attempt.
#[derive(Clone, Copy)]
enum Fate {
    Connected,
    Refused,
    /// There is never an answer.
    Silence,
}

/// Counts the attempts in progress, and reports each attempt that begins.
#[derive(Clone)]
struct Network {
    open: Arc<AtomicUsize>,
    begun: mpsc::Sender<SocketAddr>,
    fates: [Fate; 2],
}

struct Attempt(Arc<AtomicUsize>);

impl Drop for Attempt {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Network {
    fn connect(&self, to: SocketAddr) -> impl Future<Output = io::Result<SocketAddr>> + use<> {
        let fate = self.fates[usize::from(to.is_ipv4())];
        self.open.fetch_add(1, Ordering::SeqCst);
        let attempt = Attempt(self.open.clone());
        let begun = self.begun.clone();
        async move {
            let _attempt = attempt;
            begun.send(to).expect("the test listens");
            match fate {
                Fate::Connected => Ok(to),
                Fate::Refused => Err(io::ErrorKind::ConnectionRefused.into()),
                Fate::Silence => std::future::pending().await,
            }
        }
    }
}

/// Runs a race to [`V6`] and [`V4`]; `advance` moves the clock in the meantime.
fn run(
    fates: [Fate; 2],
    advance: impl FnOnce(&crate::ManualClock, &mpsc::Receiver<SocketAddr>),
) -> Result<SocketAddr, Lost> {
    let clock = Clock::manual();
    let runtime = Runtime::builder().workers(1).clock(clock.clock());
    let runtime = runtime.build().expect("it starts");
    let (begun, is_begun) = mpsc::channel();
    let open = Arc::default();
    let network = Network { open, begun, fates };
    let open = network.open.clone();
    let thread = runtime.spawn(async move {
        let eyeballs = Eyeballs::new(ATTEMPT_DELAY, now() + LIMIT);
        let lookup = |address| Box::pin(async move { Ok(vec![address]) });
        let lookups: Vec<(_, Lookup<'_>)> =
            vec![(Family::Preferred, lookup(V6)), (Family::Other, lookup(V4))];
        race(eyeballs, LIMIT, lookups, |to| network.connect(to)).await
    });
    advance(&clock, &is_begun);
    let result = runtime.block_on(thread).expect("no panic");
    assert_eq!(open.load(Ordering::SeqCst), 0, "an attempt goes on");
    result
}

#[test]
fn the_first_address_wins_at_once() {
    let result = run([Fate::Connected, Fate::Connected], |_, _| {});
    assert_eq!(result.expect("it is connected"), V6);
}

#[test]
fn the_next_one_follows_a_failure_at_once() {
    let result = run([Fate::Refused, Fate::Connected], |_, _| {});
    assert_eq!(result.expect("it is connected"), V4);
}

#[test]
fn the_next_one_follows_silence_after_the_delay() {
    let result = run([Fate::Silence, Fate::Connected], |clock, begun| {
        assert_eq!(begun.recv(), Ok(V6));
        clock.advance(ATTEMPT_DELAY - Duration::from_millis(1));
        assert!(begun.try_recv().is_err());
        clock.advance(Duration::from_millis(1));
        assert_eq!(begun.recv(), Ok(V4));
    });
    assert_eq!(result.expect("it is connected"), V4);
}

#[test]
fn the_outcome_of_each_attempt_is_reported() {
    let lost = run([Fate::Refused, Fate::Refused], |_, _| {}).expect_err("all fail");
    let addresses: Vec<_> = lost.attempts.iter().map(|(address, _)| *address).collect();
    assert_eq!((addresses, lost.timed_out), (vec![V6, V4], false));
}

#[test]
fn the_time_is_up() {
    let result = run([Fate::Silence, Fate::Silence], |clock, begun| {
        assert_eq!(begun.recv(), Ok(V6));
        clock.advance(ATTEMPT_DELAY);
        assert_eq!(begun.recv(), Ok(V4));
        clock.advance(LIMIT);
    });
    let lost = result.expect_err("all are silent");
    assert!(lost.timed_out);
    let told = lost
        .attempts
        .iter()
        .map(|(address, error)| format!("{address}: {error}"));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            "[::1]:80: no answer within 10s",
            "127.0.0.1:80: no answer within 10s"
        ]
    );
}
