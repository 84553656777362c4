//! Pages that php-fpm makes.

use std::fs;

use tussah_services::web::config::CacheKind;

use super::client::{Answer, request};
use super::server::{Server, Site, assert_same, bytes};
use crate::fastcgi::php::{Php, wait_for};

const ECHO: &str = "<?php
header('X-Method: ' . $_SERVER['REQUEST_METHOD']);
setcookie('a', '1');
setcookie('b', '2');
echo json_encode($_SERVER), \"\\n\", file_get_contents('php://input');";

fn start(php: &Php) -> Server {
    let address = php.address();
    let site = Site::new()
        .file("echo.php", ECHO)
        .file(
            "known.php",
            "<?php header('Content-Length: 5'); echo 'known';",
        )
        .file("gone.php", "<?php http_response_code(410); echo 'gone';")
        .file("page.txt", "a file")
        .with(|config| config.php = Some(address));
    site.start()
}

#[test]
fn a_script_receives_its_request() {
    let php = Php::start();
    let server = start(&php);
    let answer = server.ask("GET /echo.php/books/1?x=%20y HTTP/1.1\r\nHost: example.org:81\r\nCookie: c=d\r\nProxy: evil\r\n\r\n");
    assert_eq!(answer.status, 200, "{}", answer.head);
    let text = answer.text();
    let variables: serde_json::Value = serde_json::from_str(text.trim()).expect("it is JSON");
    let root = server
        .site
        .directory
        .path()
        .canonicalize()
        .expect("it is there");
    let root = root.to_str().expect("it is UTF-8");
    let check = |name: &str, expected: &str| assert_eq!(variables[name], expected, "{name}");
    check("SCRIPT_FILENAME", &format!("{root}/echo.php"));
    check("SCRIPT_NAME", "/echo.php");
    check("PATH_INFO", "/books/1");
    check("QUERY_STRING", "x=%20y");
    check("REQUEST_URI", "/echo.php/books/1?x=%20y");
    check("DOCUMENT_ROOT", root);
    check("SERVER_NAME", "example.org");
    check("SERVER_PORT", &server.address.port().to_string());
    check("REMOTE_ADDR", "127.0.0.1");
    check("HTTP_HOST", "example.org:81");
    check("HTTP_COOKIE", "c=d");
    assert!(variables["HTTP_PROXY"].is_null());
    assert_ne!(variables["REMOTE_PORT"], "0");
    assert_eq!(
        answer.head.matches("Set-Cookie:").count(),
        2,
        "{}",
        answer.head
    );
}

#[test]
fn bodies_of_known_and_unknown_length() {
    let php = Php::start();
    let server = start(&php);
    for body in [
        "Content-Length: 5\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    ] {
        let answer = server.ask(format!("POST /echo.php HTTP/1.1\r\nHost: a\r\n{body}"));
        assert_eq!(answer.status, 200, "{}", answer.head);
        assert!(answer.head.contains("X-Method: POST"), "{}", answer.head);
        let text = answer.text();
        assert!(
            text.contains("\"CONTENT_LENGTH\":\"5\"") && text.ends_with("\nhello"),
            "{text}"
        );
    }
}

const COUNT: &str = "<?php
$in = fopen('php://input', 'r');
$len = 0;
$hash = hash_init('md5');
while (strlen($part = fread($in, 65536))) { $len += strlen($part); hash_update($hash, $part); }
echo $_SERVER['CONTENT_LENGTH'], ' ', $len, ' ', hash_final($hash), ' ', md5(file_get_contents(__DIR__ . '/body'));
foreach ($_FILES as $file) echo $file['size'], ' ', md5_file($file['tmp_name']);";

/// Starts a server with a script that compares the body of a request with a file.
fn start_count(php: &Php, body: &[u8]) -> Server {
    let address = php.address();
    let site = Site::new().file("count.php", COUNT).file("body", body);
    let site = site.with(|config| {
        config.php = Some(address);
        config.limits.body_bytes = 64 << 20;
    });
    site.start()
}

#[track_caller]
fn check_count(answer: &Answer, len: usize) {
    assert_eq!(answer.status, 200, "{}", answer.head);
    let words: Vec<_> = answer.text().split(' ').collect();
    assert_eq!(words[..2], [&*len.to_string(), &*len.to_string()]);
    assert_eq!(words[2], words[3], "another body");
}

