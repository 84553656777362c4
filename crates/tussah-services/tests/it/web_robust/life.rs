//! A server as a library: what is lost, and what is left when it ends.

use std::future::{Future, Ready, pending, ready};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tussah::Runtime;
use tussah::sync::Notify;
use tussah_services::web::config::{Config, ListenAddress, LogFile};
use tussah_services::web::{Reply, Request, Running, Web};

use super::client::{Answer, Client, End, Socket, request};
use super::process::{PATIENCE, Site, until};

fn config(site: &Site) -> Config {
    Config {
        root: site.path("site"),
        listen: vec![ListenAddress::Tcp(([127, 0, 0, 1], 0).into())],
        drain: Duration::from_millis(200),
        target: Duration::from_secs(20),
        ..Default::default()
    }
}

fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().expect("a runtime")
}

fn address(running: &Running) -> SocketAddr {
    match running.addresses().next() {
        Some(ListenAddress::Tcp(address)) => *address,
        other => panic!("{other:?}"),
    }
}

fn connect(running: &Running) -> Client<TcpStream> {
    Client::new(TcpStream::connect(address(running)).expect("it listens there"))
}

/// A page that never comes.
async fn never(_: Request) -> Reply {
    pending().await
}

/// A client that has asked for a page, when that has begun.
fn ask_for(path: &str, running: &Running) -> Client<TcpStream> {
    ask("GET", path, running)
}

fn ask(method: &str, path: &str, running: &Running) -> Client<TcpStream> {
    let mut client = connect(running);
    client.send(request(path, "").replacen("GET", method, 1));
    until("it has begun", || {
        let stats = running.network().stats();
        stats
            .iter()
            .any(|stage| stage.name.starts_with("route ") && stage.in_service == 1)
    });
    client
}

#[test]
fn a_page_that_never_arrives_does_not_delay_shutdown() {
    let runtime = runtime();
    let site = Site::new();
    let web = Web::new(config(&site)).route("/never", never);
    let running = runtime.block_on(web.start()).expect("it starts");
    let mut client = ask_for("/never", &running);
    let stopped = runtime.block_on(running.stop());
    assert_eq!(stopped.cut, 1);
    assert!(matches!(client.next(), Err(End::Between)));
}

#[test]
fn requests_cut_in_an_old_configuration_are_counted() {
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    let site = Site::new();
    let web = Web::new(config(&site)).route("/never", never);
    let mut running = runtime.block_on(web.start()).expect("it starts");
    let mut old = ask_for("/never", &running);
    let config = config(&site);
    let stopped = runtime.block_on(async move {
        // The only worker goes from one to the other at once.
        let stopping = tussah::spawn(async move {
            running.reload(config).await.expect("nothing is in the way");
            running.stop().await
        });
        stopping.await.expect("it does not panic")
    });
    assert_eq!(stopped.cut, 1);
    assert!(matches!(old.next(), Err(End::Between)));
}

/// Connects N times while the only worker accepts nothing, and sends a request on each.
fn connect_unseen(running: &Running, socket: &Path) -> Vec<Box<dyn Unseen>> {
    let asking = request("/a.txt", "");
    let mut clients: Vec<Box<dyn Unseen>> = Vec::new();
    for _ in 0..20 {
        let mut tcp = connect(running);
        tcp.send(&asking);
        clients.push(Box::new(tcp));
        let mut unix = Client::new(UnixStream::connect(socket).expect("it listens there"));
        unix.send(&asking);
        clients.push(Box::new(unix));
    }
    clients
}

/// A client that has asked.
trait Unseen: Send {
    fn answer(&mut self) -> Answer;
}

impl<S: Socket + Send> Unseen for Client<S> {
    #[track_caller]
    fn answer(&mut self) -> Answer {
        Client::answer(self)
    }
}

