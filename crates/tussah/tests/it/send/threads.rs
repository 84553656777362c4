//! Threads: scopes, time, channels and values of a thread.

use std::sync::Arc;

use tussah::sync::{Limit, mpsc, watch};
use tussah::time::{self, Duration, Interval};
use tussah::{Handle, Nursery, ScopedJoinHandle, local::LocalKey, scope, scope_in};

use super::futures;

futures! {
    "scope::scope" () {
        let _ = scope(async |scope| {
            let one = scope.spawn(async { Ok::<&'static str, &'static str>("static") });
            let two = scope.spawn(async { Err::<u32, &'static str>("static") });
            Ok::<_, &'static str>((one.await, two.await))
        })
        .await;
    }
    "scope::scope_in" (handle: Handle) {
        let _ = scope_in(&handle, async |_scope| Ok::<&'static str, &'static str>("static")).await;
    }
    "scope::ScopedJoinHandle" (child: ScopedJoinHandle<&'static str, &'static str>) { child.await }
    "scope/nursery::next" (text: String) {
        let mut nursery = Nursery::<'_, &str, &'static str>::new();
        nursery.spawn(async { Ok(text.as_str()) });
        nursery.spawn(async { Err("static") });
        let _ = nursery.next().await;
    }
    "scope/nursery::join" (text: String) {
        let mut nursery = Nursery::<'_, &str, &'static str>::new();
        nursery.spawn(async { Ok(text.as_str()) });
        let _ = nursery.join().await;
    }
    "local::Scoped" (key: &'static LocalKey<&'static str>, names: &'static LocalKey<Arc<str>>) {
        let _ = key.scope("static", async { Ok::<&'static str, &'static str>("static") }).await;
        let name = String::new();
        let _ = tussah::named("static", async { "static" }).await;
        let _ = tussah::named(name.as_str(), async { "static" }).await;
        let _ = tussah::named(name, async { "static" }).await;
    }
    "time::Timeout" (text: String) {
        let _ = time::timeout(Duration::ZERO, async { text.as_str() }).await;
        let _ = time::timeout(Duration::ZERO, async { Ok::<&'static str, &'static str>("static") }).await;
        let _ = time::timeout_at(time::now(), async { "static" }).await;
    }
    "time::tick" (interval: Interval) { interval.tick().await }
    "sync/limit::acquire_for" (limit: Limit) {
        let _ = limit.acquire_for(tussah::stage::Class(1)).await;
    }
    "sync/limit::acquire" (limit: Limit, text: String) {
        let permit = limit.acquire().await;
        let _ = Limit::new("static", 1).acquire().await;
        let _ = Limit::new(text, 1).acquire().await;
        drop(permit);
    }
    "sync/mpsc::closed" (sender: mpsc::Sender<&'static str>, receiver: mpsc::Receiver<&'static str>) {
        sender.closed().await;
        let _ = sender.send("static").await;
        let _ = receiver.recv().await;
    }
    "sync/watch::closed" (sender: watch::Sender<&'static str>) { sender.closed().await }
    "sync/watch::changed" (receiver: watch::Receiver<&'static str>) { receiver.changed().await }
    "sync/watch::wait_for" (receiver: watch::Receiver<&'static str>, text: String) {
        let _ = receiver.wait_for(|seen| *seen == "static").await.is_ok();
        let _ = receiver.wait_for(|seen| *seen == text).await.is_ok();
    }
}
