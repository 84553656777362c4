//! The network: names, edges, and what is refused when a stage is made.

use std::time::Duration;

use futures_lite::future::poll_once;
use tussah::stage::control::{
    Owns,
    policy::{SedaBatch, Threshold},
};
use tussah::stage::observe::EdgeKind;
use tussah::stage::{AnyCall, Batch, BuildError, Network, Stage};

use super::support::{Door, Noted, by, each, one};
use crate::runtime;

/// How a stage of these tests sends to another.
#[derive(Clone, Copy)]
enum How {
    Queue,
    Offer,
    Call,
}

/// Gives a declared stage a handler with these edges.
fn handled(
    declared: tussah::stage::Declared<u32>,
    edges: &[(&'static str, How)],
) -> Result<(), BuildError> {
    declared.handler(|from| {
        for (to, how) in edges {
            let to = from.named::<u32>(to)?;
            match how {
                How::Queue => drop(to.queue(1)?),
                How::Offer => drop(to.offer(1)?),
                How::Call => drop(to.call()?),
            }
        }
        Ok(each(|_: u32| ()))
    })?;
    Ok(())
}

#[test]
fn a_cycle_in_which_all_could_wait_is_refused() -> Result<(), BuildError> {
    use How::{Call, Offer, Queue};
    runtime(1).block_on(async {
        let cycle = |path: &[&str]| BuildError::Cycle {
            path: path.iter().map(ToString::to_string).collect(),
        };
        // Each time: how "c" sends to "a", in the network a -> b -> c; and whether it may.
        for (how, may) in [(Queue, false), (Call, false), (Offer, true)] {
            let network = Network::new("graph");
            let [a, b, c] = ["a", "b", "c"].map(|name| network.stage::<u32>(name).declare());
            handled(a?, &[("b", Queue)])?;
            handled(b?, &[("c", Call)])?;
            let made = handled(c?, &[("a", how)]);
            if may {
                made?;
                assert_eq!(network.names().len(), 3);
                let edges = network.edges();
                let last = edges.last().expect("there are three");
                let ends = (&*last.from, &*last.to);
                assert_eq!((ends, last.kind), (("c", "a"), EdgeKind::Offer));
            } else {
                let error = made.expect_err("it closes a cycle");
                assert_eq!(error, cycle(&["c", "a", "b", "c"]));
                assert!(error.to_string().contains("c -> a -> b -> c"), "{error}");
                // What failed to be made is not there.
                assert_eq!(network.names().len(), 2);
                assert!(network.edges().iter().all(|edge| &*edge.to != "c"));
            }
        }
        // A stage that sends to itself.
        let network = Network::new("graph");
        for how in [Queue, Call] {
            let a = network.stage::<u32>("a").declare()?;
            let error = handled(a, &[("a", how)]).expect_err("it closes a cycle");
            assert_eq!(error, cycle(&["a", "a"]));
        }
        handled(network.stage::<u32>("a").declare()?, &[("a", Offer)])
    })
}

/// A network knows its own stages only: neither cycles through another one would be seen, nor whose
/// proxies are meant.
#[test]
fn an_edge_to_a_stage_of_another_network_is_refused() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let [here, there] = ["here", "there"].map(Network::new);
        let other = |stage: &str| BuildError::OtherNetwork {
            stage: stage.into(),
            network: "there".into(),
            expected: "here".into(),
        };
        // Of the same name as the one that sends, which is no cycle; the type of its handler is
        // known or not.
        let typed = there.stage("same").handler(|_| Ok(each(|_: u32| ())))?;
        let found = there.find::<u32>("same")?;
        let refused = |how: How, known: bool| {
            let same = here.stage::<u32>("same").declare()?;
            let made = same.handler(|edges| {
                match (how, known) {
                    (How::Queue, _) => drop(edges.to(&typed).queue(1)?),
                    (How::Offer, _) => drop(edges.to(&typed).offer(1)?),
                    (How::Call, true) => drop(edges.to(&typed).call()?),
                    (How::Call, false) => drop(edges.to(&found).call()?),
                }
                Ok(each(|_: u32| ()))
            });
            let error = made.expect_err("it is of another network");
            assert_eq!(error, other("same"));
            Ok::<_, BuildError>(error)
        };
        refused(How::Queue, true)?;
        refused(How::Offer, true)?;
        refused(How::Call, true)?;
        let error = refused(How::Call, false)?.to_string();
        assert!(
            error.contains("`there`") && error.contains("`here`"),
            "{error}"
        );
        assert!(here.edges().is_empty());
        // Nor does a proxy stand before one, though both networks have stages of these names.
        let first = here.stage("first").handler(|edges| {
            let _ = edges
                .to(&here.stage("last").handler(|_| Ok(each(|_: u32| ())))?)
                .queue(1)?;
            Ok(each(|_: u32| ()))
        })?;
        let last = there.stage("last").handler(|_| Ok(each(|_: u32| ())))?;
        let proxy = here.stage("proxy").handler(|_| Ok(each(|_: u32| ())))?;
        let error = proxy
            .between("first", &last)
            .expect_err("it is of another network");
        assert_eq!(error, other("last"));
        drop(first);
        assert!(here.edges().iter().all(|edge| edge.proxy.is_none()));
        Ok(())
    })
}

