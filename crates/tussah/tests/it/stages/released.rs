//! When handlers are dropped, with what they hold: also where stages refer to each other in a
//! circle, or to the network.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_lite::future::poll_once;
use tussah::stage::control::Permits;
use tussah::stage::control::{Cadence, Controller, Owns, Sample, Settings, process::Governor};
use tussah::stage::{Batch, BuildError, DirectHandler, Event, Network, Reason, Refusal, Stage};
use tussah::{BlockingPool, PoolPolicy, Runtime};

use super::support::{Door, Noted, each, until};
use crate::runtime;

/// How long a test waits before it says that something is leaked.
const PATIENCE: Duration = Duration::from_secs(10);

/// Stands for what a handler holds.
type Held = Arc<()>;

/// Makes a stage `first`, and others; gives it back without the type of its handler.
type Build = fn(&Network, Held) -> Result<Stage<u32>, BuildError>;

/// A way to build a network whose stages hold themselves.
struct Way {
    name: &'static str,
    build: Build,
    /// The circle is not only one of handlers and their makers: what a network that has been
    /// drained still shows closes it, too.
    shown: bool,
}

/// A handler that is called directly.
struct Holds(Network, Held);

impl DirectHandler for Holds {
    type Event = u32;
    fn handle(&self, _: u32) {
        keep(&(&self.0, &self.1));
    }
}

/// A controller that decides nothing.
struct Looks(Network, Held);

impl Controller for Looks {
    fn name(&self) -> &'static str {
        "looks"
    }
    fn owns(&self) -> Owns {
        Owns::BATCH
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(1_000_000_000)
    }
    fn sample(&mut self, _: &Sample<'_>, _: u64) -> Settings {
        keep(&(&self.0, &self.1));
        Settings::default()
    }
}

/// Has the closure in which it is called hold something.
fn keep<T>(_: &T) {}

/// A handler that holds something, and does nothing.
fn holding<T: Send + Sync + 'static>(holds: T) -> super::support::Each<u32, impl Fn(u32)> {
    each(move |_| keep(&holds))
}

/// A stage that others send to.
fn last(network: &Network) -> Result<Stage<u32, impl Clone + Send + Sync + 'static>, BuildError> {
    network.stage("last").handler(|_| Ok(each(|_: u32| ())))
}

