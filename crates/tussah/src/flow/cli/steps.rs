//! The steps of a test, executed in virtual time.

use std::time::Duration;

use futures_util::future::{Either, select};
use tussah_weave::{Diagnostic, Expr, Place, Span, Step, Test, Value};

use super::rig::{Feed, Rig, name};
use super::run::unsharded;
use crate::flow::text::Log;
use crate::flow::{GraphError, Running};
use crate::{Clock, Handle, ManualClock, Runtime};

/// The minimum step of virtual time. By default, a step is a thousandth of the whole time.
const STEP_MIN: Duration = Duration::from_millis(1);

/// Bound, in hours of virtual time: the longest time in which a graph must handle its items after
/// its sources have stopped. A test whose graph needs longer fails.
const DRAIN_HOURS: u64 = 1;

/// Bound, in attempts of 10 ms each: the maximum wait of a test for items that files or sockets
/// delay, because virtual time does not include these delays.
const LATE_ATTEMPTS: u32 = 100;

/// The reason why a test failed.
pub(super) struct Failure {
    pub(super) errors: Vec<Diagnostic>,
    /// The lines of a diff, if other items have arrived.
    pub(super) diff: String,
}

impl Failure {
    fn at(span: Span, error: impl Into<String>) -> Self {
        vec![Diagnostic::error(span, error)].into()
    }
}

impl From<Vec<Diagnostic>> for Failure {
    fn from(errors: Vec<Diagnostic>) -> Self {
        let diff = String::new();
        Self { errors, diff }
    }
}

/// Runs a test.
///
/// # Errors
/// Returns the first step that fails.
pub(super) fn run(test: &Test, rig: Rig) -> Result<(), Failure> {
    let fail = |error| Failure::at(test.span, error);
    let clock = Clock::manual();
    let builder = Runtime::builder().workers(1).clock(clock.clock());
    let runtime = builder.no_watchdog().build();
    let runtime = runtime.map_err(|error| fail(format!("cannot start a runtime: {error}")))?;
    runtime.block_on(async {
        let Rig {
            graph,
            places,
            logs,
            feeds,
        } = rig;
        let running = graph.start().map_err(|mut error| {
            let place = match &mut error {
                GraphError::Instance {
                    instance, position, ..
                } => {
                    // The excerpt shows the position.
                    *position = None;
                    places.get(unsharded(instance))
                }
                _ => None,
            };
            Failure::at(*place.unwrap_or(&test.span), error.to_string())
        })?;
        let stage = Stage {
            running,
            runtime: runtime.handle().clone(),
            clock,
        };
        stage.settle().await;
        for step in &test.steps {
            match step {
                Step::Replace { .. } => {}
                Step::Send { to, values, span } => {
                    let sent = stage.send(&feeds[&name(to)], values).await;
                    sent.map_err(|error| Failure::at(*span, error))?;
                }
                Step::Expect {
                    at,
                    values,
                    within,
                    span,
                } => {
                    let within = within.as_ref().map(duration).unwrap_or_default();
                    let log = &logs[&name(at)];
                    stage.expect(log, at, values, within, *span).await?;
                }
                Step::Advance(time) => stage.advance(duration(time), || false).await,
                Step::Drain(span) => {
                    let drained = stage.drain().await;
                    drained.map_err(|error| Failure::at(*span, error))?;
                }
            }
        }
        Ok(())
    })
}

/// Returns a time that the checker has found to be one.
fn duration(time: &Expr) -> Duration {
    match time.eval(&|_| None) {
        Ok(Value::Duration(time)) => time,
        _ => Duration::ZERO,
    }
}

/// Returns the text of a value: that of a string has no quotes.
fn plain(value: &Expr) -> String {
    match value.eval(&|_| None) {
        Ok(Value::Text(text)) => text,
        Ok(value) => value.to_string(),
        Err(error) => error.to_string(),
    }
}

struct Stage {
    running: Running,
    runtime: Handle,
    clock: ManualClock,
}

impl Stage {
    /// Waits until nothing more can be done without advancing the time.
    async fn settle(&self) {
        self.runtime.idle().await;
    }

    async fn send(&self, feeds: &[Feed], values: &[Expr]) -> Result<(), String> {
        for value in values {
            for feed in feeds {
                let sent = feed.text.send(&self.running, &feed.end, &plain(value))?;
                let after = feed.after;
                let sent = self.runtime.spawn(async move {
                    if !after.is_zero() {
                        crate::time::sleep(after).await;
                    }
                    sent.await;
                });
                drop(sent);
            }
            self.settle().await;
        }
        Ok(())
    }

