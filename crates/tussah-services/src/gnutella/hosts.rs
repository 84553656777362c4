//! The hosts that a router may connect to.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Bound, in hosts: those that are known. The address of a host needs about 100 bytes.
const HOSTS_MAX: usize = 1_000;
/// The pause after the first failure. Each further failure doubles it.
const PAUSE: Duration = Duration::from_secs(1);
/// Bound, in time: the pause after a failure.
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// Bound, in failures: those after which a host is forgotten that the operator has not named.
const FAILURES_MAX: u32 = 5;

/// The hosts that a router may connect to.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    all: HashMap<String, Host>,
    trying: usize,
}

#[derive(Debug)]
struct Host {
    /// True if the operator has named the host, which is then never forgotten.
    is_named: bool,
    is_tried: bool,
    failures: u32,
    /// The time of the next attempt.
    next: Option<Instant>,
}

impl Hosts {
    /// Adds a host. If there are too many, a host with failures makes room for it.
    pub(super) fn add(&mut self, name: String, is_named: bool) {
        if self.all.contains_key(&name) {
            return;
        }
        if self.all.len() >= HOSTS_MAX && !is_named {
            let gone = self.all.iter().filter(|(_, host)| host.is_poor());
            let Some(worst) = gone.max_by_key(|(_, host)| host.failures) else {
                return;
            };
            let worst = worst.0.clone();
            self.all.remove(&worst);
        }
        let host = Host {
            is_named,
            is_tried: false,
            failures: 0,
            next: None,
        };
        self.all.insert(name, host);
    }

    /// Returns the number of attempts that have not ended.
    pub(super) fn trying(&self) -> usize {
        self.trying
    }

    /// Returns the next host to connect to, which then counts as tried until the attempt ends.
    /// Those with fewer failures come first; `random` chooses among equals.
    pub(super) fn next(
        &mut self,
        now: Instant,
        connected: &[String],
        mut random: impl FnMut() -> u32,
    ) -> Option<String> {
        let ready = self.all.iter_mut().filter(|(name, host)| {
            !host.is_tried && host.next.is_none_or(|next| next <= now) && !connected.contains(name)
        });
        let (name, host) = ready.min_by_key(|(_, host)| (host.failures, random()))?;
        host.is_tried = true;
        self.trying += 1;
        Some(name.clone())
    }

    /// Notes the end of an attempt. `jitter`, from 0 to 1, lengthens the pause by up to a half, so
    /// that routers that lost the same peer do not return together.
    pub(super) fn tried(&mut self, name: &str, is_connected: bool, now: Instant, jitter: f64) {
        let Some(host) = self.all.get_mut(name) else {
            return;
        };
        self.trying -= usize::from(std::mem::take(&mut host.is_tried));
        host.failures = match is_connected {
            true => 0,
            false => host.failures.saturating_add(1),
        };
        if host.failures >= FAILURES_MAX && !host.is_named {
            self.all.remove(name);
            return;
        }
        let doublings = host.failures.saturating_sub(1).min(20);
        let pause = PAUSE.saturating_mul(1 << doublings).min(PAUSE_MAX);
        host.next = Some(now + pause.mul_f64(1.0 + jitter / 2.0));
    }
}

impl Host {
    /// Returns whether the host may make room for another one.
    fn is_poor(&self) -> bool {
        self.failures > 0 && !self.is_named && !self.is_tried
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn next(hosts: &mut Hosts, now: Instant) -> Option<String> {
        hosts.next(now, &[], || 0)
    }

    #[test]
    fn pauses_double_after_failures() {
        let (mut hosts, mut now) = (Hosts::default(), Instant::now());
        hosts.add("a".to_owned(), true);
        let mut pauses = Vec::new();
        for _ in 0..12 {
            assert_eq!(next(&mut hosts, now).as_deref(), Some("a"));
            assert_eq!((next(&mut hosts, now), hosts.trying()), (None, 1));
            hosts.tried("a", false, now, 0.0);
            let mut pause = S;
            while hosts.all["a"].next > Some(now + pause) {
                pause += S;
            }
            assert_eq!(next(&mut hosts, now + pause - S / 2), None);
            pauses.push(pause.as_secs());
            now += pause;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert!(next(&mut hosts, now).is_some());
        hosts.tried("a", true, now, 1.0);
        assert_eq!(next(&mut hosts, now + S), None);
        assert!(next(&mut hosts, now + 2 * S).is_some());
        assert_eq!(hosts.trying(), 1);
    }

    #[test]
    fn hosts_with_fewer_failures_come_first() {
        let (mut hosts, now) = (Hosts::default(), Instant::now());
        for name in ["a", "b", "c"] {
            hosts.add(name.to_owned(), true);
        }
        for name in ["a", "b"] {
            while next(&mut hosts, now).as_deref() != Some(name) {}
            for other in ["a", "b", "c"] {
                hosts.tried(other, other != name, now - 20 * S, 0.0);
            }
        }
        // `b` failed last, and `a` has been reached since.
        let first = hosts.next(now, &["c".to_owned()], || 0);
        assert_eq!(first.as_deref(), Some("a"));
        assert_eq!(
            hosts.next(now, &["c".to_owned()], || 0).as_deref(),
            Some("b")
        );
        assert_eq!(hosts.next(now, &["c".to_owned()], || 0), None);
    }

    #[test]
    fn the_number_of_hosts_is_bounded() {
        let (mut hosts, now) = (Hosts::default(), Instant::now());
        hosts.add("named".to_owned(), true);
        for n in 0..2 * HOSTS_MAX {
            hosts.add(n.to_string(), false);
        }
        assert_eq!(hosts.all.len(), HOSTS_MAX);
        let connected = ["named".to_owned()];
        let bad = hosts.next(now, &connected, || 0).expect("there are many");
        hosts.tried(&bad, false, now, 0.0);
        hosts.add("new".to_owned(), false);
        assert!(hosts.all.contains_key("new") && !hosts.all.contains_key(&bad));
        // A host that the operator has named stays.
        for _ in 0..2 * FAILURES_MAX {
            hosts.tried("named", false, now, 0.0);
            hosts.tried("new", false, now, 0.0);
        }
        assert!(hosts.all.contains_key("named") && !hosts.all.contains_key("new"));
    }
}
