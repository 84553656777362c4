//! The status page, as a person, a program and Prometheus read it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tussah::stage::Class;
use tussah::sync::Limit;
use tussah_services::web::{Reply, Status};

use super::client::{Answer, Client, request};
use super::server::{Server, Site};

fn start() -> Server {
    let site = Site::new().file("a.txt", "first\n");
    site.start_with(|web| {
        web.route("/made/*", async |_| Reply::text("made"))
            .route("/\"<&", async |_| Reply::text("odd"))
            .route("/fails", async |request| match request.query().next() {
                None => Reply::status(Status::INTERNAL_SERVER_ERROR),
                Some(_) => panic!("expected: on purpose"),
            })
    })
}

fn json(client: &mut Client) -> Value {
    let page = client.get("/status?format=json", "");
    assert_eq!(page.expect_field("Content-Type"), "application/json");
    serde_json::from_slice(&page.body).expect("it is JSON")
}

/// The figures of a route, of files or of other requests on a status page.
#[track_caller]
fn source(page: &Value, name: &str) -> Value {
    let sources = page["sources"].as_array().expect("sources");
    let source = sources.iter().find(|source| source["name"] == name);
    source.unwrap_or_else(|| panic!("{name} in {page}")).clone()
}

#[track_caller]
fn expect_codes(page: &Value, name: &str, expected: [u64; 5]) {
    let codes = &source(page, name)["responses"];
    let found = ["1xx", "2xx", "3xx", "4xx", "5xx"].map(|class| codes[class].as_u64());
    assert_eq!(found, expected.map(Some), "{name}");
}

/// Asks for some pages, and gives the bytes that came for `/made/*`.
fn ask_for_some(client: &mut Client) -> usize {
    let mut made = 0;
    for path in ["/made/a", "/made/b", "/made/b"] {
        let Answer { head, body, .. } = client.get(path, "");
        made += head.len() + body.len();
    }
    client.get("/fails", "");
    client.get("/fails?panics", "");
    client.get("/a.txt", "");
    client.get("/a.txt", "If-None-Match: *\r\n");
    client.get("/none", "");
    client.ask(request("DELETE", "/a.txt", ""));
    made
}

#[test]
fn each_route_has_its_counts() {
    let server = start();
    let mut client = server.connect();
    let mut idle = server.connect();
    idle.get("/a.txt", "");
    // It is idle when its response has been counted.
    while json(&mut client)["connections"]["idle"] == 0 {}
    let made = ask_for_some(&mut client);
    let page = json(&mut client);
    expect_codes(&page, "/made/*", [0, 3, 0, 0, 0]);
    expect_codes(&page, "/fails", [0, 0, 0, 0, 2]);
    expect_codes(&page, "files", [0, 2, 1, 1, 0]);
    assert_eq!(source(&page, "other")["responses"]["4xx"], 1);
    let of_made = source(&page, "/made/*");
    assert_eq!(of_made["bytes_sent"], made);
    assert_eq!(
        (&of_made["queued"], &of_made["in_service"]),
        (&0.into(), &0.into())
    );
    assert_eq!(of_made["rejected"]["overload"], 0);
    assert!(of_made["recent"]["per_second"].as_f64() > Some(0.0));
    for times in [&of_made["response_s"], &of_made["recent"]["response_s"]] {
        let [p50, p90, p99] = ["p50", "p90", "p99"].map(|p| times[p].as_f64());
        assert!(Some(0.0) < p50 && p50 <= p90 && p90 <= p99, "{times}");
    }
    assert_eq!(source(&page, "other")["response_s"], Value::Null);
    assert_eq!(page["version"], env!("CARGO_PKG_VERSION"));
    let connections = &page["connections"];
    assert_eq!(connections["open"], 2);
    assert_eq!(connections["idle"], 1);
    assert_eq!(connections["limit"], 20_000);
    let cache = &page["cache"];
    assert_eq!(
        (&cache["requests"], &cache["missed"]),
        (&4.into(), &2.into())
    );
    assert_eq!(cache["hit_ratio"], 0.5);
    // The page counts itself.
    let count = |page: &Value| source(page, "other")["responses"]["2xx"].as_u64();
    assert_eq!(
        count(&json(&mut client)),
        count(&page).map(|count| count + 1)
    );
}