    /// Waits until the OS threads of blocking modules have nothing to do, and nothing that they
    /// have sent is in transit. If a thread waits for virtual time to pass, this wait ends after
    /// [`LATE_ATTEMPTS`].
    async fn rest(&self) {
        let (mut last, mut attempts) = (None, 0);
        while !self.running.blocking.is_empty() && attempts < LATE_ATTEMPTS {
            self.settle().await;
            let stats = self.running.network().stats();
            let blocks = |name: &str| self.running.blocking.iter().any(|it| it == name);
            let is_busy = stats
                .iter()
                .any(|stats| blocks(&stats.name) && (stats.queue_len > 0 || stats.in_service > 0));
            // A module that is idle again may have passed an item to another blocking module.
            let arrived: u64 = stats.iter().map(|stats| stats.arrived).sum();
            match is_busy {
                true => {
                    std::thread::sleep(Duration::from_millis(10));
                    attempts += 1;
                    last = None;
                }
                false if last == Some(arrived) => return,
                false => last = Some(arrived),
            }
        }
    }

    /// Advances the time in steps, until a condition holds.
    async fn advance(&self, time: Duration, is_enough: impl Fn() -> bool) {
        let step = (time / 1000).max(STEP_MIN);
        let mut rest = time;
        self.settle().await;
        while !rest.is_zero() && !is_enough() {
            let next = step.min(rest);
            self.clock.advance(next);
            self.settle().await;
            rest -= next;
        }
    }

    async fn expect(
        &self,
        log: &Log,
        at: &Place,
        values: &[Expr],
        within: Duration,
        span: Span,
    ) -> Result<(), Failure> {
        let wanted: Vec<String> = values.iter().map(plain).collect();
        let is_wrong = |got: &[String]| got.iter().zip(&wanted).any(|(got, wanted)| got != wanted);
        let is_decided = || {
            let got = log.lock();
            got.len() >= wanted.len().max(1) || is_wrong(&got)
        };
        if wanted.is_empty() {
            self.rest().await;
        }
        self.advance(within, is_decided).await;
        if wanted.is_empty() {
            self.rest().await;
        }
        let mut attempts = 0;
        while !wanted.is_empty() && !is_decided() && attempts < LATE_ATTEMPTS {
            std::thread::sleep(Duration::from_millis(10));
            self.settle().await;
            attempts += 1;
        }
        let mut got = log.lock();
        let is_right = got.len() >= wanted.len() && !is_wrong(&got);
        let place = name(at);
        if is_right && (!wanted.is_empty() || got.is_empty()) {
            got.drain(..wanted.len());
            return Ok(());
        }
        let message = match (
            wanted.is_empty(),
            got.len() < wanted.len() && !is_wrong(&got),
        ) {
            (true, _) => format!("items have arrived at `{place}`"),
            (false, true) => format!("items are missing at `{place}`"),
            (false, false) => format!("other items have arrived at `{place}`"),
        };
        Err(Failure {
            diff: diff(&wanted, &got),
            ..Failure::at(span, message)
        })
    }

    /// Stops the sources, and advances the time until all items have been handled.
    async fn drain(&self) -> Result<(), String> {
        self.settle().await;
        self.running.abort_sources();
        let drain = std::pin::pin!(self.running.drain());
        let time = std::pin::pin!(async {
            self.advance(Duration::from_secs(1), || false).await;
            self.advance(Duration::from_secs(DRAIN_HOURS * 3600), || false)
                .await;
        });
        match select(drain, time).await {
            Either::Left(_) => Ok(()),
            Either::Right(_) => Err(format!(
                "the graph still has items after {DRAIN_HOURS} h of virtual time"
            )),
        }
    }
}

/// Returns a diff: missing items with `-`, unexpected items with `+`, and common items with a
/// space.
fn diff(wanted: &[String], got: &[String]) -> String {
    let mut lines = String::new();
    let mut add = |mark: char, text: &String| lines += &format!("  {mark} {text}\n");
    for index in 0..wanted.len().max(got.len()) {
        match (wanted.get(index), got.get(index)) {
            (Some(wanted), Some(got)) if wanted == got => add(' ', got),
            (wanted, got) => {
                wanted.iter().for_each(|text| add('-', text));
                // Items after the expected ones are not an error.
                let got = got.filter(|_| wanted.is_some() || index == 0);
                got.iter().for_each(|text| add('+', text));
            }
        }
    }
    lines
}
