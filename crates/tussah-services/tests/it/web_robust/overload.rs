//! More dynamic pages than can be made in time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use super::client::request;
use super::process::{Site, until};

/// Clients that ask at the same time.
const CLIENTS: usize = 120;

/// Times that a client asks at the most, and has not been forgotten.
const ASKS_MAX: usize = 10_000;

#[test]
fn overload_is_shed_and_nobody_is_forgotten() {
    let server = Arc::new(Site::new().serve("--work --workers 1 --target 20ms"));
    let afters = Arc::new(Mutex::new(BTreeSet::new()));
    let served: Arc<Vec<AtomicUsize>> =
        Arc::new((0..CLIENTS).map(|_| AtomicUsize::new(0)).collect());
    let shed = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (server, afters, served, shed) =
                (server.clone(), afters.clone(), served.clone(), shed.clone());
            thread::spawn(move || {
                let mut client = server.connect();
                let mut asks = 0;
                // Until each has had its turn, many were shed, and these are to return at different
                // times. The connection stays the same whatever the answers are.
                while served.iter().any(|count| count.load(Ordering::Relaxed) < 1)
                    || shed.load(Ordering::Relaxed) <= 4 * CLIENTS
                    || afters.lock().expect("nobody panics with it").len() < 2
                {
                    asks += 1;
                    assert!(
                        asks <= ASKS_MAX,
                        "some starve, or few are shed: {served:?}, {shed:?}, {afters:?}"
                    );
                    let answer = client.ask(&request("/work?compute=2ms", ""));
                    match answer.status {
                        200 => {
                            assert_eq!(answer.body.len(), 8192);
                            served[number].fetch_add(1, Ordering::Relaxed);
                        }
                        503 => {
                            shed.fetch_add(1, Ordering::Relaxed);
                            let after = answer
                                .field("Retry-After")
                                .expect("it says when to come again");
                            let after = after.parse::<u32>().expect("a number of seconds");
                            assert!((1..=120).contains(&after), "{after}");
                            afters.lock().expect("nobody panics with it").insert(after);
                        }
                        status => panic!("{status}"),
                    }
                    assert!(!answer.ends());
                    // Static pages are not touched by it.
                    assert_eq!(client.ask(&request("/a.txt", "")).text(), "hello\n");
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("no client fails");
    }
    // It goes on when the load is gone.
    until("pages are served again", || {
        server.get("/work").status == 200
    });
}

#[test]
fn pipelines_are_answered_once_each_in_overload() {
    let server = Site::new().serve("--work --workers 1 --target 20ms --half-close serve");
    let mut clients: Vec<_> = (0..16).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send((request("/work?compute=5ms", "") + &request("/a.txt", "")).repeat(20));
        client.finish();
    }
    let mut dynamic = [0, 0];
    for client in &mut clients {
        for _ in 0..20 {
            let answer = client.answer();
            assert!(matches!(answer.status, 200 | 503), "{}", answer.head);
            dynamic[usize::from(answer.status == 503)] += 1;
            assert_eq!(client.answer().text(), "hello\n");
        }
        client.expect_end();
    }
    assert!(dynamic[0] > 0, "{dynamic:?}");
}

#[test]
fn a_body_is_read_before_the_answer_503() {
    // One page keeps the only worker busy, and the queue is full of others.
    let server = Site::new().serve("--work --workers 1 --target 10ms");
    let mut clients: Vec<_> = (0..64).map(|_| server.connect()).collect();
    let body = "x".repeat(10_000);
    let post = format!(
        "POST /work?compute=20ms HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    for _ in 0..5 {
        for client in &mut clients {
            client.send(&post);
        }
        for client in &mut clients {
            let answer = client.answer();
            assert!(matches!(answer.status, 200 | 503), "{}", answer.head);
            assert!(!answer.ends());
        }
    }
}