#[test]
fn limits_are_listed() {
    let limit = Limit::with_shares("db \"<1>\"", 1, &[2, 1]);
    let held = limit.try_acquire().expect("it is free");
    let web_limit = limit.clone();
    let server = Site::new().start_with(move |web| {
        let of_route = web_limit.clone();
        let web = web
            .limit(&Limit::new(web_limit.name(), 7))
            .limit(&web_limit);
        web.route("/query", move |_| {
            let limit = of_route.clone();
            async move {
                let _permit = limit.acquire_for(Class(1)).await;
                Reply::text("found")
            }
        })
    });
    let (mut client, mut asking) = (server.connect(), server.connect());
    asking.send(request("GET", "/query", ""));
    let mut of_limit = || {
        let page = json(&mut client);
        let limits = page["limits"].as_array().expect("limits").clone();
        let [limit] = limits.try_into().expect("the later of one name");
        limit
    };
    while of_limit()["waiting"] == 0 {}
    let found = of_limit();
    assert_eq!(found["name"], "db \"<1>\"");
    let now = ["permits", "in_use", "waiting", "acquired"].map(|key| found[key].as_u64());
    assert_eq!(now, [1, 1, 1, 1].map(Some));
    assert_eq!(found["hold_s"], Value::Null);
    let classes = |key: &str| [0, 1].map(|class: usize| found["classes"][class][key].as_u64());
    assert_eq!(classes("in_use"), [1, 0].map(Some));
    assert_eq!(classes("waiting"), [0, 1].map(Some));
    assert_eq!(classes("acquired"), [1, 0].map(Some));
    drop(held);
    assert_eq!(asking.answer().status, 200);
    while of_limit()["in_use"] == 1 {}
    let found = of_limit();
    let now = ["permits", "in_use", "waiting", "acquired"].map(|key| found[key].as_u64());
    assert_eq!(now, [1, 0, 0, 2].map(Some));
    assert!(found["wait_s"]["p99"].as_f64() > Some(0.0), "{found}");
    assert!(found["hold_s"]["p99"].as_f64() > Some(0.0), "{found}");
    let page = client.get("/status?format=html", "");
    let page = String::from_utf8(page.body).expect("text");
    let row = "<tr><th scope=row>db &quot;&lt;1&gt;&quot;<td>0<td>1<td>0<td>2<td>";
    assert!(page.contains(row), "{page}");
    let row = "<tr><th scope=row>class 1<td>0<td><td>0<td>1<td>";
    assert!(page.contains(row), "{page}");
    let page = client.get("/status?format=prometheus", "");
    let page = String::from_utf8(page.body).expect("text");
    for line in [
        r#"tussah_limit_class_acquired_total{limit="db \"<1>\"",class="1"} 1"#,
        r#"tussah_limit_permits{limit="db \"<1>\""} 1"#,
        r#"tussah_limit_acquired_total{limit="db \"<1>\""} 2"#,
        r#"tussah_limit_wait_seconds_count{limit="db \"<1>\""} 2"#,
        r#"tussah_limit_hold_seconds_bucket{limit="db \"<1>\"",le="+Inf"} 2"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in {page}");
    }
}

#[test]
fn recent_figures_expire() {
    let site = Site::new().file("a.txt", "first\n");
    let (server, hand) = site.start_by_hand();
    let mut client = server.connect();
    server.pass(&hand, 4);
    for _ in 0..20 {
        client.get("/a.txt", "");
    }
    server.pass(&hand, 4);
    let files = source(&json(&mut client), "files");
    let rate = files["recent"]["per_second"].as_f64().expect("a number");
    assert!((1.0..=10.0).contains(&rate), "{rate}");
    server.pass(&hand, 20);
    let files = source(&json(&mut client), "files");
    assert_eq!(files["recent"]["per_second"], 0.0);
    assert_eq!(files["recent"]["response_s"], Value::Null);
    assert!(files["response_s"].is_object());
    assert_eq!(files["responses"]["2xx"], 20);
}

/// Two requests a second, while others look at the page often, once, or never.
#[test]
fn recent_figures_do_not_depend_on_how_often_others_read_them() {
    for looks in [0, 1, 5] {
        let site = Site::new().file("a.txt", "first\n");
        let (server, hand) = site.start_by_hand();
        let mut client = server.connect();
        let mut other = server.connect();
        json(&mut client);
        for _ in 0..15 {
            for _ in 0..2 {
                client.get("/a.txt", "");
            }
            for _ in 0..looks {
                json(&mut other);
            }
            hand.advance(Duration::from_secs(1));
        }
        // The one that has just begun is a part of them.
        hand.advance(Duration::from_millis(1));
        let page = json(&mut client);
        let rate = source(&page, "files")["recent"]["per_second"].as_f64();
        assert_eq!(rate.map(|rate| rate.round()), Some(2.0), "{looks} looks");
        assert_eq!(page["recent_s"], 10);
        let text = client.get("/status?format=html", "");
        assert!(text.text().contains("last 10 s"), "{looks} looks");
        // A response ends after its client has it, so perhaps after the advance that followed.
        hand.advance(Duration::from_secs(11));
        let files = source(&json(&mut client), "files");
        assert_eq!(files["recent"]["per_second"], 0.0, "{looks} looks");
        assert_eq!(files["recent"]["response_s"], Value::Null, "{looks} looks");
    }
}