#[test]
fn long_bodies() {
    let php = Php::start();
    let body = bytes(20 << 20);
    let server = start_count(&php, &body);
    let head = format!("Content-Length: {}\r\nExpect: 100-continue\r\n", body.len());
    let mut client = server.connect();
    for _ in 0..3 {
        client.send(request("PUT", "/count.php", &head));
        assert_eq!(client.answer().status, 100);
        client.send(&body);
        let answer = client.answer();
        check_count(&answer, body.len());
        assert!(!answer.ends(), "{}", answer.head);
    }
    // A client that waits does not send a body that nobody wants.
    client.send(request("PUT", "/none.php", &head));
    assert_eq!(client.answer().status, 404);
    client.expect_end();
    let mut client = server.connect();
    let long = format!(
        "Content-Length: {}\r\nExpect: 100-continue\r\n",
        (64 << 20) + 1
    );
    client.send(request("PUT", "/count.php", &long));
    assert_eq!(client.answer().status, 413);
}

/// The file of a long body has no name, so nothing is left behind.
#[test]
fn a_body_of_unknown_length() {
    let php = Php::start();
    for len in [1, 64 << 10, (64 << 10) + 1, 20 << 20] {
        let body = bytes(len);
        let server = start_count(&php, &body);
        let head = request("PUT", "/count.php", "Transfer-Encoding: chunked\r\n");
        let chunk = [format!("{len:x}\r\n").as_bytes(), &body, b"\r\n"].concat();
        let mut client = server.connect();
        for _ in 0..2 {
            client.send([head.as_bytes(), &chunk, b"0\r\n\r\n"].concat());
            let answer = client.answer();
            check_count(&answer, len);
            assert!(!answer.ends(), "{}", answer.head);
        }
        // The next chunk would exceed the limit.
        client.send([head.as_bytes(), &chunk, b"4000000\r\nx"].concat());
        assert_eq!(client.answer().status, 413);
    }
}

#[test]
fn a_form_with_a_file() {
    let php = Php::start();
    let file = bytes(3 << 20);
    let server = start_count(&php, &file);
    let form = "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n";
    let body = [form.as_bytes(), &file, b"\r\n--x--\r\n"].concat();
    let head = "Content-Type: multipart/form-data; boundary=x\r\n";
    let head = request(
        "POST",
        "/count.php",
        &format!("{head}Content-Length: {}\r\n", body.len()),
    );
    let answer = server.ask([head.as_bytes(), &body].concat());
    let words: Vec<_> = answer.text().split(' ').collect();
    // PHP parses a form by itself, and reports its file after the other words.
    let expected = format!("{}{}", words[3].get(..32).expect("a hash"), file.len());
    assert_eq!(words[3], expected);
    assert_eq!(words[3].get(..32), words.get(4).copied());
}

#[test]
fn the_status_page_shows_the_stage_of_an_application() {
    let php = Php::start();
    let server = start(&php);
    assert_eq!(server.get("/gone.php", "").status, 410);
    let find = |list: &str, name: &str| {
        let page = server.get("/status?format=json", "");
        let page: serde_json::Value = serde_json::from_slice(&page.body).expect("it is JSON");
        let mut all = page[list].as_array().expect("a list").iter();
        let found = all.find(|one| one["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {page}")).clone()
    };
    assert_eq!(find("stages", "fastcgi *.php")["arrived"], 1);
    // The stage counts the time after it has sent the response.
    let has_time = || !find("sources", "*.php")["response_s"].is_null();
    wait_for("the response time", || has_time().then_some(()));
}

