//! Clients that send to scripts slowly, or read from them slowly.

use std::fs;

use serde_json::Value;
use tussah_services::fastcgi::Options;
use tussah_services::web::config::FastCgi;

use super::client::{Client, request};
use super::server::{Server, Site, assert_same, bytes};
use crate::fastcgi::php::{CHILDREN, Php, wait_for};

/// More than the pool has connections.
const CLIENTS: usize = CHILDREN + 1;

const UPLOAD: usize = 300_000;

/// More than what the system buffers for a client that does not read.
const LONG: usize = 16 << 20;

fn site(php: &Php, buffering: bool) -> Site {
    let connections = CHILDREN;
    let application = FastCgi {
        buffering,
        options: Options {
            connections,
            ..Options::default()
        },
        ..FastCgi::new(php.address())
    };
    let site = Site::new()
        .file("long", bytes(LONG))
        .file("long.php", "<?php readfile(__DIR__ . '/long');")
        .file("echo.php", "<?php readfile('php://input');")
        .file("short.php", "<?php echo 'short';");
    site.with(|config| {
        config.fastcgi = vec![application];
        config.limits.body_bytes = 64 << 20;
    })
}

fn start(php: &Php, buffering: bool) -> Server {
    site(php, buffering).start()
}

fn status(server: &Server) -> Value {
    let page = server.get("/status?format=json", "");
    serde_json::from_slice(&page.body).expect("it is JSON")
}

fn in_use(server: &Server) -> u64 {
    let page = status(server);
    page["limits"][0]["in_use"].as_u64().expect("a limit")
}

/// Returns a number of the stage of the scripts.
fn of_stage(server: &Server, name: &str) -> usize {
    let page = status(server);
    let mut stages = page["stages"].as_array().expect("a list").iter();
    let stage = stages.find(|stage| stage["name"] == "fastcgi *.php");
    let number = stage.and_then(|stage| stage[name].as_u64());
    number.expect("the stage has this number") as usize
}

/// Waits until the stage of the scripts has received this many requests.
fn wait_for_requests(server: &Server, count: usize) {
    wait_for("the requests", || {
        (of_stage(server, "arrived") >= count).then_some(())
    });
}

/// Begins uploads whose last byte is missing.
fn begin_uploads(server: &Server, count: usize) -> Vec<Client> {
    let lines = format!("Content-Length: {UPLOAD}\r\n");
    let head = request("PUT", "/echo.php", &lines);
    let begin = |_| {
        let mut client = server.connect();
        client.send([head.as_bytes(), &bytes(UPLOAD)[..UPLOAD - 1]].concat());
        client
    };
    (0..count).map(begin).collect()
}

fn end_upload(client: &mut Client) {
    client.send(&bytes(UPLOAD)[UPLOAD - 1..]);
    assert_same(&client.answer().body, &bytes(UPLOAD));
}

#[test]
fn slow_uploads_leave_the_application_to_others() {
    let php = Php::start();
    let server = start(&php, true);
    let mut clients = begin_uploads(&server, CLIENTS);
    wait_for_requests(&server, CLIENTS);
    assert_eq!(server.get("/short.php", "").text(), "short");
    wait_for("the end of the script", || {
        (in_use(&server) == 0).then_some(())
    });
    clients.iter_mut().for_each(end_upload);
}

/// The stage has learned from short requests how few it serves at the same time. Uploads whose
/// bodies arrive are not among them.
#[test]
fn slow_uploads_leave_the_stage_to_others() {
    let php = Php::start();
    let server = start(&php, true);
    let mut client = server.connect();
    wait_for("a stage with few servlets", || {
        assert_eq!(client.get("/short.php", "").text(), "short");
        (of_stage(&server, "servlets_allowed") < CLIENTS).then_some(())
    });
    let (uploads, before) = (2 * CLIENTS, of_stage(&server, "arrived"));
    let mut clients = begin_uploads(&server, CLIENTS);
    let chunk = format!("{UPLOAD:x}\r\n");
    let head = request("PUT", "/echo.php", "Transfer-Encoding: chunked\r\n");
    let mut chunked: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for client in &mut chunked {
        client.send([head.as_bytes(), chunk.as_bytes(), &bytes(UPLOAD)].concat());
    }
    wait_for_requests(&server, before + uploads);
    assert_eq!(client.get("/short.php", "").text(), "short");
    clients.iter_mut().for_each(end_upload);
    for client in &mut chunked {
        // The request behind the body is answered too.
        client.send(
            [
                b"\r\n0\r\n\r\n",
                request("GET", "/short.php", "").as_bytes(),
            ]
            .concat(),
        );
        assert_same(&client.answer().body, &bytes(UPLOAD));
        assert_eq!(client.answer().text(), "short");
    }
}