#[test]
fn the_metrics_are_valid_for_prometheus() {
    let server = start();
    let mut client = server.connect();
    ask_for_some(&mut client);
    let page = client.get("/status?format=prometheus", "");
    assert_eq!(
        page.expect_field("Content-Type"),
        "text/plain; version=0.0.4"
    );
    let mut kinds = HashMap::new();
    let mut samples = HashMap::new();
    for line in page.text().lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert_eq!(kinds.insert(name, kind), None, "{name} comes twice");
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').expect("a value");
            let value: f64 = value.parse().expect("a number");
            let name = sample.split('{').next().expect("a name");
            let ends = ["_bucket", "_sum", "_count"];
            let family = ends.iter().find_map(|end| name.strip_suffix(end));
            let kind = kinds.get(family.unwrap_or(name));
            let kind = kind.unwrap_or_else(|| panic!("no type: {line}"));
            assert_eq!(*kind == "counter", name.ends_with("_total"), "{line}");
            assert_eq!(samples.insert(sample, value), None, "{line} comes twice");
        }
    }
    let table = [
        (
            "tussah_http_requests_total{route=\"/made/*\",code=\"2xx\"}",
            3.0,
        ),
        (
            "tussah_http_requests_total{route=\"/fails\",code=\"5xx\"}",
            2.0,
        ),
        (
            "tussah_http_requests_total{route=\"files\",code=\"4xx\"}",
            1.0,
        ),
        (
            "tussah_http_requests_total{route=\"/\\\"<&\",code=\"2xx\"}",
            0.0,
        ),
        (
            "tussah_http_rejected_total{route=\"/fails\",reason=\"overload\"}",
            0.0,
        ),
        // Failures are in no percentile, and no controller takes them for answers.
        (
            "tussah_http_request_duration_seconds_count{route=\"/fails\"}",
            0.0,
        ),
        ("tussah_stage_failed_total{stage=\"route /fails\"}", 2.0),
        ("tussah_stage_cancelled_total{stage=\"route /fails\"}", 0.0),
        ("tussah_http_connections{state=\"busy\"}", 1.0),
        (
            "tussah_http_request_duration_seconds_count{route=\"/made/*\"}",
            3.0,
        ),
        (
            "tussah_http_request_duration_seconds_bucket{route=\"/made/*\",le=\"+Inf\"}",
            3.0,
        ),
        ("tussah_stage_queued{stage=\"route /made/*\"}", 0.0),
    ];
    for (sample, expected) in table {
        assert_eq!(samples.get(sample), Some(&expected), "{sample}");
    }
}

#[test]
fn the_html_page_lists_each_route() {
    let server = start();
    let mut client = server.connect();
    ask_for_some(&mut client);
    let accept = "Accept: text/html,*/*;q=0.8\r\n";
    let page = client.get("/status", accept);
    assert_eq!(
        page.expect_field("Content-Type"),
        "text/html; charset=utf-8"
    );
    for part in [
        "<th scope=row>/made/*<td>",
        "<th scope=row>/&quot;&lt;&amp;<td>",
        "<th scope=row>files<td>",
        "<dt>cache hits<dd>33.3 %",
        "<svg",
    ] {
        assert!(page.text().contains(part), "{part} in {}", page.text());
    }
    let json = client.get("/status", "Accept: application/json\r\n");
    assert_eq!(json.expect_field("Content-Type"), "application/json");
    assert_eq!(client.get("/status?format=xml", "").status, 400);
}

#[test]
fn rejections_name_the_scarce_limit() {
    let limit = Limit::new("db \"<1>\"", 1);
    let site = Site::new().with(|config| config.target = Duration::from_millis(20));
    let server = site.start_with(move |web| {
        web.route("/query", move |_| {
            let limit = limit.clone();
            async move {
                let _permit = limit.acquire().await;
                tussah::time::sleep(Duration::from_millis(5)).await;
                Reply::text("found")
            }
        })
    });
    let is_over = AtomicBool::new(false);
    let of_limit = |page: &Value| {
        let found = source(page, "/query")["rejected_for"].clone();
        let found = found.as_array().expect("a list").clone();
        found.into_iter().find(|one| one["resource"] == "limit")
    };
    let rejected = thread::scope(|scope| {
        for _ in 0..48 {
            scope.spawn(|| {
                let mut client = server.connect();
                while !is_over.load(Ordering::Relaxed) {
                    client.get("/query", "");
                }
            });
        }
        let mut client = server.connect();
        let begun = Instant::now();
        let found = loop {
            let found = of_limit(&json(&mut client));
            if found.is_some() || begun.elapsed() > Duration::from_secs(20) {
                break found;
            }
        };
        is_over.store(true, Ordering::Relaxed);
        found
    });
    assert_eq!(rejected.expect("one for the limit")["limit"], "db \"<1>\"");
    let mut client = server.connect();
    let count = of_limit(&json(&mut client)).expect("it stays")["count"].as_u64();
    let page = client.get("/status?format=html", "");
    let cell = "limit db &quot;&lt;1&gt;&quot;: ";
    assert!(page.text().contains(cell), "{}", page.text());
    let page = client.get("/status?format=prometheus", "");
    let name =
        r#"tussah_http_rejected_for_total{route="/query",resource="limit",limit="db \"<1>\""}"#;
    let count = count.expect("a number");
    let line = format!("{name} {count}");
    assert!(
        page.text().lines().any(|found| found == line),
        "{line} in {}",
        page.text()
    );
}
