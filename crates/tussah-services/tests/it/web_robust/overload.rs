//! More dynamic pages than can be made in time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

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

/// How a client goes on after a rejection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manner {
    /// Asks again at once.
    Impatient,
    /// Waits for the time that `Retry-After` states.
    Patient,
    /// Connects anew for each request, and asks again at once.
    Reconnects,
}

/// Jain's index: 1 if all got the same, and one part of N if one of N got everything.
fn jain(served: &[usize]) -> f64 {
    let sum: f64 = served.iter().map(|&count| count as f64).sum();
    let squares: f64 = served.iter().map(|&count| (count * count) as f64).sum();
    sum * sum / (served.len() as f64 * squares)
}

/// Has clients of these manners ask for a page, in a closed loop, until each could have been served
/// `times` times. Returns how often each was served, and how often any was rejected.
fn compete(options: &str, clients: &[Manner], times: usize) -> (Vec<usize>, usize) {
    let server = Arc::new(Site::new().serve(&format!("--work --workers 1 {options}")));
    let served: Vec<_> = clients.iter().map(|_| AtomicUsize::new(0)).collect();
    let (sum, shed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (is_over, over) = (Mutex::new(false), Condvar::new());
    let aim = times * clients.len();
    thread::scope(|scope| {
        for (served, manner) in served.iter().zip(clients) {
            let (server, sum, shed) = (&server, &sum, &shed);
            let (is_over, over) = (&is_over, &over);
            scope.spawn(move || {
                let mut client = server.connect();
                while sum.load(Ordering::Relaxed) < aim {
                    if *manner == Manner::Reconnects {
                        client = server.connect();
                    }
                    let answer = client.ask(&request("/work?compute=2ms", ""));
                    if answer.status == 200 {
                        served.fetch_add(1, Ordering::Relaxed);
                        sum.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    shed.fetch_add(1, Ordering::Relaxed);
                    let after = answer.field("Retry-After").expect("it says when to retry");
                    let after = after.parse().expect("a number of seconds");
                    if *manner == Manner::Patient {
                        let is_over = is_over.lock().expect("nobody panics with it");
                        let wait = Duration::from_secs(after);
                        let waited = over.wait_timeout_while(is_over, wait, |is_over| !*is_over);
                        drop(waited.expect("nobody panics with it"));
                    }
                }
                *is_over.lock().expect("nobody panics with it") = true;
                over.notify_all();
            });
        }
    });
    let served = served.into_iter().map(AtomicUsize::into_inner).collect();
    (served, shed.into_inner())
}

#[test]
fn refusals_do_not_fall_on_the_same_clients() {
    for manner in [Manner::Impatient, Manner::Reconnects] {
        let (served, shed) = compete("--target 20ms", &[manner; 40], 20);
        assert!(shed > 40, "{manner:?}: {shed}");
        let jain = jain(&served);
        assert!(jain > 0.8, "{manner:?}: {jain} of {served:?}");
    }
}

#[test]
fn clients_that_obey_retry_after_do_not_starve() {
    let mut clients = vec![Manner::Impatient; 20];
    clients.extend([Manner::Patient; 20]);
    for clients in [clients, vec![Manner::Patient; 40]] {
        let (served, _) = compete("--target 20ms", &clients, 60);
        assert!(served.iter().all(|&count| count > 0), "{served:?}");
    }
}

#[test]
fn rejections_take_a_bounded_share_of_the_workers() {
    let rejected = |bound: &str| {
        let options = format!("--target 20ms --limit-rejecting {bound}");
        compete(&options, &[Manner::Impatient; 64], 5).1
    };
    let (mut bounded, mut unbounded) = (0, 0);
    for _ in 0..10 {
        bounded += rejected("1");
        unbounded += rejected("off");
        if bounded > 0 {
            break; // on a busy machine, the budget may not suffice for one in a short run
        }
    }
    assert!(
        bounded > 0 && bounded * 4 < unbounded,
        "{bounded} {unbounded}"
    );
}

/// The server neither waits with the end of a connection nor keeps one whose client has left, while
/// other clients have to wait for their turn.
#[test]
fn a_client_that_leaves_after_its_rejection_is_not_kept() {
    const CLIENTS: usize = 32;
    let options = "--work --workers 1 --target 20ms --limit-rejecting 1";
    let server = Site::new().serve(options);
    let before = server.sockets();
    let (shed, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (server, shed, most) = (&server, &shed, &most);
            scope.spawn(move || {
                let ends = number % 2 == 0;
                let field = if ends { "Connection: close\r\n" } else { "" };
                while shed.load(Ordering::Relaxed) < 8 * CLIENTS {
                    let mut client = server.connect();
                    let answer = client.ask(&request("/work?compute=2ms", field));
                    if answer.status == 503 {
                        shed.fetch_add(1, Ordering::Relaxed);
                    }
                    if ends {
                        client.expect_end();
                    }
                    drop(client);
                    most.fetch_max(server.sockets(), Ordering::Relaxed);
                }
            });
        }
    });
    let most = most.into_inner();
    assert!(
        most <= before + 2 * CLIENTS,
        "{most} sockets, {before} before"
    );
}
