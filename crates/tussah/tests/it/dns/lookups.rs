//! Lookups by a server, from the cache, from the file of hosts, and without any of these.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use futures_util::future::join_all;
use tussah::dns::{IpStrategy, Mx, Resolver, Srv};

use super::server::{Reply, Server, a, aaaa, bytes, cname, is_a, mx, ptr, srv, txt, zone};
use super::{builder, ips};
use crate::{by_hand, runtime};

fn records() -> Server {
    Server::of_records(vec![
        a("host.test.", [192, 0, 2, 1]),
        a("host.test.", [192, 0, 2, 2]),
        aaaa("host.test.", "2001:db8::1".parse().expect("an address")),
        a("v4.test.", [192, 0, 2, 4]),
        aaaa("v6.test.", "2001:db8::6".parse().expect("an address")),
        cname("alias.test.", "other.test."),
        cname("other.test.", "host.test."),
        cname("_alias._tcp.test.", "_http._tcp.test."),
        srv("_http._tcp.test.", 20, 0, 80, "late.test."),
        srv("_http._tcp.test.", 10, 1, 81, "light.test."),
        srv("_http._tcp.test.", 10, 9, 82, "heavy.test."),
        mx("test.", 20, "second.test."),
        mx("test.", 10, "first.test."),
        txt("test.", &["v=spf1 ", "-all"]),
        ptr("1.2.0.192.in-addr.arpa.", "host.test."),
        a("www.corp.test.", [192, 0, 2, 9]),
    ])
}

#[test]
fn records_of_all_types() {
    let server = records();
    runtime(2).block_on(async {
        let resolver = builder([&server]).build();
        let found = resolver.lookup_ip("host.test.").await.expect("it is there");
        assert_eq!(
            found.as_slice(),
            ips(&["2001:db8::1", "192.0.2.1", "192.0.2.2"])
        );
        assert_eq!(found.v4().count(), 2);
        assert_eq!(
            found.v6().collect::<Vec<_>>(),
            ["2001:db8::1".parse::<Ipv6Addr>().expect("one")]
        );
        let found = resolver.lookup_a("host.test.").await.expect("it is there");
        assert_eq!(found.as_slice(), ips(&["192.0.2.1", "192.0.2.2"]));
        let found = resolver
            .lookup_aaaa("HOST.Test.")
            .await
            .expect("it is there");
        assert_eq!(found.as_slice(), ips(&["2001:db8::1"]));
        for (host, expected) in [("v4.test", "192.0.2.4"), ("v6.test", "2001:db8::6")] {
            let found = resolver
                .lookup_ip(host)
                .await
                .expect("one family is enough");
            assert_eq!(found.as_slice(), ips(&[expected]));
        }
        let found = resolver.lookup_a("alias.test.").await.expect("it is there");
        assert_eq!(found.as_slice(), ips(&["192.0.2.1", "192.0.2.2"]));
        for service in ["_http._tcp.test.", "_alias._tcp.test."] {
            let found = resolver.lookup_srv(service).await.expect("it is there");
            let ports: Vec<_> = found.iter().map(|srv| srv.port).collect();
            assert_eq!(ports, [82, 81, 80], "{service}");
            let (priority, weight, target) = (10, 9, "heavy.test.".to_owned());
            assert_eq!(
                found[0],
                Srv {
                    priority,
                    weight,
                    port: 82,
                    target
                }
            );
        }
        let found = resolver.lookup_mx("test.").await.expect("it is there");
        let exchange = "first.test.".to_owned();
        assert_eq!(
            found[0],
            Mx {
                preference: 10,
                exchange
            }
        );
        let found = resolver.lookup_txt("test.").await.expect("it is there");
        assert_eq!(found[0].to_string(), "v=spf1 -all");
        let address = Ipv4Addr::new(192, 0, 2, 1).into();
        let found = resolver.reverse(address).await.expect("it is there");
        assert_eq!(found.into_vec(), ["host.test."]);
    });
    assert!(server.asked().iter().all(|asked| !asked.by_tcp));
}

