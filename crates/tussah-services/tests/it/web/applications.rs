//! FastCGI applications beside nginx, and with settings of their own.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::iter;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tussah::Runtime;
use tussah_services::fastcgi::Address;
use tussah_services::web::Web;
use tussah_services::web::config::{FastCgi, FastCgiPaths, ListenAddress};

use super::client::{Answer, Client, request};
use super::server::{Site, bytes};
use crate::fastcgi::php::{Php, wait_for};

/// Writes everything that a script sees of its request, except what has to differ.
const SEEN: &str = "<?php
$names = ['REQUEST_TIME', 'REQUEST_TIME_FLOAT', 'REMOTE_PORT', 'REMOTE_USER', 'SERVER_PORT', 'SERVER_SOFTWARE'];
foreach ($names as $name) unset($_SERVER[$name]);
foreach ($_FILES as &$file) { $file['md5'] = md5_file($file['tmp_name']); unset($file['tmp_name']); }
ksort($_SERVER);
var_export([$_SERVER, $_GET, $_POST, $_COOKIE, $_FILES]);
echo file_get_contents('php://input');";

/// A process that ends with the test.
struct Process(Child);

impl Process {
    fn start(command: &mut Command, package: &str) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::null()).spawn();
        let started = child.map(Self);
        started
            .unwrap_or_else(|_| panic!("it is not installed; on Debian: apt-get install {package}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts nginx, with the configuration that its package recommends for PHP and further rules.
fn start_nginx(directory: &Path, root: &Path, php: &Address, rules: &str) -> (Process, SocketAddr) {
    // Another test may take the port first.
    let started = (0..10).find_map(|_| try_nginx(directory, root, php, rules));
    started.expect("nginx starts; its log says why it does not")
}

/// The same at a port that was free a moment ago. nginx ends if it is not.
fn try_nginx(
    directory: &Path,
    root: &Path,
    php: &Address,
    rules: &str,
) -> Option<(Process, SocketAddr)> {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("it is bound");
    drop(free);
    let (place, root) = (directory.display(), root.display());
    let config = format!(
        "daemon off; master_process off; pid {place}/pid; error_log {place}/log;
events {{}}
http {{
    access_log off; client_body_temp_path {place}/body; fastcgi_temp_path {place}/fastcgi;
    proxy_temp_path {place}/proxy; uwsgi_temp_path {place}/uwsgi; scgi_temp_path {place}/scgi;
    server {{
        listen {address}; server_name example.org; root {root}; client_max_body_size 8m;
        {rules}
        location ~ \\.php(/|$) {{
            fastcgi_split_path_info ^(.+\\.php)(/.+)$;
            include /etc/nginx/fastcgi.conf;
            fastcgi_param PATH_INFO $fastcgi_path_info;
            fastcgi_pass {php};
        }}
    }}
}}"
    );
    let file = directory.join("nginx.conf");
    fs::write(&file, config).expect("a file");
    let mut command = Command::new("/usr/sbin/nginx");
    let mut nginx = Process::start(command.arg("-c").arg(file), "nginx-light");
    // It writes the file of its number when it listens.
    let pid = directory.join("pid");
    let listens = wait_for("nginx", || {
        let has_ended = nginx.0.try_wait().expect("it is ours").is_some();
        let listens = fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'));
        (has_ended || listens).then_some(listens && !has_ended)
    });
    listens.then_some((nginx, address))
}

fn requests() -> Vec<Vec<u8>> {
    let get = |path: &str, lines: &[u8]| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: example.org\r\n");
        [head.as_bytes(), lines, b"\r\n"].concat()
    };
    let post = |path: &str, kind: &str, body: &[u8]| {
        let len = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: example.org\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    };
    let form = b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n\
        --x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"\xc3\xa9.bin\"\r\n\r\n";
    let form = [form, &bytes(200_000)[..], b"\r\n--x--\r\n"].concat();
    let mut all = vec![
        get("/seen.php", b""),
        get("/seen.php?a=b&c[]=d&c[]=%20e&%C3%A9=1", b""),
        get("/seen.php/path/info?x", b""),
        get("/seen.php/%C3%A9%20%3F", b""),
        get("/./x/../seen.php//a//b", b""),
        get("/seen%2Ephp?%2F", b""),
        get("/seen.php?", b""),
        get("/seen.php", b"Cookie: a=b; c=%20d\r\n"),
        get("/seen.php", b"X-Bytes: \xff\xfe\x80\r\nX-Tab: a\tb\r\n"),
        get("/seen.php", b"X_Under: a\r\nX-Empty:\r\n"),
        get("/seen.php", b"Authorization: Basic YTpi\r\n"),
        get(
            "/seen.php",
            b"Accept: */*\r\nAccept-Language: de\r\nReferer: http://a/?b\r\n",
        ),
        post(
            "/seen.php?q=1",
            "application/x-www-form-urlencoded",
            b"a=b&c[d]=e+f&g=%FF",
        ),
        post("/seen.php", "application/json", b"{\"a\": 1}"),
        post("/seen.php", "application/octet-stream", b""),
        post("/seen.php", "application/octet-stream", &bytes(300_000)),
        post("/seen.php", "multipart/form-data; boundary=x", &form),
    ];
    for path in ["/front/", "/front/?a=b", "/front", "/both/", "/front/a.txt"] {
        all.push(get(path, b""));
    }
    all.push(post("/front/?a=b", "text/plain", &bytes(100_000)));
    all.push(post("/front/", "multipart/form-data; boundary=x", &form));
    all
}

/// Requests for paths without a file.
fn lost_requests() -> Vec<Vec<u8>> {
    let head = |method: &str, path: &str, lines: &str| {
        format!("{method} {path} HTTP/1.1\r\nHost: example.org\r\n{lines}\r\n").into_bytes()
    };
    let paths = ["/wiki/a%20b?c=d&e", "/feed.xml", "/front/none/", "/%C3%A9"];
    let mut all: Vec<_> = paths.map(|path| head("GET", path, "")).into();
    let form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n";
    for method in ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"] {
        all.push([&head(method, "/api/x?y", form), &b"a=b"[..]].concat());
    }
    all.push(head("OPTIONS", "/api/x", "Origin: a\r\n"));
    all
}

