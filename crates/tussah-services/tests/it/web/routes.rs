//! Routes side by side: what happens to one says nothing of another.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tussah::stage::control::Mode;
use tussah::sync::Semaphore;
use tussah_services::web::{Reply, Request, Route, Web};

use super::client::request;
use super::server::{Server, Site};

/// Bound: how long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// Clients that ask for one page all the time.
const CLIENTS: usize = 64;

/// A page that computes for 5 ms.
async fn compute(_: Request) -> Reply {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(5) {
        tussah::yield_now().await;
    }
    Reply::text("computed")
}

async fn trivial(_: Request) -> Reply {
    Reply::text("trivial")
}

/// Adds a page that tells that it has begun, and is not answered before the test adds a permit.
fn waiting() -> (Arc<Semaphore>, mpsc::Receiver<()>, Route) {
    let gate = Arc::new(Semaphore::new(0));
    let (tell, begun) = mpsc::channel();
    let opens = Arc::clone(&gate);
    let route = Route::new(move |_| {
        let (tell, gate) = (tell.clone(), Arc::clone(&opens));
        async move {
            let _ = tell.send(()); // the test may have ended
            gate.acquire().await.forget();
            Reply::text("waited")
        }
    });
    (gate, begun, route)
}

fn start(target: Duration, add: impl FnOnce(Web) -> Web) -> Arc<Server> {
    let site = Site::new().with(|config| config.target = target);
    Arc::new(site.start_with(add))
}

/// Has many clients ask for a page, each again when it is answered, until `rejected` requests have
/// been rejected. Then does something, while they go on. Returns how many have been rejected in
/// all.
fn while_overloaded(
    server: &Arc<Server>,
    path: &'static str,
    rejected: usize,
    act: impl FnOnce(),
) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (server, count, is_over) = (server.clone(), count.clone(), is_over.clone());
            thread::spawn(move || {
                let mut client = server.connect();
                while !is_over.load(Ordering::Relaxed) {
                    let answer = client.get(path, "");
                    assert!(matches!(answer.status, 200 | 503), "{}", answer.head);
                    count.fetch_add(usize::from(answer.status == 503), Ordering::Relaxed);
                }
            })
        })
        .collect();
    let begun = Instant::now();
    while count.load(Ordering::Relaxed) < rejected {
        assert!(begun.elapsed() < PATIENCE, "{count:?} are rejected");
        thread::yield_now();
    }
    act();
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("no client fails");
    }
    count.load(Ordering::Relaxed)
}

#[test]
fn a_route_is_answered_beside_one_that_is_overloaded() {
    let server = start(Duration::from_millis(50), |web| {
        web.route("/compute", compute).route("/trivial", trivial)
    });
    let rejected = while_overloaded(&server, "/compute", 200, || {
        let mut client = server.connect();
        for n in 0..100 {
            assert_eq!(client.get("/trivial", "").text(), "trivial", "{n}");
        }
    });
    // A response is counted after it was sent.
    let begun = Instant::now();
    let compute = loop {
        let compute = status_of_first(&server);
        if compute["responses"]["5xx"] == rejected || begun.elapsed() > PATIENCE {
            break compute;
        }
    };
    assert_eq!(compute["responses"]["5xx"], rejected);
    assert_eq!(compute["rejected"]["overload"], rejected);
}

/// Returns what the status page says about the first route.
fn status_of_first(server: &Server) -> serde_json::Value {
    let page = server.get("/status?format=json", "");
    let mut page: serde_json::Value = serde_json::from_slice(&page.body).expect("it is JSON");
    page["sources"][0].take()
}

/// Has many clients ask for a computing page until overload control has rejected some, or would
/// have, or is off and has had the time to. Returns how many it rejected and would have rejected.
fn rejected(mode: Mode) -> (usize, u64) {
    let target = Duration::from_millis(50);
    let site = Site::new().with(|config| (config.target, config.overload) = (target, mode));
    let server = site.start_with(|web| web.route("/compute", compute));
    let (count, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let would_reject = || status_of_first(&server)["would_reject"].as_u64();
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = server.connect();
                while !is_over.load(Ordering::Relaxed) {
                    let status = client.get("/compute", "").status;
                    count.fetch_add(usize::from(status == 503), Ordering::Relaxed);
                }
            });
        }
        while begun.elapsed() < PATIENCE {
            let answered = status_of_first(&server)["responses"]["2xx"].as_u64();
            if count.load(Ordering::Relaxed) > 0
                || would_reject() > Some(0)
                || mode == Mode::Off && answered > Some(500)
            {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let would_reject = would_reject().expect("it is a number");
    (count.into_inner(), would_reject)
}

#[test]
fn overload_control_rejects_only_if_it_is_on() {
    assert!(matches!(rejected(Mode::On), (1.., 0)));
    assert!(matches!(rejected(Mode::Observe), (0, 1..)));
    assert_eq!(rejected(Mode::Off), (0, 0));
}

#[test]
fn a_fast_route_waits_for_no_slow_one() {
    let (gate, begun, slow) = waiting();
    let server = start(Duration::from_secs(1), |web| {
        web.route_with("/slow", slow).route("/fast", trivial)
    });
    // Ten times as many as are begun of a route of which nothing is known.
    let mut slow: Vec<_> = (0..300).map(|_| server.connect()).collect();
    for client in &mut slow {
        client.send(request("GET", "/slow", ""));
    }
    begun.recv_timeout(PATIENCE).expect("one begins");
    // None of the slow ones ends meanwhile.
    for _ in 0..4 {
        let mut client = server.connect();
        for _ in 0..100 {
            assert_eq!(client.get("/fast", "").text(), "trivial");
        }
    }
    gate.add_permits(slow.len());
    for mut client in slow {
        let answer = client.answer();
        assert!(matches!(answer.status, 200 | 503), "{}", answer.head);
    }
}

#[test]
fn a_route_that_waits_begins_all_at_once() {
    const WAITING: usize = 300;
    let (gate, begun, poll) = waiting();
    let server = start(Duration::from_millis(50), |web| {
        web.route_with("/poll", poll.waits())
    });
    for _ in 0..2 {
        let mut clients: Vec<_> = (0..WAITING).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.send(request("GET", "/poll", ""));
        }
        for n in 0..WAITING {
            let has_begun = begun.recv_timeout(PATIENCE);
            assert!(has_begun.is_ok(), "{n} have begun");
        }
        gate.add_permits(WAITING);
        for mut client in clients {
            assert_eq!(client.answer().text(), "waited");
        }
    }
}

#[test]
fn a_route_may_have_a_target_of_its_own() {
    let server = start(Duration::from_millis(50), |web| {
        web.route("/soon", compute)
            .route_with("/later", Route::new(compute).target(PATIENCE))
    });
    while_overloaded(&server, "/soon", 1, || {});
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for _ in 0..5 {
        for client in &mut clients {
            client.send(request("GET", "/later", ""));
        }
        for client in &mut clients {
            assert_eq!(client.answer().text(), "computed");
        }
    }
}
