//! Tests of the contents of the status page.

use std::time::Duration;

use tussah::stage::{Batch, Network, Restarts, SerialHandler};

use super::{Format, html, json};
use crate::web::answer::route::Routes;
use crate::web::server::totals::Totals;

struct Panics;

impl SerialHandler for Panics {
    type Event = u32;
    async fn handle(&mut self, batch: &mut Batch<u32>) {
        batch.next();
        panic!("expected: always");
    }
}

#[test]
fn a_stage_that_panics_closed_reports_the_reason() {
    let runtime = tussah::Runtime::builder().workers(1).build();
    let runtime = runtime.expect("a runtime");
    let stats = runtime.block_on(async {
        let network = Network::new("status");
        let stage = network
            .stage("pages")
            .restarts(Restarts::new(1, Duration::from_secs(3600)))
            .serial(|_| Ok(Panics))
            .expect("a stage");
        for _ in 0..2 {
            stage.sender().try_send(0).expect("it is open");
            stage.settled().await;
        }
        stage.stats()
    });
    let why = "its handler panicked 2 times within 3600s";
    let mut page = String::new();
    html::stage_row(&mut page, &stats);
    let expected = format!("<tr><th scope=row>pages<br><strong>closed: {why}</strong><td>2");
    assert!(page.starts_with(&expected), "{page}");
    let member = json::stage(&stats);
    assert_eq!(
        (&member["state"], &member["closed"]),
        (&"closed".into(), &why.into())
    );
}

struct Waits;

impl SerialHandler for Waits {
    type Event = u32;
    async fn handle(&mut self, batch: &mut Batch<u32>) {
        batch.next();
        std::future::pending().await
    }
}

#[test]
fn nothing_is_in_service_in_a_network_that_has_ended() {
    let runtime = tussah::Runtime::builder().workers(1).build();
    let runtime = runtime.expect("a runtime");
    let stages = runtime.block_on(async {
        let network = Network::new("ends");
        let stage = network.stage("waits").serial(|_| Ok(Waits));
        let stage = stage.expect("a stage");
        let totals = Totals::new(&Routes::default(), 1);
        totals.begin(0, &network);
        stage.sender().try_send(0).expect("it is open");
        while stage.stats().in_service == 0 {
            tussah::yield_now().await;
        }
        totals.end(0);
        totals.stages()
    });
    let (stage, _) = &stages[0];
    assert_eq!((stage.in_service, stage.queued, stage.finished), (0, 0, 1));
}

#[test]
fn the_format_is_that_of_the_query_or_else_what_is_accepted() {
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let scraper = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4";
    let table = [
        (None, None, Some(Format::Html)),
        (None, Some("*/*"), Some(Format::Html)),
        (None, Some(browser), Some(Format::Html)),
        (None, Some(scraper), Some(Format::Prometheus)),
        (
            None,
            Some("text/plain;version=0.0.4"),
            Some(Format::Prometheus),
        ),
        (None, Some("application/json"), Some(Format::Json)),
        (Some("json"), Some(browser), Some(Format::Json)),
        (Some("format=json"), Some(browser), Some(Format::Json)),
        (
            Some("a=b&format=prometheus"),
            None,
            Some(Format::Prometheus),
        ),
        (
            Some("format=html"),
            Some("application/json"),
            Some(Format::Html),
        ),
        (Some("format=xml"), None, None),
    ];
    for (query, accept, expected) in table {
        let found = Format::of(query.map(str::as_bytes), accept.map(str::as_bytes));
        assert_eq!(found, expected, "{query:?} {accept:?}");
    }
}