#[test]
fn missing_records_are_reported() {
    let server = records();
    runtime(1).block_on(async {
        let resolver = builder([&server]).build();
        let error = resolver
            .lookup_a("nosuch.test")
            .await
            .expect_err("it does not exist");
        assert!(error.is_not_found() && error.is_no_such_name());
        assert_eq!(error.to_string(), "resolve nosuch.test (A): no such name");
        let error = resolver
            .lookup_aaaa("v4.test.")
            .await
            .expect_err("it has no such records");
        assert!(error.is_not_found() && !error.is_no_such_name());
        assert_eq!(
            error.to_string(),
            "resolve v4.test. (AAAA): no such records"
        );
        assert_eq!((error.name(), error.record_type()), ("v4.test.", "AAAA"));
        let error = resolver
            .lookup_ip("nosuch.test")
            .await
            .expect_err("it does not exist");
        assert_eq!(
            error.to_string(),
            "resolve nosuch.test (A, AAAA): no such name"
        );
        assert_eq!(
            std::io::Error::from(error).kind(),
            std::io::ErrorKind::NotFound
        );
        for none in ["", "a..test", "a b"] {
            let error = resolver.lookup_ip(none).await.expect_err("it is no name");
            let error = std::io::Error::from(error);
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{none:?}");
        }
    });
}

#[test]
fn answers_are_kept_with_their_time_to_live() {
    let server = Server::new(|asked| {
        let mut records = vec![
            a("short.test.", [192, 0, 2, 1]),
            a("long.test.", [192, 0, 2, 2]),
        ];
        records[0].ttl = 0;
        records[1].ttl = 100_000;
        vec![Reply::Bytes(bytes(&zone(asked, &records)))]
    });
    // The clock stands still.
    let (_clock, runtime) = by_hand();
    runtime.block_on(async {
        let resolver = builder([&server]).build();
        let same = resolver.clone();
        for _ in 0..3 {
            let found = same.lookup_a("long.test").await.expect("it is there");
            assert_eq!(found.ttl(), Duration::from_secs(86_400));
        }
        assert_eq!(server.count(), 1);
        // That there is none is kept as well.
        for _ in 0..3 {
            resolver
                .lookup_a("nosuch.test")
                .await
                .expect_err("it does not exist");
        }
        assert_eq!(server.count(), 2);
        // What is valid for no time at all is not kept.
        for _ in 0..3 {
            let found = resolver.lookup_a("short.test").await.expect("it is there");
            assert_eq!(found.ttl(), Duration::ZERO);
        }
        assert_eq!(server.count(), 5);
        // Nor is anything in a resolver without a cache.
        let resolver = builder([&server]).cache_size(0).build();
        for _ in 0..3 {
            resolver.lookup_a("long.test").await.expect("it is there");
        }
        assert_eq!(server.count(), 8);
    });
}

#[test]
fn cached_answers_expire() {
    let server = Server::new(|asked| {
        let mut records = vec![
            a("host.test.", [192, 0, 2, 1]),
            cname("alias.test.", "host.test."),
        ];
        records[1].ttl = 30;
        vec![Reply::Bytes(bytes(&zone(asked, &records)))]
    });
    let seconds = Duration::from_secs;
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let resolver = builder([&server]).build();
        let check = async |host: &str, ttl: u64, count: usize| {
            match resolver.lookup_a(host).await {
                Ok(found) => assert_eq!(found.ttl(), seconds(ttl), "{host}"),
                Err(error) => assert!(error.is_not_found() && ttl == 0, "{error}"),
            }
            assert_eq!(server.count(), count, "{host}");
        };
        check("host.test", 60, 1).await;
        check("alias.test", 30, 2).await;
        check("nosuch.test", 0, 3).await;
        clock.advance(seconds(25));
        check("host.test", 35, 3).await;
        check("alias.test", 5, 3).await;
        check("nosuch.test", 0, 3).await;
        clock.advance(seconds(6));
        check("host.test", 29, 3).await;
        check("alias.test", 30, 4).await;
        clock.advance(seconds(30));
        check("host.test", 60, 5).await;
        // That there is none holds for a minute as well.
        check("nosuch.test", 0, 6).await;
    });
}

