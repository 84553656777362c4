//! A server that lies, and others who do so in its name: what is not an answer to the question is
//! never taken for one.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::RecordType;
use tussah::stage::sim::Random;

use super::server::{Asked, Reply, Server, a, bytes, cname, name, response, zone};
use super::{builder, ips};
use crate::{by_hand, runtime};

fn truth(asked: &Asked) -> Message {
    zone(asked, &[a("host.test.", [192, 0, 2, 1])])
}

fn lie(asked: &Asked) -> Message {
    zone(asked, &[a("host.test.", [6, 6, 6, 6])])
}

fn with_id(message: &Message, id: u16) -> Vec<u8> {
    let mut bytes = bytes(message);
    bytes[..2].copy_from_slice(&id.to_be_bytes());
    bytes
}

/// Sends a lie before each true answer; only the truth may be found, by the first question.
#[track_caller]
fn check_ignored(lie: impl Fn(&Asked) -> Reply + Send + Sync + 'static) {
    let server = Server::new(move |asked| vec![lie(asked), Reply::Bytes(bytes(&truth(asked)))]);
    let (_clock, runtime) = by_hand(); // what is not ignored is not asked again either
    runtime.block_on(async {
        let resolver = builder([&server]).attempts(1).build();
        let found = resolver.lookup_a("host.test").await.expect("it is there");
        assert_eq!(found.as_slice(), ips(&["192.0.2.1"]));
    });
    assert_eq!(server.count(), 1);
}

#[test]
fn a_wrong_number() {
    check_ignored(|asked| Reply::Bytes(with_id(&lie(asked), asked.id ^ 1)));
}

#[test]
fn a_wrong_port() {
    check_ignored(|asked| Reply::FromElsewhere(bytes(&lie(asked))));
}

#[test]
fn a_wrong_question() {
    for wrong in [
        Query::query(name("other.test."), RecordType::A),
        Query::query(name("host.test."), RecordType::AAAA),
    ] {
        check_ignored(move |asked| {
            let mut message = lie(asked);
            message.queries = vec![wrong.clone()];
            Reply::Bytes(bytes(&message))
        });
    }
    check_ignored(|asked| {
        let mut message = lie(asked);
        message.queries.clear();
        Reply::Bytes(bytes(&message))
    });
}

#[test]
fn a_wrong_question_by_tcp() {
    let server = Server::new(|asked| {
        let mut message = lie(asked);
        message.metadata.truncation = !asked.by_tcp;
        if asked.by_tcp {
            message.queries[0].set_name(name("other.test."));
        }
        vec![Reply::Bytes(bytes(&message))]
    });
    runtime(1).block_on(async {
        let resolver = builder([&server]).attempts(1).build();
        let error = resolver.lookup_a("host.test").await.expect_err("it lies");
        assert!(error.is_malformed(), "{error}");
    });
}

#[test]
fn noise() {
    check_ignored(|_| Reply::Bytes(Vec::new()));
    check_ignored(|_| Reply::Bytes(vec![7]));
    check_ignored(|asked| Reply::Bytes([&(!asked.id).to_be_bytes()[..], &[0xff; 500]].concat()));
}

/// A message with the right number that makes no sense is not believed, and the question is
/// repeated.
#[track_caller]
fn check_refused(lie: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) {
    let count = AtomicUsize::new(0);
    let server = Server::new(move |asked| {
        let bytes = match count.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => lie(asked),
            _ => bytes(&truth(asked)),
        };
        vec![Reply::Bytes(bytes)]
    });
    let (_clock, runtime) = by_hand();
    runtime.block_on(async {
        let resolver = builder([&server]).attempts(1).build();
        let error = resolver.lookup_a("host.test").await.expect_err("it lies");
        assert!(error.is_malformed(), "{error}");
        assert_eq!(error.server(), Some(server.address));
        let kind = std::io::Error::from(error).kind();
        assert_eq!(kind, std::io::ErrorKind::InvalidData);
        let resolver = builder([&server]).attempts(2).build();
        let found = resolver.lookup_a("host.test").await.expect("it is there");
        assert_eq!(found.as_slice(), ips(&["192.0.2.1"]));
    });
}

#[test]
fn a_question_for_an_answer() {
    check_refused(|asked| {
        let mut bytes = bytes(&lie(asked));
        bytes[2] &= 0x7f; // the bit that says that it is a response
        bytes
    });
}