#[test]
fn events_go_round_a_cycle_with_try_send() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let network = Network::new("graph");
        let (came, over) = (Noted::default(), Noted::default());
        let back = network.stage::<u32>("back").queue(1000).declare()?;
        let to = back.stage();
        let note = came.clone();
        let there = network.stage("there").queue(4).serial(move |edges| {
            let (back, note) = (edges.to(&to).offer(1)?, note.clone());
            Ok(one(move |batch: &mut Batch<u32>| {
                let (back, note) = (back.clone(), note.clone());
                Box::pin(async move {
                    for n in batch.drain() {
                        if n == 0 {
                            note.add(n);
                        } else {
                            back.send_or(n - 1, |_, why| panic!("{why}"));
                        }
                    }
                })
            }))
        })?;
        let to = there.clone();
        let lost = over.clone();
        let back = back.serial(move |edges| {
            let (there, lost) = (edges.to(&to).queue(4)?, lost.clone());
            Ok(one(move |batch: &mut Batch<u32>| {
                let (there, lost) = (there.clone(), lost.clone());
                Box::pin(async move {
                    for n in batch.drain() {
                        if there.send(n).await.is_err() {
                            lost.add(n);
                        }
                    }
                })
            }))
        })?;
        for _ in 0..50 {
            there.sender().send(20).await.expect("it is open");
        }
        while came.len() < 50 {
            tussah::yield_now().await;
        }
        assert_eq!(over.len(), 0);
        assert_eq!(back.stats().arrived, 1000);
        back.destroy(Duration::ZERO).await;
        there.destroy(Duration::ZERO).await;
        Ok(())
    })
}

#[test]
fn a_stage_is_found_by_name_and_type() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("graph");
        let error = network.find::<u32>("sum").expect_err("there is none");
        assert!(error.to_string().contains("none yet"), "{error}");
        let sum_at = format!("{}:{}:17", file!(), line!() + 1);
        network.stage("sum").handler(|_| Ok(each(|_: u32| ())))?;
        let text_at = format!("{}:{}:28", file!(), line!() + 1);
        let text = network.stage("text");
        text.handler(|_| Ok(each(|_: String| ())))?;
        assert_eq!(network.find::<u32>("sum")?.name(), "sum");
        let error = network.find::<u32>("text").expect_err("another type");
        assert_eq!(
            error,
            BuildError::WrongType {
                name: "text".into(),
                position: text_at,
                expected: "u32",
                found: std::any::type_name::<String>()
            }
        );
        let error = network.find::<u32>("some").expect_err("another name");
        assert_eq!(
            error,
            BuildError::NotFound {
                name: "some".into(),
                known: vec!["sum".into(), "text".into()]
            }
        );
        let taken = network.stage("sum").handler(|_| Ok(each(|_: u8| ())));
        let taken = taken.err();
        let (name, position) = ("sum".into(), sum_at);
        assert_eq!(taken, Some(BuildError::NameTaken { name, position }));
        Ok(())
    })
}

#[test]
fn a_setting_has_one_owner() {
    runtime(1).block_on(async {
        let network = Network::new("graph");
        let made = network
            .stage("stage")
            .controller(Threshold::new(5))
            .controller(SedaBatch::default())
            .controller(Threshold::new(6))
            .handler(|_| Ok(each(|_: u32| ())));
        assert_eq!(
            made.err(),
            Some(BuildError::TwoOwners {
                stage: "stage".into(),
                controllers: ["threshold", "threshold"],
                settings: Owns::ADMISSION
            })
        );
        assert!(network.names().is_empty());
    });
}

#[test]
fn a_handler_that_blocks_is_not_called() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("graph");
        let position = format!("{}:{}:30", file!(), line!() + 1);
        let blocks = network.stage("blocks");
        blocks.blocking(|_| Ok(|_: &mut Batch<u32>| ()))?;
        let made = network.stage("caller").handler(|edges| {
            let _call: AnyCall<u32> = edges.named("blocks")?.call()?;
            Ok(each(|_: u32| ()))
        });
        let error = made.err();
        let expected = BuildError::Blocks {
            stage: "blocks".into(),
            position,
        };
        assert_eq!(error, Some(expected));
        Ok(())
    })
}

