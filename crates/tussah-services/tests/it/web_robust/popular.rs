//! A page that most clients want at the same time.

use rustix::process::Signal;

use super::client::request;
use super::process::{Site, bytes};

#[test]
fn one_page_for_many_clients_at_a_time() {
    let site = Site::new().file("site/popular.bin", bytes(3000));
    let server = site.serve("--workers 2");
    let mut clients: Vec<_> = (0..64).map(|_| server.connect()).collect();
    let one = request("/popular.bin", "");
    let two = one.repeat(2);
    for round in 0..6 {
        // The server finds all requests at once when it continues.
        server.signal(Signal::STOP);
        for client in &mut clients {
            client.send(if round % 2 == 0 { &one } else { &two });
        }
        server.signal(Signal::CONT);
        for client in &mut clients {
            for _ in 0..=round % 2 {
                let answer = client.answer();
                assert_eq!(answer.status, 200);
                assert!(answer.body == bytes(3000), "other bytes");
            }
        }
    }
    // The page changes, and all see that.
    std::fs::write(server.site.path("site/popular.bin"), "new").expect("it can be written");
    super::process::until("the page is new", || {
        server.get("/popular.bin").body == b"new"
    });
    for client in &mut clients {
        assert_eq!(client.ask(&one).body, b"new");
    }
}
