//! Pages that php-fpm makes.

use super::server::{Server, Site};
use crate::fastcgi::php::Php;

const ECHO: &str = "<?php
header('X-Method: ' . $_SERVER['REQUEST_METHOD']);
setcookie('a', '1');
setcookie('b', '2');
echo json_encode($_SERVER), \"\\n\", file_get_contents('php://input');";

fn start(php: &Php) -> Server {
    let address = php.address();
    let site = Site::new()
        .file("echo.php", ECHO)
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

/// php-fpm discards the output, so the length that it has for GET is unknown.
#[test]
fn a_response_to_head_has_no_wrong_length() {
    let php = Php::start();
    let server = start(&php);
    let answer = server.ask("HEAD /echo.php HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(answer.status, 200, "{}", answer.head);
    assert!(answer.head.contains("X-Method: HEAD"), "{}", answer.head);
    assert!(!answer.head.contains("Content-Length"), "{}", answer.head);
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