#[test]
fn names_that_point_to_themselves() {
    let header = |asked: &Asked, answers: u8| {
        let [high, low] = asked.id.to_be_bytes();
        vec![high, low, 0x81, 0x80, 0, 1, 0, answers, 0, 0, 0, 0]
    };
    // The question's name points to itself.
    check_refused(move |asked| [header(asked, 0), vec![0xc0, 12, 0, 1, 0, 1]].concat());
    // Two pointers point to each other.
    check_refused(move |asked| [header(asked, 0), vec![0xc0, 14, 0xc0, 12, 0, 1, 0, 1]].concat());
    // The answer's name points to itself, behind the true question.
    check_refused(|asked| {
        let mut bytes = bytes(&response(asked));
        let at = bytes.len() as u8;
        bytes[7] = 1;
        bytes.extend([0xc0, at, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 6, 6, 6, 6]);
        bytes
    });
    // A pointer beyond the end.
    check_refused(|asked| {
        let mut bytes = bytes(&response(asked));
        bytes[7] = 1;
        bytes.extend([0xff, 0xff, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 6, 6, 6, 6]);
        bytes
    });
}

#[test]
fn aliases_that_go_in_a_circle() {
    check_refused(|asked| {
        let mut message = response(asked);
        message.add_answers([
            cname("host.test.", "b.test."),
            cname("b.test.", "host.test."),
        ]);
        bytes(&message)
    });
    // From one answer to the next: it ends.
    let server = Server::new(|asked| {
        let owner = asked.query.name().to_ascii();
        let target = match owner.as_str() {
            "host.test." => "b.test.",
            _ => "host.test.",
        };
        let mut message = response(asked);
        message.add_answer(cname(&owner, target));
        vec![Reply::Bytes(bytes(&message))]
    });
    runtime(1).block_on(async {
        let resolver = builder([&server]).cache_size(0).build();
        resolver
            .lookup_a("host.test")
            .await
            .expect_err("it has no end");
        assert!(server.count() < 20, "{}", server.count());
    });
}

#[test]
fn addresses_of_another_name_are_ignored() {
    let server = Server::new(|asked| {
        let mut message = truth(asked);
        message.answers.insert(0, a("evil.test.", [6, 6, 6, 6]));
        message.add_answer(a("evil.test.", [6, 6, 6, 6]));
        message.add_authority(a("host.test.", [6, 6, 6, 6]));
        message.add_additional(a("host.test.", [6, 6, 6, 6]));
        message.add_additional(a("other.test.", [6, 6, 6, 6]));
        if asked.query.name().to_ascii() != "host.test." {
            message.answers.clear();
        }
        vec![Reply::Bytes(bytes(&message))]
    });
    runtime(1).block_on(async {
        let resolver = builder([&server]).build();
        for _ in 0..2 {
            let found = resolver.lookup_a("host.test").await.expect("it is there");
            assert_eq!(found.as_slice(), ips(&["192.0.2.1"]));
            // Nothing of it has come into the cache under its name.
            for other in ["evil.test", "other.test"] {
                resolver.lookup_a(other).await.expect_err("nobody said so");
            }
        }
    });
}

#[test]
fn every_piece_of_an_answer() {
    let len = AtomicUsize::new(0);
    let server = Server::new(move |asked| {
        let bytes = bytes(&truth(asked));
        let len = len.fetch_add(1, Ordering::SeqCst).min(bytes.len());
        vec![Reply::Bytes(bytes[..len].to_vec()), Reply::Bytes(bytes)]
    });
    let (_clock, runtime) = by_hand();
    runtime.block_on(async {
        let resolver = builder([&server]).attempts(1).cache_size(0).build();
        let mut refused = 0;
        for _ in 0..60 {
            match resolver.lookup_a("host.test").await {
                Ok(found) => assert_eq!(found.as_slice(), ips(&["192.0.2.1"])),
                Err(error) => {
                    assert!(error.is_malformed(), "{error}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 10, "{refused}");
    });
}

#[test]
fn answers_with_errors_in_them() {
    let random = Mutex::new(Random::new(1));
    let server = Server::new(move |asked| {
        let mut broken = bytes(&truth(asked));
        let random = || random.lock().expect("nothing panics").next() as usize;
        for _ in 0..1 + random() % 8 {
            let at = 2 + random() % (broken.len() - 2);
            broken[at] ^= 1 << (random() % 8);
        }
        vec![Reply::Bytes(broken), Reply::Bytes(bytes(&truth(asked)))]
    });
    let (_clock, runtime) = by_hand();
    runtime.block_on(async {
        let resolver = builder([&server]).attempts(1).cache_size(0).build();
        for _ in 0..500 {
            // An error in the address itself can't be told from the truth; all that counts is that
            // this ends.
            if let Ok(found) = resolver.lookup_a("host.test").await {
                assert!(!found.as_slice().is_empty());
            }
        }
    });
}
