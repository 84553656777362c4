//! Stages and their networks.

use std::sync::Arc;
use std::time::Duration;

use tussah::stage::host::ConcurrentHost;
use tussah::stage::net::{Connection, Sockets};
use tussah::stage::observe::Recording;
use tussah::stage::{
    AnyCall, Ask, Batch, Between, Call, CancellationToken, Handler, Network, Sender, SerialHandler,
    Stage,
};

use super::futures;

/// Handles events that are static.
struct Drain;

impl Handler for Drain {
    type Event = &'static str;

    async fn handle(&self, batch: &mut Batch<&'static str>) {
        batch.drain().for_each(drop);
    }
}

impl SerialHandler for Drain {
    type Event = &'static str;

    async fn handle(&mut self, batch: &mut Batch<&'static str>) {
        batch.drain().for_each(drop);
    }
}

/// Returns what it is asked.
struct Echo;

impl Handler for Echo {
    type Event = Ask<&'static str, &'static str>;

    async fn handle(&self, batch: &mut Batch<Self::Event>) {
        batch.drain().for_each(|ask| ask.reply.send(ask.value));
    }
}

type Event = &'static str;

type Question = Ask<Event, Event>;

futures! {
    "stage/event/cancel::cancelled" (token: CancellationToken) { token.cancelled().await }
    "stage/send/ask::ask" (sender: Sender<Question>) { sender.ask("static").await }
    "stage/send/ask::ask" (call: Call<Question, ConcurrentHost<Echo>>) { call.ask("static").await }
    "stage/send/ask::ask" (call: AnyCall<Question>) { call.ask("static").await }
    "stage/send/ask::try_ask" (sender: Sender<Question>) { sender.try_ask("static").await }
    "stage/send/sender::forward" (sender: Sender<Event>, batch: Batch<Event>) { sender.forward(&mut batch).await }
    "stage/send/sender::Sending" (sender: Sender<Event>, texts: Sender<String>) {
        let _ = sender.send("static").await;
        let _ = texts.send(String::from("static")).await;
        let _ = texts.send(String::new()).await;
    }
    "stage/net/connection::send" (connection: Connection) {
        let _ = connection.send(b"static".as_slice()).await;
        let _ = connection.send(vec![0; 1]).await;
    }
    "stage/net/sockets::settled" (sockets: Sockets) { sockets.settled().await }
    "stage/network/drain::drain" (network: Network) { network.drain().await }
    "stage/observe/record::stop" (recording: Recording<Vec<u8>>) { recording.stop().await }
    "stage/send/call::call" (call: Call<Event, ConcurrentHost<Drain>>, batch: Batch<Event>) { call.call(&mut batch).await }
    "stage/send/call::call" (call: AnyCall<Event>, batch: Batch<Event>) { call.call(&mut batch).await }
    "stage/send/call::send" (call: Call<Event, ConcurrentHost<Drain>>) { call.send("static").await }
    "stage/send/call::send" (call: AnyCall<Event>) { call.send("static").await }
    "stage/send/proxy::remove" (between: Between<Event>) { between.remove().await }
    "stage/network/handle::drain" (stage: Stage<Event>) { stage.drain().await }
    "stage/network/handle::settled" (stage: Stage<Event, Arc<ConcurrentHost<Drain>>>) { stage.settled().await }
    "stage/network/handle::destroy" (stage: Stage<Event>) { stage.destroy(Duration::ZERO).await }
    "stage/network/install::swap" (stage: Stage<Event>) { stage.swap::<Drain>(|_| Ok(Drain)).await.is_ok() }
    "stage/network/install::swap_serial" (stage: Stage<Event>) { stage.swap_serial::<Drain>(|_| Ok(Drain)).await.is_ok() }
}
