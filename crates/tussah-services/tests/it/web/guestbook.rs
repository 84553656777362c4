//! The example `guestbook`, a PHP application with a front controller, sessions and uploads.

use std::fs;
use std::path::Path;

use super::client::{Answer, Client, request};
use super::server::{Server, Site};
use crate::fastcgi::php::Php;
use tussah_services::web::config::FastCgi;

/// The smallest picture: one transparent pixel.
const GIF: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// A visitor, with a connection and a session.
struct Visitor {
    client: Client,
    cookie: String,
}

impl Visitor {
    fn new(server: &Server) -> Self {
        Self {
            client: server.connect(),
            cookie: String::new(),
        }
    }

    fn get(&mut self, path: &str) -> Answer {
        let answer = self.client.get(path, &self.cookie);
        if let Some(cookie) = answer.field("Set-Cookie") {
            let pair = cookie.split(';').next().expect("a pair");
            self.cookie = format!("Cookie: {pair}\r\n");
        }
        answer
    }

    /// Returns the token of the form.
    fn token(&mut self) -> String {
        let page = self.get("/");
        let (_, rest) = page
            .text()
            .split_once("name=\"token\" value=\"")
            .expect("a form");
        rest.split('"').next().expect("a token").to_owned()
    }

    /// Sends the form, with a file if it is not empty.
    fn sign(&mut self, token: &str, text: &str, file: &[u8]) -> Answer {
        let mut body = Vec::new();
        for (name, value) in [("token", token), ("name", "A <b> c"), ("text", text)] {
            let part = format!(
                "--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            );
            body.extend(part.into_bytes());
        }
        if !file.is_empty() {
            body.extend(b"--x\r\nContent-Disposition: form-data; name=\"picture\"; filename=\"../a.php\"\r\n\r\n");
            body.extend(file);
            body.extend(b"\r\n");
        }
        body.extend(b"--x--\r\n");
        let lines = format!(
            "{}Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {}\r\n",
            self.cookie,
            body.len()
        );
        let head = request("POST", "/entries", &lines);
        self.client.ask([head.as_bytes(), &body].concat())
    }
}

fn start(php: &Php, data: &Path) -> Server {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/guestbook/public");
    let data = data.to_str().expect("it is UTF-8").to_owned();
    let site = Site::new().with(|config| {
        config.root = root;
        config.site.index = vec!["index.php".into()];
        config.site.fallback = Some("/index.php".into());
        config.limits.body_bytes = 8 << 20;
        config.fastcgi = vec![FastCgi {
            params: vec![("GUESTBOOK_DATA".into(), data)],
            ..FastCgi::new(php.address())
        }];
    });
    site.start()
}

#[test]
fn a_visitor_signs_the_book() {
    let php = Php::start();
    let data = php.directory.path().join("data");
    let server = start(&php, &data);
    let (mut ann, mut bob) = (Visitor::new(&server), Visitor::new(&server));
    let (token, other) = (ann.token(), bob.token());
    assert_ne!(token, other, "each visitor has a session");
    // The picture is long enough to be streamed.
    let picture = [GIF, &vec![0; 3 << 20]].concat();
    let answer = ann.sign(&token, "first & <i>", &picture);
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert_eq!(answer.expect_field("Location"), "/");
    let page = ann.get("/");
    let text = page.text();
    for expected in [
        "Thank you, A &lt;b&gt; c.",
        "<p>first &amp; &lt;i&gt;</p>",
        "value=\"A &lt;b&gt; c\"",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!ann.get("/").text().contains("Thank you"), "once");
    let page = bob.get("/?page=1");
    let (_, rest) = page.text().split_once("src=\"").expect("a picture");
    let path = rest.split('"').next().expect("a path").to_owned();
    let shown = bob.get(&path);
    assert_eq!((shown.status, shown.body), (200, picture));
    assert_eq!(
        bob.get("/style.css").expect_field("Content-Type"),
        "text/css; charset=utf-8"
    );
    assert!(
        !fs::read_dir(data.join("pictures"))
            .expect("a directory")
            .any(|file| {
                file.expect("a file")
                    .path()
                    .extension()
                    .is_some_and(|end| end == "php")
            })
    );
}

#[test]
fn what_the_guest_book_refuses() {
    let php = Php::start();
    let server = start(&php, &php.directory.path().join("data"));
    let mut visitor = Visitor::new(&server);
    let token = visitor.token();
    assert_eq!(visitor.sign("another", "text", b"").status, 403);
    assert_eq!(visitor.sign(&token, "", b"").status, 422);
    assert_eq!(
        visitor
            .sign(&token, "text", b"<?php echo 'no picture';")
            .status,
        422
    );
    for (path, status) in [
        ("/nothing", 404),
        ("/pictures/../index.php", 404),
        ("/none.php", 404),
        ("/entries", 405),
    ] {
        let answer = visitor.get(path);
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.text().contains("To the guest book"), "{path}");
        let allow = answer.field("Allow");
        assert_eq!(
            allow.as_deref(),
            (status == 405).then_some("POST"),
            "{path}"
        );
    }
    assert!(!visitor.get("/").text().contains("<article>"));
}
