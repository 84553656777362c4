//! Asking a stage: the value that its handler returns, or the reason why there is none.

use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::poll_once;
use parking_lot::Mutex;
use tussah::stage::host::ConcurrentHost;
use tussah::stage::{
    AnyCall, Ask, AskError, Batch, BuildError, Call, Event, Handler, Network, Reason, Refusal,
    ReplySender, Stage,
};

use super::support::{Door, Noted, adds_up, by, each};
use crate::runtime;

type Question = Ask<u32, u32>;

/// Returns twice the value.
struct Double;

impl Handler for Double {
    type Event = Question;
    async fn handle(&self, batch: &mut Batch<Question>) {
        for Ask { value, reply } in batch.drain() {
            reply.send(2 * value);
        }
    }
}

fn name(stage: &str) -> Arc<str> {
    Arc::from(stage)
}

fn ended(reason: Reason) -> Result<u32, AskError> {
    let stage = name("asked");
    Err(AskError::Ended { stage, reason })
}

#[test]
fn an_ask_returns_the_value_of_the_handler() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let network = Network::new("asks");
        let asked = network.stage("asked").handler(|_| Ok(Double))?;
        let sender = asked.sender();
        assert_eq!(sender.ask(3).await, Ok(6));
        assert_eq!(sender.try_ask(4).await, Ok(8));
        asked.drain().await;
        assert_eq!((asked.stats().finished, asked.stats().cancelled), (2, 0));
        Ok(())
    })
}

#[test]
fn a_call_returns_the_value_of_the_callee() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("asks");
        let asked = network.stage("asked").handler(|_| Ok(Double))?;
        let answers = Noted::default();
        let (to, note) = (asked.clone(), answers.clone());
        let caller = network.stage("caller").handler(move |edges| {
            let typed: Call<Question, ConcurrentHost<Double>> = edges.to(&to).call()?;
            let named: AnyCall<Question> = edges.named("asked")?.call()?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let (typed, named, note) = (typed.clone(), named.clone(), note.clone());
                Box::pin(async move {
                    while let Some(n) = batch.next() {
                        note.add(typed.ask(n).await);
                        note.add(named.ask(n + 1).await);
                        note.add(typed.ask(Event::new(n).within(Duration::ZERO)).await);
                    }
                })
            }))
        })?;
        caller.sender().send(3).await.expect("it is open");
        caller.drain().await;
        assert_eq!(answers.take(), [Ok(6), Ok(8), ended(Reason::Expired)]);
        assert_eq!((asked.stats().called, asked.stats().expired), (3, 1));
        Ok(())
    })
}

/// Starts a stage that keeps each reply, and the list of those.
fn keeps(network: &Network) -> Result<(Stage<Question>, Noted<ReplySender<u32>>), BuildError> {
    let replies = Noted::default();
    let note = replies.clone();
    network.stage("asked").queue(1).handler(move |_| {
        let note = note.clone();
        Ok(each(move |Ask { reply, .. }: Question| note.add(reply)))
    })?;
    Ok((network.find("asked")?, replies))
}

#[test]
fn a_reply_may_outlive_its_handler() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("asks");
        let (asked, replies) = keeps(&network)?;
        let sender = asked.sender();
        let answer = tussah::spawn(async move { sender.ask(1).await });
        replies.until(1).await;
        asked.drain().await;
        assert_eq!(asked.stats().finished, 1);
        let reply = replies.take().pop().expect("one came");
        assert!(!reply.is_closed());
        reply.send(5);
        assert_eq!(answer.await.expect("it ends"), Ok(5));
        Ok(())
    })
}

#[test]
fn an_ask_without_an_answer_says_why() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("asks");
        let (asked, replies) = keeps(&network)?;
        let sender = asked.sender();

        let dropped = tussah::spawn({
            let sender = sender.clone();
            async move { sender.ask(1).await }
        });
        replies.until(1).await;
        drop(replies.take());
        let stage = name("asked");
        assert_eq!(
            dropped.await.expect("it ends"),
            Err(AskError::Unanswered { stage })
        );

        asked.pause();
        let late = Event::new(2).within(Duration::from_millis(1));
        assert_eq!(sender.ask(late).await, ended(Reason::Expired));

        let waits = tussah::spawn({
            let sender = sender.clone();
            async move { sender.ask(3).await }
        });
        while asked.stats().queued == 0 {
            tussah::yield_now().await;
        }
        let (stage, why) = (name("asked"), Refusal::Full);
        let full = sender.try_ask(4).await;
        assert_eq!(full, Err(AskError::Refused { stage, why }));

        asked.clone().destroy(Duration::ZERO).await;
        assert_eq!(waits.await.expect("it ends"), ended(Reason::ShutDown));
        let (stage, why) = (name("asked"), Refusal::Closed);
        let closed = sender.ask(5).await;
        assert_eq!(closed, Err(AskError::Refused { stage, why }));
        adds_up(&asked);
        Ok(())
    })
}

#[test]
fn an_ask_whose_handler_panics_says_so() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("asks");
        let asked = network.stage("asked").handler(|_| {
            Ok(each(|_: Question| {
                std::panic::resume_unwind(Box::new("a panic of the test"));
            }))
        })?;
        assert_eq!(asked.sender().ask(1).await, ended(Reason::Panicked));
        Ok(())
    })
}

/// Starts a stage that answers before or after it waits at a door.
fn at_door(
    network: &Network,
    before: bool,
) -> Result<(Stage<Question>, Door, Noted<u32>), BuildError> {
    let (door, passed) = (Door::new(), Noted::default());
    let (at, note) = (door.clone(), passed.clone());
    network.stage("asked").batch(1).handler(move |_| {
        Ok(by(move |batch: &mut Batch<Question>| {
            let (at, note) = (at.clone(), note.clone());
            Box::pin(async move {
                while let Some(Ask { value, reply }) = batch.next() {
                    let reply = Mutex::new(Some(reply));
                    if before && let Some(reply) = reply.lock().take() {
                        reply.send(value);
                    }
                    at.pass().await;
                    note.add(value);
                }
            })
        }))
    })?;
    Ok((network.find("asked")?, door, passed))
}

#[test]
fn an_answered_event_is_not_cancelled() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("asks");
        let (asked, door, passed) = at_door(&network, true)?;
        assert_eq!(asked.sender().ask(7).await, Ok(7));
        door.until(1).await;
        door.let_through(1);
        asked.drain().await;
        assert_eq!(passed.take(), [7]);
        assert_eq!((asked.stats().finished, asked.stats().cancelled), (1, 0));
        Ok(())
    })
}

#[test]
fn dropping_an_ask_cancels_its_event() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("asks");
        let (asked, door, passed) = at_door(&network, false)?;
        let sender = asked.sender();
        asked.pause();
        {
            let mut queued = std::pin::pin!(sender.ask(1));
            assert!(poll_once(queued.as_mut()).await.is_none());
            assert_eq!(asked.stats().queued, 1);
        }
        assert_eq!((asked.stats().queued, asked.stats().cancelled), (0, 1));
        asked.resume();
        {
            let mut in_service = std::pin::pin!(sender.ask(2));
            assert!(poll_once(in_service.as_mut()).await.is_none());
            door.until(1).await;
        }
        asked.drain().await;
        assert!(
            passed.take().is_empty(),
            "the handler was dropped at the door"
        );
        assert_eq!((asked.stats().finished, asked.stats().cancelled), (0, 2));
        Ok(())
    })
}