#[test]
fn equal_questions_at_the_same_time_are_asked_once() {
    let all_wait = Arc::new(Barrier::new(2));
    let release = all_wait.clone();
    let server = Server::new(move |asked| {
        release.wait();
        let records = [a("host.test.", [192, 0, 2, 1])];
        vec![Reply::Bytes(bytes(&zone(asked, &records)))]
    });
    let (_clock, runtime) = by_hand(); // nothing is sent a second time
    runtime.block_on(async {
        let resolver = builder([&server]).build();
        // It has read its files.
        resolver.lookup_a("127.0.0.1").await.expect("it is one");
        let lookups: Vec<_> = (0..100)
            .map(|_| {
                let resolver = resolver.clone();
                tussah::spawn(async move { resolver.lookup_a("host.test").await })
            })
            .collect();
        // The only worker has begun all of them when it comes to the last.
        tussah::spawn(async move { all_wait.wait() })
            .await
            .expect("no panic");
        for lookup in lookups {
            let found = lookup.await.expect("no panic").expect("it is there");
            assert_eq!(found.as_slice(), ips(&["192.0.2.1"]));
        }
    });
    assert_eq!(server.count(), 1);
}

#[test]
fn a_thousand_lookups_at_the_same_time() {
    let server = Server::new(|asked| {
        let label = asked.query.name().to_ascii().replace(".test.", "");
        let number: u16 = label.parse().expect("a number");
        let [high, low] = number.to_be_bytes();
        let records = [a(&format!("{number}.test."), [10, 0, high, low])];
        vec![Reply::Bytes(bytes(&zone(asked, &records)))]
    });
    runtime(2).block_on(async {
        let resolver = builder([&server]).attempts(5).build();
        let lookups = (0..1000u16).map(|number| {
            let resolver = resolver.clone();
            tussah::spawn(async move { resolver.lookup_a(&format!("{number}.test")).await })
        });
        let lookups: Vec<_> = lookups.collect();
        for (number, found) in join_all(lookups).await.into_iter().enumerate() {
            let found = found.expect("no panic").expect("it is there");
            let [high, low] = (number as u16).to_be_bytes();
            assert_eq!(found.as_slice(), [IpAddr::from([10, 0, high, low])]);
        }
    });
}

#[test]
fn answers_beyond_the_memory_bound_are_not_cached() {
    let addresses = |name, count| (0..count).map(move |n| a(name, [192, 0, 2, n]));
    let few = addresses("few.test.", 10);
    let server = Server::of_records(few.chain(addresses("many.test.", 70)).collect());
    runtime(1).block_on(async {
        let resolver = builder([&server]).build();
        for (host, len, asked) in [("few.test", 10, 1), ("many.test", 70, 3)] {
            for _ in 0..2 {
                let found = resolver.lookup_a(host).await.expect("it is there");
                assert_eq!(found.as_slice().len(), len);
            }
            assert_eq!(server.count(), asked, "{host}");
        }
    });
}

#[test]
fn the_file_of_hosts_comes_first() {
    let server = records();
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    write!(
        file,
        "# comment\n192.0.2.77 host.test. plain Mixed # more\n2001:db8::77 plain\nnonsense x\n\u{1}\n192.0.2.78\n"
    )
    .expect("it is written");
    runtime(1).block_on(async {
        let resolver = builder([&server]).hosts_file(file.path()).build();
        // Also the family that it has not there, which a server has.
        let found = resolver.lookup_ip("host.test").await.expect("it is there");
        assert_eq!(found.as_slice(), ips(&["192.0.2.77"]));
        let found = resolver.lookup_ip("plain").await.expect("it is there");
        assert_eq!(found.as_slice(), ips(&["2001:db8::77", "192.0.2.77"]));
        let found = resolver.lookup_a("mixed").await.expect("it is there");
        assert_eq!(found.as_slice(), ips(&["192.0.2.77"]));
        let none = resolver.lookup_aaaa("host.test").await;
        assert!(none.expect_err("it has only the other").is_not_found());
        let only = builder([&server]).ip_strategy(IpStrategy::Ipv6Only);
        let only = only.hosts_file(file.path()).build();
        let none = only.lookup_ip("host.test").await;
        assert!(none.expect_err("it has only the other").is_not_found());
        let names = resolver.reverse(Ipv4Addr::new(192, 0, 2, 77).into()).await;
        let mut names = names.expect("it is there").into_vec();
        names.sort();
        assert_eq!(names, ["host.test.", "mixed.", "plain."]);
        assert_eq!(server.count(), 0);
        // One that can't be read is empty.
        let resolver = builder([&server]).hosts_file("/nosuch/hosts").build();
        let found = resolver.lookup_a("host.test").await.expect("it is there");
        assert_eq!(found.as_slice(), ips(&["192.0.2.1", "192.0.2.2"]));
    });
}

