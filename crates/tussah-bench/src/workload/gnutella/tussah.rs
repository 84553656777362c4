//! The router of tussah.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ::tussah::time::sleep;
use tussah_services::gnutella::{Gnutella, Options as Router};

use crate::cli::Options;
use crate::{runtimes, server};

/// The time between two looks at the servlets.
const LOOK: Duration = Duration::from_millis(5);

pub(super) fn serve(options: &Options) {
    let loopback = "127.0.0.1:0".parse().expect("an address");
    let router = Gnutella::new(Router {
        listen: loopback,
        http: loopback,
        keep: 0,
        each_max: 10_000,
        peers_max: 10_000,
        bottleneck: super::bottleneck(options),
        ..Router::default()
    });
    runtimes::tussah_of(options, options.workers_or(1), async move {
        let running = router.start().await;
        let running = running.unwrap_or_else(|error| panic!("{error}"));
        server::announce(running.address().port());
        loop {
            let stats = running.graph().stats("search").expect("it is in the graph");
            let servlets = stats.servlets;
            // Relaxed: these are only counts.
            server::SERVLETS.store(servlets.busy as u64, Ordering::Relaxed);
            server::SERVLETS_ALLOWED.store(servlets.target as u64, Ordering::Relaxed);
            sleep(LOOK).await;
        }
    });
}
