//! The hosts that a router may connect to.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

/// Bound, in hosts: the maximum number of known hosts. A further host replaces one with failures,
/// or is not added. The address of a host needs about 100 bytes.
const HOSTS_MAX: usize = 1_000;
/// The pause after the first failure. Each further failure doubles it.
const PAUSE: Duration = Duration::from_secs(1);
/// Bound, in time: the maximum pause after a failure, without its random part.
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// Bound, in failures: the number after which the router forgets a host, unless the operator named
/// the host.
const FAILURES_MAX: u32 = 5;

/// The hosts that a router may connect to.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    all: HashMap<String, Host>,
    trying: usize,
}

#[derive(Debug)]
struct Host {
    /// True if the operator named the host, which is then never forgotten.
    is_named: bool,
    /// True if an attempt has succeeded.
    was_reached: bool,
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
            was_reached: false,
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
    /// Those that the operator named come first, and then those that have been reached, so that
    /// false hosts do not hide them. Those with fewer failures come earlier; `random` chooses among
    /// equals.
    pub(super) fn next(
        &mut self,
        now: Instant,
        connected: &[String],
        mut random: impl FnMut() -> u32,
    ) -> Option<String> {
        let ready = self.all.iter_mut().filter(|(name, host)| {
            !host.is_tried && host.next.is_none_or(|next| next <= now) && !connected.contains(name)
        });
        let key = |host: &Host| (!host.is_named, !host.was_reached, host.failures);
        let (name, host) = ready.min_by_key(|(_, host)| (key(host), random()))?;
        host.is_tried = true;
        self.trying += 1;
        Some(name.clone())
    }

    /// Notes the end of an attempt. `jitter`, from 0 to 1, lengthens the pause by up to a half, so
    /// that routers that lost the same peer do not return together. Returns true at the first
    /// failure of a host that the operator named.
    pub(super) fn tried(
        &mut self,
        name: &str,
        is_connected: bool,
        now: Instant,
        jitter: f64,
    ) -> bool {
        let Some(host) = self.all.get_mut(name) else {
            return false;
        };
        self.trying -= usize::from(std::mem::take(&mut host.is_tried));
        host.was_reached |= is_connected;
        host.failures = match is_connected {
            true => 0,
            false => host.failures.saturating_add(1),
        };
        if host.failures >= FAILURES_MAX && !host.is_named {
            self.all.remove(name);
            return false;
        }
        let doublings = host.failures.saturating_sub(1).min(20);
        let pause = PAUSE.saturating_mul(1 << doublings).min(PAUSE_MAX);
        host.next = Some(now + pause.mul_f64(1.0 + jitter / 2.0));
        host.is_named && host.failures == 1
    }
}

/// Returns whether a peer at the address `by` may name a host. A peer elsewhere must not direct
/// this router to its own machine, or to its private network.
pub(super) fn is_believed(by: IpAddr, host: SocketAddrV4) -> bool {
    let is_near = |ip: &Ipv4Addr| ip.is_private() || ip.is_link_local();
    let IpAddr::V4(by) = by else { return false };
    match host.ip() {
        // Networks, groups, and reserved addresses (RFC 6890) are no hosts.
        ip if host.port() == 0 || !(1..224).contains(&ip.octets()[0]) => false,
        ip if ip.is_loopback() => by.is_loopback(),
        ip if is_near(ip) => by.is_loopback() || is_near(&by),
        _ => true,
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
            let is_first = hosts.tried("a", false, now, 0.0);
            assert_eq!(
                is_first,
                pauses.is_empty(),
                "the operator hears of the first one"
            );
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
    fn false_hosts_do_not_hide_others() {
        let (mut hosts, now) = (Hosts::default(), Instant::now());
        hosts.add("reached".to_owned(), false);
        assert!(next(&mut hosts, now).is_some());
        hosts.tried("reached", true, now, 0.0);
        hosts.add("named".to_owned(), true);
        for n in 0..2 * HOSTS_MAX {
            hosts.add(n.to_string(), false);
        }
        assert_eq!(next(&mut hosts, now + 9 * S).as_deref(), Some("named"));
        assert_eq!(next(&mut hosts, now + 9 * S).as_deref(), Some("reached"));
        assert!(next(&mut hosts, now + 9 * S).is_some());
    }

    #[test]
    fn peers_elsewhere_name_no_hosts_here() {
        let check = |by: &str, host: &str, expected: bool| {
            let address = format!("{host}:1").parse().expect("an address");
            let believed = is_believed(by.parse().expect("an address"), address);
            assert_eq!(believed, expected, "{host} by {by}");
        };
        for by in ["127.0.0.1", "10.0.0.1", "192.0.2.1", "::1"] {
            for none in ["0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255"] {
                check(by, none, false);
            }
            check(by, "198.51.100.1", by != "::1");
            check(by, "127.0.0.1", by == "127.0.0.1");
            for private in ["10.9.9.9", "172.16.0.1", "192.168.1.1", "169.254.1.1"] {
                check(by, private, ["127.0.0.1", "10.0.0.1"].contains(&by));
            }
        }
        let no_port = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        assert!(!is_believed(Ipv4Addr::LOCALHOST.into(), no_port));
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