/// Compares what scripts see of requests with what they see behind nginx.
#[track_caller]
fn compare(fallback: Option<&str>, rules: &str, requests: &[Vec<u8>]) {
    let php = Php::start();
    let address = php.address();
    let site = Site::new().file("seen.php", SEEN);
    let site = site.file("front/index.php", SEEN).file("front/a.txt", "a");
    let site = site
        .file("both/index.html", "b")
        .file("both/index.php", SEEN);
    let site = site.with(|config| {
        config.php = Some(address);
        config.limits.body_bytes = 8 << 20;
        config.site.index = vec!["index.html".into(), "index.php".into()];
        config.site.fallback = fallback.map(str::to_owned);
    });
    let server = site.start();
    let root = server.site.directory.path();
    let root = root.canonicalize().expect("it is there");
    let rules = format!("index index.html index.php; {rules}");
    let (_nginx, other) = start_nginx(php.directory.path(), &root, &php.address(), &rules);
    let mut differences = String::new();
    for text in requests {
        let ask = |address| Client::connect(address).ask(text);
        let (ours, theirs): (Answer, Answer) = (ask(server.address), ask(other));
        let line = String::from_utf8_lossy(&text[..text.len().min(100)]).into_owned();
        let lines = |answer: &Answer| -> Vec<String> {
            let lines = answer.body.split(|&byte| byte == b'\n');
            let lines = lines.map(|line| line.escape_ascii().to_string());
            iter::once(answer.status.to_string()).chain(lines).collect()
        };
        let (mut ours, mut theirs) = (lines(&ours), lines(&theirs));
        if ours[0] != "200" {
            // The text of an error is the server's own.
            ours.truncate(1);
            theirs.truncate(1);
        }
        if ours != theirs {
            let (less, more) = (ours.clone(), theirs.clone());
            ours.retain(|line| !more.contains(line));
            theirs.retain(|line| !less.contains(line));
            writeln!(differences, "{line}: {ours:?}, nginx: {theirs:?}")
                .expect("a string takes all");
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn a_script_sees_the_same_as_behind_nginx() {
    let mut requests = requests();
    requests.push(request("GET", "/none.php", "").into());
    requests.push(request("GET", "/none/", "").into());
    compare(None, "", &requests);
}

#[test]
fn a_front_controller_sees_the_same_as_behind_nginx() {
    let rules = "location / { try_files $uri $uri/ /seen.php?$args; }";
    let requests = [requests(), lost_requests()].concat();
    compare(Some("/seen.php"), rules, &requests);
}

/// nginx passes on the last one only, before version 1.23.
#[test]
fn fields_that_occur_twice_are_joined() {
    let php = Php::start();
    let address = php.address();
    let site = Site::new().file("seen.php", SEEN);
    let server = site.with(|config| config.php = Some(address)).start();
    let lines = "Cookie: a=b\r\nCookie: c=d\r\nX-Twice: a\r\nX-Twice: b\r\n";
    let answer = server.get("/seen.php", lines);
    for expected in [
        "'HTTP_COOKIE' => 'a=b; c=d'",
        "'HTTP_X_TWICE' => 'a, b'",
        "'c' => 'd'",
    ] {
        assert!(answer.text().contains(expected), "{}", answer.text());
    }
}

#[test]
fn a_shell_script_behind_fcgiwrap() {
    let directory = TempDir::new().expect("there is room for a directory");
    let socket = directory.path().join("wrap.sock");
    let mut command = Command::new("/usr/sbin/fcgiwrap");
    let _wrap = Process::start(
        command.arg("-s").arg(format!("unix:{}", socket.display())),
        "fcgiwrap",
    );
    wait_for("fcgiwrap", || UnixStream::connect(&socket).ok());
    let script = "#!/bin/sh
echo 'Status: 201 Made'
echo 'Content-Type: text/plain'
echo
echo \"$REQUEST_METHOD $PATH_INFO $QUERY_STRING\"
echo 'to the log' >&2
# fcgiwrap does not read the output before the script has read its input.
cat > body
cat body";
    let site = Site::new().file("a.cgi", script).with(|config| {
        config.fastcgi = vec![FastCgi {
            paths: FastCgiPaths::Suffix(".cgi".into()),
            ..FastCgi::new(Address::Unix(socket))
        }];
    });
    let executable = Permissions::from_mode(0o755);
    fs::set_permissions(site.path("a.cgi"), executable).expect("a file");
    let server = site.start();
    let body = bytes(500_000);
    for _ in 0..3 {
        let head = request(
            "POST",
            "/a.cgi/x?y",
            &format!("Content-Length: {}\r\n", body.len()),
        );
        let answer = server.ask([head.as_bytes(), &body].concat());
        assert_eq!(answer.status, 201, "{}", answer.head);
        assert_eq!(answer.body, [&b"POST /x y\n"[..], &body].concat());
    }
}

/// One script answers all paths beneath a prefix, as a framework does.
#[test]
fn an_application_for_a_prefix() {
    let php = Php::start();
    let code = "foreach (['SCRIPT_NAME', 'PATH_INFO', 'APP_ENV', 'HTTP_HOST'] as $name) echo $_SERVER[$name], ' ';";
    let front = php.script("front.php", code);
    let params = [
        ("SCRIPT_FILENAME", &*front),
        ("APP_ENV", "a test"),
        ("HTTP_HOST", "b"),
    ];
    let params = params.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let application = FastCgi {
        paths: FastCgiPaths::Prefix("/app/".into()),
        params: params.into(),
        ..FastCgi::new(php.address())
    };
    let site = Site::new()
        .file("app/page.txt", "a file")
        .file("a.txt", "a file");
    let server = site
        .with(|config| config.fastcgi = vec![application])
        .start();
    for (path, info) in [
        ("/app/", "/"),
        ("/app/page.txt", "/page.txt"),
        ("/app/a/b?c", "/a/b"),
    ] {
        let answer = server.get(path, "");
        assert_eq!(answer.text(), format!("/app {info} a test b "), "{path}");
    }
    assert_eq!(server.get("/a.txt", "").text(), "a file");
}

#[test]
fn scripts_without_path_info() {
    let php = Php::start();
    let application = FastCgi {
        path_info: false,
        ..FastCgi::new(php.address())
    };
    let site = Site::new().file("a.php", "<?php echo 'a';");
    let server = site
        .with(|config| config.fastcgi = vec![application])
        .start();
    assert_eq!(server.get("/a.php", "").text(), "a");
    assert_eq!(server.get("/a.php/b", "").status, 404);
}

#[test]
fn applications_with_the_same_address_and_limits_share_a_pool() {
    let php = Php::start();
    let front = php.script("front.php", "echo 'front';");
    let other = FastCgi {
        paths: FastCgiPaths::Prefix("/app/".into()),
        params: vec![("SCRIPT_FILENAME".into(), front)],
        ..FastCgi::new(php.address())
    };
    let site = Site::new().file("a.php", "<?php echo 'a';");
    let server = site
        .with(|config| config.fastcgi = vec![FastCgi::new(php.address()), other])
        .start();
    assert_eq!(server.get("/a.php", "").text(), "a");
    assert_eq!(server.get("/app/", "").text(), "front");
    let page = server.get("/status?format=json", "");
    let page: serde_json::Value = serde_json::from_slice(&page.body).expect("it is JSON");
    assert_eq!(page["limits"][0]["acquired"].as_u64(), Some(2));
}

#[test]
fn a_reload_keeps_the_pools_of_unchanged_applications() {
    let php = Php::start();
    let site = Site::new().file("a.php", "<?php echo getmypid();");
    let mut config = site.config.clone();
    config.php = Some(php.address());
    let acquired = |address| {
        let page = Client::connect(address).get("/status?format=json", "");
        let page: serde_json::Value = serde_json::from_slice(&page.body).expect("it is JSON");
        page["limits"][0]["acquired"].as_u64().expect("a limit")
    };
    let asked = move |address: SocketAddr| async move {
        let ask = move || {
            assert_eq!(Client::connect(address).get("/a.php", "").status, 200);
            acquired(address)
        };
        tussah::spawn_blocking(ask).await.expect("no panic")
    };
    let runtime = Runtime::builder().workers(2).build().expect("a runtime");
    runtime.block_on(async {
        let mut running = Web::new(config.clone()).start().await.expect("it starts");
        let Some(ListenAddress::Tcp(address)) = running.addresses().next().cloned() else {
            panic!("it listens on TCP");
        };
        assert_eq!(asked(address).await, 1);
        config.server_header = None;
        // The same by the long form.
        config.fastcgi.extend(config.php.take().map(FastCgi::new));
        running.reload(config.clone()).await.expect("a reload");
        assert_eq!(asked(address).await, 2);
        config.fastcgi[0].options.waiting = 7;
        running.reload(config).await.expect("a reload");
        assert_eq!(asked(address).await, 1, "other limits need another pool");
        running.stop().await;
    });
}
