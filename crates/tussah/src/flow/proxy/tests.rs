//! The threads that a removed proxy leaves behind.

use std::time::Duration;

use crate::flow::{Args, Graph};
use crate::modules::{Counter, Logger};
use crate::{JoinHandle, Runtime, yield_now};

#[test]
fn the_ticks_of_removed_proxies_are_forgotten() {
    let runtime = Runtime::builder().workers(1).build();
    runtime.expect("the worker starts").block_on(async {
        let mut graph = Graph::new("g");
        for name in ["first", "second"] {
            graph
                .add::<Logger<u64>>(name, Args::new())
                .expect("it is new");
        }
        graph.connect("first", "second").expect("both exist");
        let running = graph.start().expect("it is whole");
        for _ in 0..3 {
            let every = Args::new().with("every", Duration::from_secs(3600));
            let proxy = running.proxy::<Counter<u64>>("first -> second", "counter", every);
            proxy.await.expect("it fits").remove().await;
            while !running.tickers.lock().iter().all(JoinHandle::is_finished) {
                yield_now().await;
            }
            assert_eq!(running.tickers.lock().len(), 1);
        }
        running.drain().await;
    });
}