const WAYS: &[Way] = &[
    Way {
        name: "a maker that keeps another stage",
        shown: false,
        build: |network, held| {
            let last = last(network)?;
            network.stage("first").serial(move |edges| {
                let last = edges.to(&last).queue(1)?;
                Ok(holding((last, Arc::clone(&held))))
            })?;
            network.find("first")
        },
    },
    Way {
        name: "a handler that keeps its network",
        shown: false,
        build: |network, held| {
            let own = network.clone();
            network
                .stage("first")
                .handler(move |_| Ok(holding((own, held))))?;
            network.find("first")
        },
    },
    Way {
        name: "a handler by key",
        shown: false,
        build: |network, held| {
            let own = network.clone();
            let stage = network.stage("first").keyed_by(|n: &u32| *n);
            stage.handler(move |_| Ok(holding((own, held))))?;
            network.find("first")
        },
    },
    Way {
        name: "a handler that is called, and its caller",
        shown: false,
        build: |network, held| {
            let (own, also) = (network.clone(), Arc::clone(&held));
            let called = network
                .stage("called")
                .serial(move |_| Ok(holding((own.clone(), Arc::clone(&also)))))?;
            let (own, by_name) = (network.clone(), network.find::<u32>("called")?);
            network.stage("first").handler(move |edges| {
                let calls = (edges.to(&called).call()?, edges.to(&by_name).call()?);
                Ok(holding((own, calls, held)))
            })?;
            network.find("first")
        },
    },
    Way {
        name: "a handler that is called directly, and its caller",
        shown: false,
        build: |network, held| {
            let (own, also) = (network.clone(), Arc::clone(&held));
            let called = network
                .stage("called")
                .direct(move |_| Ok(Holds(own, also)))?;
            network.stage("first").handler(move |edges| {
                let call = edges.to(&called).direct(1)?;
                Ok(holding((call, held)))
            })?;
            network.find("first")
        },
    },
    Way {
        name: "stages that send to each other",
        shown: false,
        build: |network, held| {
            let declared = network.stage("first").declare()?;
            let first = declared.stage();
            network
                .stage("back")
                .handler(|edges| Ok(holding(edges.to(&first).offer(1)?)))?;
            declared.handler(|edges| {
                let back = edges.named::<u32>("back")?.queue(1)?;
                Ok(holding((back, held)))
            })?;
            Ok(first)
        },
    },
    Way {
        name: "a proxy",
        shown: false,
        build: |network, held| {
            let last = last(network)?;
            let own = network.clone();
            network.stage("first").handler(|edges| {
                let last = edges.to(&last).queue(1)?;
                Ok(holding((last, own)))
            })?;
            let own = network.clone();
            let proxy = network.stage("proxy").handler(|edges| {
                let last = edges.to(&last).queue(1)?;
                Ok(holding((last, own, held)))
            })?;
            drop(proxy.between("first", &last)?);
            network.find("first")
        },
    },
    Way {
        name: "a handler that blocks",
        shown: false,
        build: |network, held| {
            let own = network.clone();
            network.stage("first").blocking(move |_| {
                Ok(move |batch: &mut Batch<u32>| {
                    batch.drain().for_each(drop);
                    keep(&(&own, &held));
                })
            })
        },
    },
    Way {
        name: "a handler that blocks, in a pool of its own",
        shown: false,
        build: |network, held| {
            let own = network.clone();
            let pool = Arc::new(BlockingPool::new("own", PoolPolicy::default()));
            network.stage("first").blocking_on(&pool, move |_| {
                Ok(move |batch: &mut Batch<u32>| {
                    batch.drain().for_each(drop);
                    keep(&(&own, &held));
                })
            })
        },
    },
    Way {
        name: "callbacks",
        shown: true,
        build: |network, held| {
            let holds = [(); 4].map(|()| (network.clone(), Arc::clone(&held)));
            let [one, two, three, four] = holds;
            let stage = network.stage::<u32>("first");
            let stage = stage.on_drop(move |_, _| keep(&one));
            let stage = stage.on_close(move |_| keep(&two));
            let stage = stage.degrade(move |_| keep(&three));
            let stage = stage.keyed_by(move |n| {
                keep(&four);
                *n
            });
            stage.handler(|_| Ok(each(|_| ())))?;
            network.find("first")
        },
    },
    Way {
        name: "a controller",
        shown: true,
        build: |network, held| {
            let stage = network.stage("first");
            let stage = stage.controller(Looks(network.clone(), held));
            stage.handler(|_| Ok(each(|_: u32| ())))?;
            network.find("first")
        },
    },
    Way {
        name: "a stage that has no handler yet",
        shown: true,
        build: |network, held| {
            let own = network.clone();
            let stage = network.stage::<u32>("declared");
            let stage = stage.on_drop(move |_, _| keep(&(&own, &held)));
            drop(stage.declare()?);
            last(network)?;
            network.find("last")
        },
    },
    Way {
        name: "a network with a governor",
        shown: false,
        build: |network, held| {
            network.govern(Governor::new(4));
            network.stage("first").handler(move |_| Ok(holding(held)))?;
            network.find("first")
        },
    },
];

/// Builds a network and has it handle something if it is `used`.
fn built(runtime: &Runtime, way: &Way, used: bool) -> (Network, Held) {
    let (network, held) = (Network::on(runtime.handle(), way.name), Held::default());
    let first = (way.build)(&network, Arc::clone(&held)).expect(way.name);
    assert!(Arc::strong_count(&held) > 1, "{}", way.name);
    if used {
        runtime.block_on(async {
            first.sender().try_send(1).expect("there is room");
            until(&first, |stats| stats.finished == 1).await;
        });
    }
    (network, held)
}

/// Waits until what was held no longer is: servlets end by themselves, on whatever OS thread. A
/// leak would be waited for for ever, and so fails after a while.
#[track_caller]
fn released(held: &Held, way: &Way, used: bool) {
    let begun = Instant::now();
    while Arc::strong_count(held) > 1 {
        let patient = begun.elapsed() < PATIENCE;
        assert!(patient, "{}, used: {used}: it is held", way.name);
        std::thread::yield_now();
    }
}

#[test]
fn a_runtime_that_ends_drops_what_handlers_hold() {
    for way in WAYS {
        for used in [false, true] {
            let runtime = runtime(1);
            let (network, held) = built(&runtime, way, used);
            drop(network);
            drop(runtime);
            released(&held, way, used);
        }
    }
}

#[test]
fn a_network_that_is_drained_drops_what_handlers_hold() {
    for way in WAYS.iter().filter(|way| !way.shown) {
        for used in [false, true] {
            let runtime = runtime(1);
            let (network, held) = built(&runtime, way, used);
            runtime.block_on(network.drain());
            released(&held, way, used);
            assert_eq!(network.stats()[0].queued, 0, "it still shows its stages");
        }
    }
}

#[test]
fn a_network_that_is_closed_drops_all_that_it_was_built_with() {
    for way in WAYS {
        for used in [false, true] {
            let runtime = runtime(1);
            let (network, held) = built(&runtime, way, used);
            network.close();
            drop(network);
            released(&held, way, used);
        }
    }
}