/// The stage has learned from short requests that compute most of the time. Scripts that then wait
/// for long do not hold up others while processes are free.
#[test]
fn waiting_scripts_leave_the_stage_to_others() {
    let php = Php::start();
    let go = php.directory.path().join("go");
    let wait = format!(
        "<?php while (!file_exists('{}')) {{ usleep(1000); clearstatcache(); }} echo 'end';",
        go.display()
    );
    let server = site(&php, true).file("wait.php", wait).start();
    let mut client = server.connect();
    let mut few = 0;
    wait_for("a stage that has few servlets for long", || {
        assert_eq!(client.get("/short.php", "").text(), "short");
        let is_few = of_stage(&server, "servlets_allowed") < CHILDREN;
        few = if is_few { few + 1 } else { 0 };
        (few == 30).then_some(())
    });
    let before = of_stage(&server, "arrived");
    let mut others: Vec<_> = (1..CHILDREN).map(|_| server.connect()).collect();
    for client in &mut others {
        client.send(request("GET", "/wait.php", ""));
    }
    wait_for_requests(&server, before + others.len());
    assert_eq!(client.get("/short.php", "").text(), "short");
    fs::write(go, "").expect("a file");
    for client in &mut others {
        assert_eq!(client.answer().text(), "end");
    }
}

#[test]
fn slow_readers_leave_the_application_to_others() {
    let php = Php::start();
    let server = start(&php, true);
    let ask = |_| {
        let mut client = server.connect();
        client.send(request("GET", "/long.php", ""));
        client
    };
    let clients: Vec<_> = (0..CLIENTS).map(ask).collect();
    wait_for_requests(&server, CLIENTS);
    wait_for("the scripts", || (in_use(&server) == 0).then_some(()));
    for mut client in clients {
        assert_same(&client.answer().body, &bytes(LONG));
        assert_eq!(client.get("/short.php", "").text(), "short");
    }
}

#[test]
fn without_buffering_slow_clients_occupy_the_application() {
    let php = Php::start();
    let server = start(&php, false);
    let mut upload = begin_uploads(&server, 1);
    let mut reader = server.connect();
    reader.send(request("GET", "/long.php", ""));
    reader.fill_to(1);
    wait_for("both", || (in_use(&server) == 2).then_some(()));
    end_upload(&mut upload[0]);
    assert_same(&reader.answer().body, &bytes(LONG));
    wait_for("the end of both", || (in_use(&server) == 0).then_some(()));
}

#[test]
fn an_upload_that_breaks_off_frees_its_connection() {
    let php = Php::start();
    for buffering in [true, false] {
        let server = start(&php, buffering);
        for round in 1..=5 {
            let clients = begin_uploads(&server, 1);
            wait_for_requests(&server, round);
            let expected = if buffering { 0 } else { 1 };
            wait_for("the upload", || (in_use(&server) == expected).then_some(()));
            drop(clients);
            wait_for("the end", || (in_use(&server) == 0).then_some(()));
            if buffering {
                // The log has the status 499.
                let cancelled = || status(&server)["cancelled"].as_u64() == Some(round as u64);
                wait_for("the count", || cancelled().then_some(()));
            }
        }
    }
}

/// The file of a response is deleted before anything is written to it, so nothing is left behind.
#[test]
fn a_reader_that_leaves_ends_its_script() {
    let php = Php::start();
    let server = start(&php, true);
    server.site.write(
        "endless.php",
        "<?php
ignore_user_abort(true);
while (!connection_aborted()) { echo str_repeat('x', 8192); flush(); }",
        0,
    );
    for _ in 0..3 {
        let mut client = server.connect();
        client.send(request("GET", "/endless.php", ""));
        client.fill_to(1 << 20);
        assert_eq!(in_use(&server), 1);
        drop(client);
        wait_for("the end", || (in_use(&server) == 0).then_some(()));
    }
}