#[test]
fn literal_and_special_names_need_no_server() {
    let server = records();
    runtime(1).block_on(async {
        let resolver = builder([&server]).build();
        let found = resolver.lookup_ip("192.0.2.5").await.expect("it is one");
        assert_eq!(found.as_slice(), ips(&["192.0.2.5"]));
        let found = resolver
            .lookup_aaaa("2001:db8::5")
            .await
            .expect("it is one");
        assert_eq!(found.as_slice(), ips(&["2001:db8::5"]));
        let error = resolver
            .lookup_a("2001:db8::5")
            .await
            .expect_err("it is the other family");
        assert!(error.is_not_found());
        for host in ["localhost", "localhost.", "db.localhost"] {
            let found = resolver.lookup_ip(host).await.expect("it is always there");
            assert_eq!(found.as_slice(), ips(&["::1", "127.0.0.1"]), "{host}");
        }
        assert_eq!(server.count(), 0);
    });
}

#[test]
fn names_are_completed() {
    let server = records();
    runtime(1).block_on(async {
        let resolver = builder([&server])
            .search(["nosuch.test", "corp.test"])
            .build();
        let found = resolver
            .lookup_ip("www")
            .await
            .expect("it is in the second domain");
        assert_eq!(found.as_slice(), ips(&["192.0.2.9"]));
        let asked: Vec<_> = server.asked().into_iter().filter(is_a).collect();
        let names: Vec<_> = asked
            .iter()
            .map(|asked| asked.query.name().to_ascii())
            .collect();
        assert_eq!(names, ["www.nosuch.test.", "www.corp.test."]);
        let error = resolver
            .lookup_ip("www.")
            .await
            .expect_err("it is complete");
        assert!(error.is_not_found());
    });
}

#[test]
fn only_the_families_that_are_wanted() {
    let server = records();
    runtime(1).block_on(async {
        for (strategy, expected) in [
            (IpStrategy::Ipv4Only, &["192.0.2.1", "192.0.2.2"][..]),
            (IpStrategy::Ipv6Only, &["2001:db8::1"]),
            (
                IpStrategy::Ipv4First,
                &["192.0.2.1", "192.0.2.2", "2001:db8::1"],
            ),
        ] {
            let before = server.count();
            let resolver = builder([&server]).ip_strategy(strategy).build();
            let found = resolver.lookup_ip("host.test").await.expect("it is there");
            assert_eq!(found.as_slice(), ips(expected));
            let families = if strategy == IpStrategy::Ipv4First {
                2
            } else {
                1
            };
            assert_eq!(server.count() - before, families);
        }
    });
}

#[test]
fn from_anywhere() {
    let server = records();
    let one = runtime(1);
    let resolver = builder([&server]).build_in(&one);
    let check = async || {
        let found = resolver.lookup_a("host.test").await.expect("it is there");
        assert_eq!(found.as_slice(), ips(&["192.0.2.1", "192.0.2.2"]));
    };
    // On an OS thread of nobody's, in another runtime, and in its own.
    futures_lite::future::block_on(check());
    runtime(1).block_on(check());
    one.block_on(check());
    assert_eq!(server.count(), 1);
}

#[test]
fn a_runtime_has_one_resolver() {
    let one = runtime(1);
    one.block_on(async {
        let found = Resolver::current()
            .lookup_ip("localhost")
            .await
            .expect("it is there");
        assert!(found.iter().all(IpAddr::is_loopback));
    });
    // It keeps nothing of its runtime, which frees it: it is gone with the last handle.
    let gone = Arc::downgrade(&one.extension(|| ()));
    drop(one);
    assert!(gone.upgrade().is_none());
}