#[test]
fn a_network_with_a_governor_is_freed_with_its_last_handle() -> Result<(), BuildError> {
    let runtime = runtime(1);
    let network = Network::on(runtime.handle(), "governed");
    network.govern(Governor::new(4));
    let held = Held::default();
    let inside = Arc::clone(&held);
    let stage = network
        .stage("stage")
        .handler(move |_| Ok(holding(inside)))?;
    drop((network, stage));
    assert_eq!(Arc::strong_count(&held), 1);
    Ok(())
}

/// A chain of stages of all kinds, none of which refers to the network; the handler of the last one
/// holds something.
fn chain(network: &Network, held: Held) -> Result<Stage<u32>, BuildError> {
    let last = network.stage("last").handler(|_| Ok(holding(held)))?;
    let keyed = network.stage("keyed").keyed_by(|n: &u32| *n);
    let keyed = keyed.handler(|edges| {
        let next = edges.to(&last).queue(1)?;
        Ok(each(move |n: u32| next.try_send(n).expect("there is room")))
    })?;
    let keyed = keyed.sender();
    network.stage("first").serial(move |_| {
        let next = keyed.clone();
        Ok(each(move |n: u32| next.try_send(n).expect("there is room")))
    })?;
    network.find("first")
}

#[test]
fn a_network_that_has_worked_is_freed_with_its_last_handle() -> Result<(), BuildError> {
    let runtime = runtime(2);
    let (network, held) = (Network::on(runtime.handle(), "chain"), Held::default());
    let first = chain(&network, Arc::clone(&held))?;
    let last = network.find::<u32>("last")?;
    runtime.block_on(async {
        first.sender().try_send(1).expect("there is room");
        until(&last, |stats| stats.finished == 1).await;
    });
    drop((first, last));
    assert!(Arc::strong_count(&held) > 1, "the network keeps its stages");
    drop(network);
    let begun = Instant::now();
    while Arc::strong_count(&held) > 1 {
        assert!(begun.elapsed() < PATIENCE, "it is held");
        std::thread::yield_now();
    }
    Ok(())
}

/// A servlet has been called, and has not come, when the last handle goes.
#[test]
fn admitted_events_are_handled_after_the_last_handle_is_dropped() -> Result<(), BuildError> {
    for permits in [false, true] {
        let came = Noted::default();
        let note = came.clone();
        runtime(1).block_on_spawned(async move {
            let network = Network::new("last handle");
            let manager = Arc::new(Permits::new(1));
            let mut stage = network.stage("stage").servlets(1);
            let door = Door::new();
            if permits {
                stage = stage.threads(manager.clone());
            }
            let stage = stage.handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
            stage.sender().try_send(1).expect("there is room");
            until(&stage, |stats| stats.servlets.parked == 1).await;
            let pass = door.clone();
            let other = network.stage("other").threads(manager.clone());
            let other = other.blocking(move |_| {
                let pass = pass.clone();
                Ok(move |batch: &mut Batch<u32>| {
                    batch.next();
                    futures_lite::future::block_on(pass.pass());
                })
            })?;
            if permits {
                // It has the one permit.
                other.sender().try_send(1).expect("there is room");
                door.until(1).await;
            }
            stage.sender().try_send(2).expect("there is room");
            drop((stage, network, other));
            door.let_through(1);
            came.until(2).await;
            assert_eq!(came.take(), [1, 2]);
            Ok::<_, BuildError>(())
        })?;
    }
    Ok(())
}

#[test]
fn waiting_senders_fail_when_nothing_can_resume_a_stage() -> Result<(), BuildError> {
    for declared in [false, true] {
        runtime(1).block_on_spawned(async move {
            let network = Network::new("paused");
            let builder = network.stage("stage").queue(1);
            let (stage, rest) = if declared {
                let declared = builder.declare()?;
                (declared.stage(), Some(declared))
            } else {
                builder.handler(|_| Ok(each(|_: u32| ())))?;
                (network.find("stage")?, None)
            };
            let (sender, told) = (stage.sender(), Noted::default());
            if !declared {
                // It has a servlet, which rests.
                sender.try_send(0).expect("there is room");
                until(&stage, |stats| stats.servlets.parked == 1).await;
            }
            stage.pause();
            let note = told.clone();
            let event = Event::new(1).on_drop(move |why| note.add(why));
            sender.try_send(event).expect("there is room");
            let mut waiting = Box::pin(sender.send(2));
            assert!(poll_once(&mut waiting).await.is_none());
            drop((stage, rest));
            assert!(poll_once(&mut waiting).await.is_none());
            drop(network);
            let told_why = waiting.await.expect_err("it is closed").why;
            assert_eq!(
                (told_why, told.take()),
                (Refusal::Closed, vec![Reason::ShutDown])
            );
            Ok::<_, BuildError>(())
        })?;
    }
    Ok(())
}
