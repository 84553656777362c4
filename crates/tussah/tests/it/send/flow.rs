//! The futures of flow graphs.

use tussah::flow::expansion::{Held, InTurn, Outlet, Sends, Swap, flush_in_turn, handed_over};
use tussah::flow::{Args, Flow, Input, Proxy, Running, Tap, module};

/// A module of each kind that can be swapped.
#[derive(Default)]
struct Element;

#[module]
impl Element {
    fn run(&self, _item: u64) {}
}

#[derive(Default)]
struct Serial;

#[module]
impl Serial {
    fn run(&mut self, _item: u64) {}
}

#[derive(Default)]
struct PerFlow;

#[module]
impl PerFlow {
    fn run(&self, _item: u64, _state: &mut u64) {}
}

super::futures! {
    "flow/running::drain" (running: Running) { running.drain().await }
    "flow/running::stop_within" (running: Running) {
        let _ = running.stop_within(std::time::Duration::ZERO).await;
    }
    "flow/running::drain_within" (running: Running) {
        let _ = running.drain_within(std::time::Duration::ZERO).await;
    }
    "flow/running::stop" (running: Running) { running.stop().await }
    "flow/running::send" (input: Input<&'static str>) { input.send("static").await }
    "flow/flows::turn" (flow: Flow) { flow.turn().await }
    "flow/swap::swap" (running: Running) {
        let _ = running.swap::<Element>("name", Args::new()).await;
    }
    "flow/swap::element" (swap: Swap<Element>) { let _ = swap.element().await; }
    "flow/swap::blocking" (swap: Swap<Element>) { let _ = swap.blocking().await; }
    "flow/swap::serial" (swap: Swap<Serial>) { let _ = swap.serial().await; }
    "flow/swap::per_flow" (swap: Swap<PerFlow>) { let _ = swap.per_flow().await; }
    "flow/proxy::proxy" (running: Running) {
        let _ = running.proxy::<Element>("edge", "name", Args::new()).await;
    }
    "flow/proxy::remove" (proxy: Proxy) { proxy.remove().await }
    "flow/tap::next" (tap: Tap) { let _ = { tap }.next().await; }
    "flow/ordered::flush_in_turn" (flow: Flow, held: Held<'static>) {
        flush_in_turn(&flow, &mut { held }).await
    }
    "flow/ordered::handed_over" (held: Held<'static>) {
        handed_over(async move { { held }.flush().await }).await
    }
    "flow/ordered::end" (port: InTurn<'static, u64>) { port.end().await }
    "flow/outlet::unless_cancelled" (outlet: Outlet<u64>, sends: Sends) {
        let _ = outlet.unless_cancelled(&sends, async {}).await;
    }
    "flow/outbox::flush" (held: Held<'static>) { { held }.flush().await }
}
