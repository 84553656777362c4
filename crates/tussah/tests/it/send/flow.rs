//! The futures of flow graphs.

use tussah::flow::{Input, Running, expansion::Held};

super::futures! {
    "flow/graph::drain" (running: Running) { running.drain().await }
    "flow/graph::stop" (running: Running) { running.stop().await }
    "flow/graph::send" (input: Input<&'static str>) { input.send("static").await }
    "flow/outlet::flush" (held: Held<'static>) { { held }.flush().await }
}
