//! The phases of a run: connecting, warming up, measuring.

use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::or;
use tussah::signal::{Signal, Signals, signal};
use tussah::time::sleep_until;
use tussah::{JoinHandle, spawn};

use super::client::Client;
use super::cpu::{self, Usage, Used};
use super::shared::Run;
use crate::signals;

/// The interval of progress reports.
const TICK_NS: u64 = 1_000_000_000;

/// The phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::load) enum Phase {
    Connecting,
    WarmingUp,
    Measuring,
}

/// The properties of a run other than its counts.
#[derive(Clone, Debug)]
pub(in crate::load) struct Course {
    pub(in crate::load) interrupted: bool,
    /// The time that connecting took.
    pub(in crate::load) connecting: Duration,
    /// The length of the measurement.
    pub(in crate::load) measured: Duration,
    /// The end of the measurement.
    pub(in crate::load) until_ns: u64,
    /// The server's CPU time in the measurement, if its process is known.
    pub(in crate::load) server: Option<Used>,
    /// The CPU time of this process.
    pub(in crate::load) own: Duration,
}

/// Starts the clients, lets them begin together, and ends the run after its requests or its time,
/// or on a signal.
///
/// `tell` is called every second; without it there are no wake-ups for progress.
///
/// # Errors
/// Returns a sentence that states why there was nothing to measure.
pub(in crate::load) async fn run_phases(
    run: Arc<Run>,
    tell: Option<impl FnMut(&Run, Phase)>,
) -> Result<Course, String> {
    let signals = Told::new().map_err(|error| format!("cannot receive signals: {error}"))?;
    let mut wait = Wait {
        run: run.clone(),
        signals,
        tell,
        interrupted: false,
    };
    let count = run.settings.connections;
    let clients: Vec<_> = (0..count)
        .map(|number| spawn(Client::new(run.clone(), number).run()))
        .collect();
    wait.until(Phase::Connecting, None, |run| {
        run.arrived_count() == count || run.is_hopeless()
    })
    .await;
    let connecting = Duration::from_nanos(run.now_ns());
    if run.is_hopeless() {
        let tried = run.arrived_count();
        end(clients).await;
        let samples = run.samples();
        let said = samples.values().next();
        return Err(format!(
            "cannot connect: {tried} of {count} clients failed: {}",
            said.map_or("no answer in time", String::as_str)
        ));
    }
    if !run.settings.warm_up.is_zero() {
        run.start();
        let warm_up_ns = run.now_ns() + run.settings.warm_up.as_nanos() as u64;
        wait.until(Phase::WarmingUp, Some(warm_up_ns), |_| false)
            .await;
    }
    let before = run.settings.pid.map(Usage::of);
    let own = || cpu::time(std::process::id()).unwrap_or_default();
    let own_before = own();
    let from_ns = run.now_ns();
    let length_ns = run
        .settings
        .duration
        .map(|duration| duration.as_nanos() as u64);
    let until_ns = length_ns.map(|length_ns| from_ns + length_ns);
    run.measure(from_ns, until_ns.unwrap_or(u64::MAX - 1));
    // Without a warm-up, clients begin now, and all of their requests count.
    run.start();
    if !wait.interrupted {
        wait.until(Phase::Measuring, until_ns, |run| run.ended_count() == count)
            .await;
    }
    let own = own().saturating_sub(own_before);
    let server = before.map(|before| {
        let pid = run.settings.pid.expect("it was asked for before");
        Usage::of(pid).since(&before)
    });
    run.finish(run.now_ns());
    let until_ns = run.end_ns();
    end(clients).await;
    Ok(Course {
        interrupted: wait.interrupted,
        connecting,
        measured: Duration::from_nanos(until_ns - from_ns),
        until_ns,
        server,
        own,
    })
}

/// Ends the clients, which then leave their records.
async fn end(clients: Vec<JoinHandle<()>>) {
    clients.iter().for_each(JoinHandle::abort);
    for client in clients {
        if let Err(error) = client.await
            && error.is_panic()
        {
            error.resume();
        }
    }
}

/// The signals that end a run early.
struct Told {
    interrupt: Signals,
    terminate: Signals,
}

impl Told {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(Signal::INT)?,
            terminate: signal(Signal::TERM)?,
        })
    }

    async fn recv(&self) {
        or(
            signals::wait(&self.interrupt),
            signals::wait(&self.terminate),
        )
        .await;
    }
}

struct Wait<F> {
    run: Arc<Run>,
    signals: Told,
    tell: Option<F>,
    interrupted: bool,
}

impl<F: FnMut(&Run, Phase)> Wait<F> {
    /// Waits for a condition, a time, or a signal. A second signal ends the process.
    async fn until(&mut self, stage: Phase, until_ns: Option<u64>, is_so: impl Fn(&Run) -> bool) {
        let mut tick_ns = match &self.tell {
            Some(_) => self.run.now_ns() + TICK_NS,
            None => u64::MAX,
        };
        while !self.interrupted && !is_so(&self.run) {
            let next_ns = until_ns.unwrap_or(u64::MAX).min(tick_ns);
            let run = &self.run;
            let timer = async {
                sleep_until(run.instant(next_ns)).await;
                false
            };
            let progress = async {
                run.progressed().await;
                false
            };
            let told = async {
                self.signals.recv().await;
                true
            };
            self.interrupted = or(told, or(timer, progress)).await;
            let now_ns = self.run.now_ns();
            if until_ns.is_some_and(|until_ns| now_ns >= until_ns) {
                break;
            }
            if let Some(tell) = &mut self.tell
                && now_ns >= tick_ns
            {
                tick_ns += TICK_NS;
                tell(&self.run, stage);
            }
        }
        if self.interrupted {
            let again = Told::new();
            spawn(async move {
                if let Ok(again) = again {
                    again.recv().await;
                    std::process::exit(130);
                }
            });
        }
    }
}