/// php-fpm discards the output, so its length for GET is known only if the script states it.
#[test]
fn a_response_to_head_has_no_wrong_length() {
    let php = Php::start();
    let server = start(&php);
    let answer = server.ask("HEAD /echo.php HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(answer.status, 200, "{}", answer.head);
    assert!(answer.head.contains("X-Method: HEAD"), "{}", answer.head);
    assert!(!answer.head.contains("Content-Length"), "{}", answer.head);
    let answer = server.ask("HEAD /known.php HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(answer.expect_field("Content-Length"), "5");
}

#[test]
fn statuses_and_files() {
    let php = Php::start();
    let server = start(&php);
    let check = |path: &str, status, text: &str| {
        let answer = server.get(path, "");
        assert_eq!((answer.status, answer.text()), (status, text), "{path}");
    };
    check("/gone.php", 410, "gone");
    check("/page.txt", 200, "a file");
    // The text of a script is never sent.
    check("/gone.php/", 404, "404 Not Found\n");
    check("/none.php", 404, "404 Not Found\n");
    check("/page.txt/x.php", 404, "404 Not Found\n");
}

const FRONT: &str = "<?php
foreach (['REQUEST_METHOD', 'REQUEST_URI', 'PATH_INFO'] as $name) echo $_SERVER[$name], ' ';
echo file_get_contents('php://input');";

/// A file keeps its rules where a script is the fallback.
#[test]
fn files_beside_a_front_controller() {
    let php = Php::start();
    let address = php.address();
    for kind in [CacheKind::Sharded, CacheKind::None] {
        let site = Site::new().file("index.php", FRONT).file("a.txt", "a file");
        let site = site.with(|config| {
            config.php = Some(address.clone());
            config.site.index = vec!["index.php".into()];
            config.site.fallback = Some("index.php".into());
            config.cache.kind = kind;
        });
        let server = site.start();
        let mut client = server.connect();
        for _ in 0..2 {
            assert_eq!(client.get("/", "").text(), "GET /  ");
            assert_eq!(client.get("/x.html?y", "").text(), "GET /x.html?y  ");
            // The script of another path is the front controller too, without a `PATH_INFO`.
            assert_eq!(client.get("/none.php/x", "").text(), "GET /none.php/x  ");
            assert_eq!(
                client.get("/index.php/x", "").text(),
                "GET /index.php/x /x "
            );
            let lines = "Range: bytes=2-\r\n";
            assert_eq!(client.get("/a.txt", lines).text(), "file");
            let body = "Content-Length: 2\r\n\r\nhi";
            let post = |path| format!("POST {path} HTTP/1.1\r\nHost: a\r\n{body}");
            assert_eq!(client.ask(post("/edit")).text(), "POST /edit  hi");
            let chunked = "PUT /edit HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                2\r\nho\r\n0\r\n\r\n";
            assert_eq!(client.ask(chunked).text(), "PUT /edit  ho");
            let hidden = client.get("/.git/config", "");
            assert_eq!(hidden.status, 404);
            // A file takes no body, which the server does not read.
            let refused = client.ask(post("/a.txt"));
            assert_eq!(refused.status, 405);
            assert_eq!(refused.expect_field("Allow"), "GET, HEAD, OPTIONS");
            assert!(refused.ends(), "{}", refused.head);
            client.expect_end();
            client = server.connect();
        }
    }
}

/// A missing script is found missing without the application, which does not even run.
#[test]
fn an_application_that_does_not_run() {
    let mut php = Php::start();
    let server = start(&php);
    php.kill();
    assert_eq!(server.get("/none.php", "").status, 404);
    assert_eq!(server.get("/gone.php", "").status, 502);
    php.restart();
    assert_eq!(server.get("/gone.php", "").status, 410);
}

/// The script waits in the middle until the test has received the first part.
#[test]
fn a_response_arrives_while_its_script_runs() {
    const PART: usize = 1 << 20;
    let php = Php::start();
    let code = "<?php
$part = str_repeat('x', 1 << 20);
if (isset($_GET['length'])) header('Content-Length: ' . (2 << 20));
echo $part;
flush();
while (!file_exists(__DIR__ . '/go')) { clearstatcache(); usleep(1000); }
echo $part;";
    let site = Site::new().file("slow.php", code);
    let address = php.address();
    let server = site.with(|config| config.php = Some(address)).start();
    let go = server.site.path("go");
    for query in ["", "?length"] {
        let mut client = server.connect();
        client.send(request("GET", &format!("/slow.php{query}"), ""));
        client.fill_to(PART);
        fs::write(&go, "").expect("a file");
        let answer = client.answer();
        assert_same(&answer.body, &vec![b'x'; 2 * PART]);
        let has_len = answer.field("Content-Length").is_some();
        assert_eq!(has_len, !query.is_empty(), "{}", answer.head);
        assert_eq!(client.get("/none", "").status, 404);
        fs::remove_file(&go).expect("a file");
    }
}

#[test]
fn a_client_that_leaves_ends_the_script() {
    let php = Php::start();
    let code = "<?php
ignore_user_abort(true);
while (!connection_aborted()) { echo str_repeat('x', 8192); flush(); }
file_put_contents(__DIR__ . '/aborted', connection_status());";
    let site = Site::new().file("endless.php", code);
    let address = php.address();
    let server = site.with(|config| config.php = Some(address)).start();
    for method in ["GET", "POST"] {
        let mut client = server.connect();
        client.send(request(method, "/endless.php", ""));
        client.fill_to(1 << 20);
        drop(client);
        let marker = server.site.path("aborted");
        let status = wait_for("the end of the script", || {
            let text = fs::read_to_string(&marker).ok()?;
            (!text.is_empty()).then_some(text)
        });
        assert_eq!(status, "1", "CONNECTION_ABORTED");
        fs::remove_file(&marker).expect("a file");
    }
}

/// The response cannot become 502 any more.
#[test]
fn a_script_that_is_killed_ends_the_response_early() {
    let mut php = Php::start();
    let code = "<?php echo str_repeat('x', 100000); flush(); while (true) usleep(1000);";
    let site = Site::new().file("hangs.php", code);
    let address = php.address();
    let server = site.with(|config| config.php = Some(address)).start();
    let mut client = server.connect();
    client.send("GET /hangs.php HTTP/1.0\r\n\r\n");
    client.fill_to(100_000);
    php.kill();
    client.expect_cut();
}