#[test]
fn clients_connected_before_shutdown_are_answered() {
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    let site = Site::new();
    let socket = site.path("web.sock");
    let mut config = config(&site);
    config.listen.push(ListenAddress::Unix(socket.clone()));
    config.drain = PATIENCE;
    let (address, clients, stopped) = runtime.block_on(async move {
        let running = Web::new(config).start().await.expect("it starts");
        // In one event of the only worker, up to where it waits for the end.
        let stopping = tussah::spawn(async move {
            let clients = connect_unseen(&running, &socket);
            (address(&running), clients, running.stop().await)
        });
        stopping.await.expect("it does not panic")
    });
    for mut client in clients {
        // Whether it says that the connection ends depends on how far the end has come.
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(stopped.cut, 0);
    // A child that another test is about to start has the listener a little longer.
    until("nobody listens", || TcpStream::connect(address).is_err());
}

#[test]
fn clients_connected_before_a_listener_closes_are_answered() {
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    let site = Site::new();
    let socket = site.path("web.sock");
    let mut config = config(&site);
    config.listen.push(ListenAddress::Unix(socket.clone()));
    let stopped = runtime.block_on(async move {
        let mut running = Web::new(config.clone()).start().await.expect("it starts");
        config.listen = vec![ListenAddress::Unix(socket.with_extension("other"))];
        let reloading = tussah::spawn(async move {
            let clients = connect_unseen(&running, &socket);
            running.reload(config).await.expect("the socket is free");
            let asking = tussah::spawn_blocking(move || {
                for mut client in clients {
                    assert_eq!(client.answer().status, 200);
                }
            });
            asking.await.expect("all are answered");
            running.stop().await
        });
        reloading.await.expect("it does not panic")
    });
    assert_eq!(stopped.cut, 0);
}

#[test]
fn an_answer_that_nobody_takes_is_in_the_log() {
    let runtime = runtime();
    let site = Site::new();
    let log = site.path("log");
    let mut config = config(&site);
    config.log.file = Some(LogFile::Path(log.clone()));
    let gone = Arc::new(Notify::new());
    let late = {
        let gone = Arc::clone(&gone);
        move |_| {
            let gone = Arc::clone(&gone);
            async move {
                gone.notified().await;
                Reply::text("too late")
            }
        }
    };
    let web = Web::new(config).route("/late", late);
    let running = runtime.block_on(web.start()).expect("it starts");
    ask("POST", "/late", &running).vanish();
    gone.notify_one();
    until("its connection has ended", || running.connections() == 0);
    runtime.block_on(running.stop());
    let log = std::fs::read_to_string(log).expect("it is there");
    assert!(log.contains("\"POST /late HTTP/1.1\" 200 -"), "{log:?}");
}

/// Panics when it is dropped, after it has answered.
struct Bomb(Ready<Reply>);

impl Future for Bomb {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("in a destructor, on purpose");
    }
}

#[test]
fn a_handler_whose_destructor_panics_has_answered() {
    let runtime = runtime();
    let site = Site::new();
    let web = Web::new(config(&site)).route("/bomb", |_| Bomb(ready(Reply::text("answered"))));
    let running = runtime.block_on(web.start()).expect("it starts");
    let mut client = connect(&running);
    for _ in 0..20 {
        assert_eq!(client.ask(&request("/bomb", "")).text(), "answered");
        assert_eq!(client.ask(&request("/a.txt", "")).text(), "hello\n");
    }
    drop(client);
    until("no connection is left", || running.connections() == 0);
    runtime.block_on(running.stop());
}

#[test]
fn nothing_is_left_of_a_server_that_was_stopped_or_dropped() {
    let runtime = runtime();
    for stops in [true, false] {
        let site = Site::new();
        let held = Arc::new(());
        let route = {
            let held = Arc::clone(&held);
            move |_| {
                let held = Arc::clone(&held);
                async move {
                    drop(held);
                    Reply::text("there")
                }
            }
        };
        let web = Web::new(config(&site)).route("/there", route);
        let running = runtime.block_on(web.start()).expect("it starts");
        let mut client = connect(&running);
        assert_eq!(client.ask(&request("/there", "")).text(), "there");
        assert_eq!(client.ask(&request("/a.txt", "")).text(), "hello\n");
        if stops {
            assert_eq!(runtime.block_on(running.stop()).cut, 0);
        } else {
            drop(running);
        }
        client.expect_end();
        until(&format!("its routes are gone, stopped: {stops}"), || {
            Arc::strong_count(&held) == 1
        });
    }
}

#[test]
fn large_replies_come_whole_and_their_connections_go_on() {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let runtime = runtime();
    let site = Site::new();
    let large = |_| {
        MADE.fetch_add(1, Ordering::Relaxed);
        ready(Reply::text("x".repeat(4_000_000)))
    };
    let web = Web::new(config(&site)).route("/large", large);
    let running = runtime.block_on(web.start()).expect("it starts");
    let mut clients: Vec<_> = (0..50).map(|_| connect(&running)).collect();
    for client in &mut clients {
        client.send(request("/large", ""));
    }
    until("all are made", || MADE.load(Ordering::Relaxed) == 50);
    for client in &mut clients {
        assert_eq!(client.answer().body.len(), 4_000_000);
        assert_eq!(client.ask(&request("/a.txt", "")).text(), "hello\n");
    }
    runtime.block_on(running.stop());
}

#[test]
fn a_reload_keeps_what_the_server_has_learned() {
    let runtime = runtime();
    let site = Site::new();
    let mut config = config(&site);
    config.target = Duration::from_millis(20);
    let slow = async |_| {
        tussah::time::sleep(Duration::from_millis(20)).await;
        Reply::text("slow")
    };
    let web = Web::new(config.clone()).route("/slow", slow);
    let mut running = runtime.block_on(web.start()).expect("it starts");
    let target = |running: &Running| {
        let stats = running.network().stats();
        let route = stats
            .into_iter()
            .find(|stage| &*stage.name == "route /slow");
        route.expect("it is there").target
    };
    assert_eq!(target(&running), Some(config.target));
    let mut client = connect(&running);
    until(
        "the server knows that the page takes as long as the target",
        || {
            client.ask(&request("/slow", ""));
            target(&running) > Some(config.target)
        },
    );
    runtime
        .block_on(running.reload(config.clone()))
        .expect("nothing is in the way");
    until("the new configuration knows it, too", || {
        target(&running) > Some(config.target)
    });
    assert!(runtime.block_on(running.stop()).cut <= 1);
}