#[test]
fn a_maker_that_fails_leaves_nothing() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("graph");
        let fails = |stage: &str| BuildError::Handler {
            stage: stage.into(),
            why: "no file".into(),
        };
        network.stage("last").handler(|_| Ok(each(|_: u32| ())))?;
        let made = network.stage::<u32>("stage").handler(|edges| {
            edges.named::<u32>("last")?.queue(1)?;
            Err::<super::support::Each<u32, fn(u32)>, _>(fails("stage"))
        });
        assert_eq!(made.err(), Some(fails("stage")));
        type Made = Result<super::support::Each<u32, fn(u32)>, BuildError>;
        let panics = || {
            let stage = network.stage::<u32>("stage");
            let made = stage.handler(|edges| -> Made {
                edges.named::<u32>("last")?.queue(1)?;
                panic!("expected: no handler")
            });
            drop(made);
        };
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
        assert!(panicked.is_err());
        assert_eq!(network.names().len(), 1);
        assert!(network.edges().is_empty());
        network.stage("stage").handler(|_| Ok(each(|_: u32| ())))?;
        Ok(())
    })
}

#[test]
fn an_edge_to_a_destroyed_stage_is_refused() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("graph");
        let gone = network.stage("gone").handler(|_| Ok(each(|_: u32| ())))?;
        let kept: Stage<u32> = network.find("gone")?;
        gone.destroy(Duration::ZERO).await;
        let closed = || BuildError::Closed {
            stage: "gone".into(),
        };
        let made = network.stage("caller").handler(|edges| {
            edges.to(&kept).queue(1)?;
            Ok(each(|_: u32| ()))
        });
        assert_eq!(made.err(), Some(closed()));
        // A stage of the same name is another one; nor does the one that is gone make edges in its
        // name.
        network.stage("gone").handler(|_| Ok(each(|_: u32| ())))?;
        network.stage("other").handler(|_| Ok(each(|_: u32| ())))?;
        let swapped = kept
            .swap(|edges| {
                edges.named::<u32>("other")?.queue(1)?;
                Ok(by(|_: &mut Batch<u32>| Box::pin(async {})))
            })
            .await;
        assert_eq!(swapped.err(), Some(closed()));
        assert!(network.edges().is_empty(), "{:?}", network.edges());
        Ok(())
    })
}

#[test]
fn a_swap_that_fails_leaves_no_edge() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("graph");
        let pass = |next: tussah::stage::Sender<u32>| {
            by(move |batch: &mut Batch<u32>| {
                let next = next.clone();
                Box::pin(async move {
                    next.forward(batch).await.expect("it is open");
                })
            })
        };
        let last = network.stage("last").handler(|_| Ok(each(|_: u32| ())))?;
        let first = network.stage("first").handler(|edges| {
            edges.to(&last).offer(1)?;
            Ok(each(|_: u32| ()))
        })?;
        let before = network.edges();
        let fails = first.swap(|edges| {
            edges.to(&last).queue(1)?;
            Err::<super::support::Each<u32, fn(u32)>, _>(BuildError::Closed {
                stage: "none".into(),
            })
        });
        assert!(fails.await.is_err());
        assert_eq!(network.edges(), before);
        // Neither does one whose edge would close a cycle through a proxy.
        let proxy = network.stage("proxy");
        let proxy = proxy.handler(|edges| Ok(pass(edges.to(&first).queue(1)?)))?;
        drop(proxy.between("first", &last)?);
        let before = network.edges();
        let swapped = first.swap(|edges| {
            let made = edges.to(&last).queue(1);
            assert!(matches!(made.err(), Some(BuildError::Cycle { .. })));
            Ok(each(|_: u32| ()))
        });
        swapped.await?;
        assert_eq!(network.edges(), before);
        Ok(())
    })
}

/// Gives a stage another handler, with edges to these, that fails if `fails` does.
async fn swapped(
    stage: &Stage<u32>,
    to: &[&str],
    fails: Option<BuildError>,
) -> Result<(), BuildError> {
    let make = |edges: &tussah::stage::Edges<'_>| {
        for name in to {
            edges.named::<u32>(name)?.queue(1)?;
        }
        match fails {
            None => Ok(each(|_: u32| ())),
            Some(error) => Err(error),
        }
    };
    stage.swap(make).await.map(drop)
}

/// The edges of a network, by the names of their stages.
fn edges(network: &Network) -> Vec<(String, String)> {
    let edges = network.edges().into_iter();
    edges
        .map(|edge| (edge.from.to_string(), edge.to.to_string()))
        .collect()
}

