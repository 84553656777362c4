//! A server that has nothing to do.

use std::time::Duration;

use tussah::{Clock, Runtime};
use tussah_services::web::config::ListenAddress;
use tussah_services::web::{Reply, Web};

use super::client::Client;
use super::server::Site;

/// With one worker, which runs what the passing of time has set off before it is idle.
#[test]
fn nothing_runs_while_there_is_nothing_to_do() {
    let hand = Clock::manual();
    let runtime = Runtime::builder().workers(1).clock(hand.clock()).build();
    let runtime = runtime.expect("a runtime");
    let site = Site::new().file("a.txt", "hello");
    let web = Web::new(site.config.clone()).route("/page", |_| async { Reply::text("page") });
    let running = runtime.block_on(web.start()).expect("it starts");
    let address = running.addresses().next().cloned();
    let Some(ListenAddress::Tcp(address)) = address else {
        panic!("it listens somewhere else");
    };
    let mut client = Client::connect(address);
    assert_eq!(client.get("/a.txt", "").status, 200);
    assert_eq!(client.get("/page", "").status, 200);
    let events = || -> u64 {
        let workers = runtime.stats().workers;
        workers.iter().map(|worker| worker.events).sum()
    };
    let pass = |seconds| {
        for _ in 0..seconds {
            hand.advance(Duration::from_secs(1));
            runtime.block_on(runtime.idle());
        }
    };
    // What the page has begun comes to an end, and the client may stay idle for longer.
    pass(5);
    let before = events();
    pass(30);
    // Each wait for the worker may be an event.
    assert!(events() - before <= 35, "{} events", events() - before);
    // Else the end would wait for it, by a clock that stands still.
    drop(client);
    runtime.block_on(running.stop());
}