fn named<const N: usize>(edges: [(&str, &str); N]) -> Vec<(String, String)> {
    edges
        .map(|(from, to)| (from.to_owned(), to.to_owned()))
        .to_vec()
}

#[test]
fn the_edges_of_a_handler_go_with_it() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("graph");
        for name in ["a", "b", "c"] {
            network.stage(name).handler(|_| Ok(each(|_: u32| ())))?;
        }
        let [a, b]: [Stage<u32>; 2] = [network.find("a")?, network.find("b")?];
        swapped(&a, &["b", "c"], None).await?;
        assert_eq!(edges(&network), named([("a", "b"), ("a", "c")]));
        assert!(swapped(&b, &["a"], None).await.is_err(), "a cycle");
        // What both handlers have stays in its place.
        swapped(&a, &["c"], None).await?;
        assert_eq!(edges(&network), named([("a", "c")]));
        swapped(&b, &["a"], None).await?;
        assert_eq!(edges(&network), named([("a", "c"), ("b", "a")]));
        Ok(())
    })
}

#[test]
fn the_edges_of_a_handler_that_is_not_installed_are_gone() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("graph");
        for name in ["b", "c"] {
            network.stage(name).handler(|_| Ok(each(|_: u32| ())))?;
        }
        let door = Door::new();
        let at = door.clone();
        network.stage("a").serial(move |edges| {
            edges.named::<u32>("b")?.queue(1)?;
            let at = at.clone();
            Ok(one(move |batch: &mut Batch<u32>| {
                let at = at.clone();
                Box::pin(async move {
                    batch.next();
                    at.pass().await;
                })
            }))
        })?;
        let a: Stage<u32> = network.find("a")?;
        let before = named([("a", "b")]);
        let error = BuildError::Handler {
            stage: "a".into(),
            why: "no reason".into(),
        };
        let failed = swapped(&a, &["b", "c"], Some(error.clone())).await;
        assert_eq!(failed, Err(error));
        assert_eq!(edges(&network), before, "the maker failed");
        // A swap that is given up while it waits for the batch that runs.
        a.sender().try_send(1).expect("there is room");
        door.until(1).await;
        let mut swap = Box::pin(swapped(&a, &["c"], None));
        assert!(poll_once(&mut swap).await.is_none());
        drop(swap);
        assert_eq!(edges(&network), before, "the swap was given up");
        // And one of a stage that is closed meanwhile.
        let mut swap = Box::pin(swapped(&a, &["c"], None));
        assert!(poll_once(&mut swap).await.is_none());
        a.clone().destroy(Duration::ZERO).await;
        door.let_through(1);
        assert!(swap.await.is_err());
        assert_eq!(a.stats().gate, "closed");
        assert_eq!(edges(&network), [], "the stage is closed");
        Ok(())
    })
}

#[test]
fn an_edge_with_a_proxy_stays_until_the_proxy_goes() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("graph");
        let last = network.stage("last").handler(|_| Ok(each(|_: u32| ())))?;
        for name in ["first", "proxy"] {
            let to = last.clone();
            network.stage(name).handler(move |edges| {
                edges.to(&to).queue(1)?;
                Ok(each(|_: u32| ()))
            })?;
        }
        let [first, proxy]: [Stage<u32>; 2] = [network.find("first")?, network.find("proxy")?];
        let between = proxy.between("first", &last)?;
        swapped(&first, &["proxy"], None).await?;
        let all = [("first", "last"), ("proxy", "last"), ("first", "proxy")];
        assert_eq!(edges(&network), named(all));
        between.remove().await;
        assert_eq!(
            edges(&network),
            named([("proxy", "last"), ("first", "proxy")])
        );
        swapped(&first, &[], None).await?;
        assert_eq!(edges(&network), named([("proxy", "last")]));
        Ok(())
    })
}

#[test]
fn a_default_controller_that_would_decide_nothing_is_not_there() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("graph");
        let names = |stage: Stage<u32>| -> Vec<_> {
            let controllers = stage.stats().controllers;
            controllers.into_iter().map(|(name, _)| name).collect()
        };
        let target = Duration::from_millis(5);
        let stage = network.stage::<u32>("admission").target(target);
        let stage = stage.controller(Threshold::new(5)).declare()?;
        assert_eq!(
            names(stage.stage()),
            ["threshold", "auto-servlets", "seda-batch"]
        );
        let stage = network.stage::<u32>("batch").target(target);
        let stage = stage.controller(SedaBatch::default()).declare()?;
        assert_eq!(names(stage.stage()), ["seda-batch", "auto"]);
        // Nobody decides what is manual.
        let stage = network.stage::<u32>("manual").target(target).manual();
        assert_eq!(names(stage.declare()?.stage()), [""; 0]);
        Ok(())
    })
}
