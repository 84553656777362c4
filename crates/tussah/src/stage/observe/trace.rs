//! Traces of events: the stages that they visited, with times.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::stage::event::{Batch, Chunk, Class, Event, Reason, queued_ns};
use crate::stage::network::Network;
use crate::stage::run::{Gone, Shared};
use crate::stage::send::here;

/// Bound, in spans: the most recent spans that a network keeps, which take about 300 KiB. The
/// network drops older spans.
pub const SPANS_MAX: usize = 4096;

/// The first number of the traces that the network chooses itself.
const CHOSEN: u64 = 1 << 32;

/// A traced event's visit to a stage. Times are in nanoseconds since the process created its first
/// network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// The number of the trace that the event belongs to.
    pub trace: u64,
    /// The name of the stage.
    pub stage: Arc<str>,
    /// The event's class.
    pub class: Class,
    /// The time at which the event was queued. If the event was passed in a call, `queued_ns`
    /// equals `begun_ns`.
    pub queued_ns: u64,
    /// The time at which the event's batch began. If no handler took the event, `begun_ns` equals
    /// `ended_ns`.
    pub begun_ns: u64,
    /// The time at which the event's batch ended or the event was dropped.
    pub ended_ns: u64,
    /// The outcome of the visit.
    pub end: SpanEnd,
}

/// The outcome of a traced event's visit to a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanEnd {
    /// The event's batch ended.
    Finished,
    /// The event was dropped.
    Dropped(Reason),
}

/// The most recent spans of a network, in the order in which they ended. The `Display`
/// implementation groups the spans by trace.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    /// The spans.
    pub spans: Vec<Span>,
    /// The number of older spans that were dropped.
    pub forgotten: u64,
}

impl Network {
    /// Traces one out of every `n` events that enter the network after this call; 0 stops tracing.
    /// An event enters the network if it comes from outside the network's stages, for example from
    /// [sockets](crate::stage::net) or from the sources of a [graph](crate::flow). Events marked as
    /// [traced](Event::traced) are always traced, whatever the value of `n`.
    ///
    /// Tracing also adds a small cost to untraced events: the network counts the events that enter,
    /// and sources hand over their events one at a time. Traces that the network starts have
    /// numbers from 2^32 upward.
    ///
    /// # Examples
    /// ```
    /// use tussah::stage::observe::SpanEnd;
    /// use tussah::stage::{Batch, Event, Handler, Network, Sender};
    ///
    /// struct Half(Option<Sender<u32>>);
    ///
    /// impl Handler for Half {
    ///     type Event = u32;
    ///     async fn handle(&self, batch: &mut Batch<u32>) {
    ///         while let Some(number) = batch.next() {
    ///             if let Some(next) = &self.0 {
    ///                 next.send(number / 2).await.expect("the next stage is open");
    ///             }
    ///         }
    ///     }
    /// }
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(async {
    /// let network = Network::new("halves");
    /// let last = network.stage("last").handler(|_| Ok(Half(None)))?;
    /// let first = network.stage("first");
    /// let first = first.handler(|edges| Ok(Half(Some(edges.to(&last).queue(10)?))))?;
    /// network.trace_one_in(3);
    /// for number in 0..6 {
    ///     first.sender().send(number).await.expect("it is open");
    /// }
    /// first.sender().send(Event::new(6).traced(17)).await.expect("it is open");
    /// first.drain().await;
    /// last.drain().await;
    /// let traces = network.traces();
    /// // Two were chosen and one was sent as traced; each visited two stages.
    /// assert_eq!(traces.spans.len(), 6);
    /// assert!(traces.of(17).all(|span| span.end == SpanEnd::Finished));
    /// println!("{traces}");
    /// # Ok::<(), tussah::stage::BuildError>(())
    /// # }).expect("no error");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn trace_one_in(&self, n: u64) {
        self.inner.tracer.one_in.store(n, Ordering::Relaxed);
    }

    /// Returns the most recent spans; at most 4096.
    #[must_use]
    pub fn traces(&self) -> Traces {
        let ring = self.inner.tracer.ring.lock();
        Traces {
            spans: ring.spans.iter().cloned().collect(),
            forgotten: ring.forgotten,
        }
    }
}

impl Traces {
    /// Returns the spans of one trace, in the order in which they ended.
    pub fn of(&self, trace: u64) -> impl Iterator<Item = &Span> {
        self.spans.iter().filter(move |span| span.trace == trace)
    }

    /// Renders the spans as a JSON array of objects.
    #[must_use]
    pub fn to_json(&self) -> String {
        let spans = self.spans.iter().map(|span| {
            let end = match span.end {
                SpanEnd::Finished => "finished".to_owned(),
                SpanEnd::Dropped(reason) => reason.to_string(),
            };
            json!({
                "trace": span.trace,
                "stage": *span.stage,
                "class": span.class.0,
                "queued_ns": span.queued_ns,
                "begun_ns": span.begun_ns,
                "ended_ns": span.ended_ns,
                "end": end,
            })
        });
        spans.collect::<Value>().to_string()
    }
}

impl fmt::Display for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.forgotten > 0 {
            writeln!(f, "({} earlier spans are not kept)", self.forgotten)?;
        }
        let mut spans: Vec<_> = self.spans.iter().collect();
        spans.sort_by_key(|span| (span.trace, span.queued_ns, span.ended_ns));
        for trace in spans.chunk_by(|one, other| one.trace == other.trace) {
            let start_ns = trace[0].queued_ns;
            let start = Duration::from_nanos(start_ns);
            writeln!(f, "trace {} at {start:?}", trace[0].trace)?;
            for span in trace {
                let time =
                    |from_ns: u64, to_ns: u64| Duration::from_nanos(to_ns.saturating_sub(from_ns));
                write!(
                    f,
                    "  +{:?} {}: queued {:?}, handled {:?}",
                    time(start_ns, span.queued_ns),
                    span.stage,
                    time(span.queued_ns, span.begun_ns),
                    time(span.begun_ns, span.ended_ns),
                )?;
                match span.end {
                    SpanEnd::Finished => writeln!(f)?,
                    SpanEnd::Dropped(reason) => writeln!(f, ", {reason}")?,
                }
            }
        }
        Ok(())
    }
}

/// The tracing state of a network.
#[derive(Debug, Default)]
pub(crate) struct Tracer {
    one_in: AtomicU64,
    /// The number of events from outside, counted while some of them are chosen.
    seen: AtomicU64,
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    spans: VecDeque<Span>,
    forgotten: u64,
}

impl Tracer {
    /// Returns whether events are chosen for traces.
    pub(crate) fn is_on(&self) -> bool {
        self.one_in.load(Ordering::Relaxed) != 0
    }

    /// Returns the trace number for the next event from outside, if the event is to be traced.
    #[inline]
    pub(crate) fn choose(&self) -> Option<u64> {
        let one_in = self.one_in.load(Ordering::Relaxed);
        if one_in == 0 {
            return None;
        }
        let seen = self.seen.fetch_add(1, Ordering::Relaxed);
        seen.is_multiple_of(one_in)
            .then_some(CHOSEN + seen / one_in)
    }

    fn note(&self, span: Span) {
        let mut ring = self.ring.lock();
        if ring.spans.len() == SPANS_MAX {
            ring.spans.pop_front();
            ring.forgotten += 1;
        }
        ring.spans.push_back(span);
    }
}

/// The traced events of a batch.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// True if the batch may contain an event that is traced, has a deadline or can be cancelled.
    pub(crate) any: bool,
    /// The traced events that have been taken.
    pub(crate) taken: Vec<Taken>,
}

/// A traced event that a handler has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    trace: u64,
    stamp: u64,
    settled: bool,
    /// The reason why the event ended with its handler, if it did.
    dropped: Option<Reason>,
}

impl Marks {
    pub(crate) fn of<E>(events: &Chunk<E>) -> Self {
        Self {
            any: events.iter().any(|event| event.more.is_some()),
            taken: Vec::new(),
        }
    }

    /// Returns whether the batch may contain such an event, or a traced event has been taken.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.any || !self.taken.is_empty()
    }

    /// Notes that an event is taken. Events that are sent from here on belong to its trace, if it
    /// has one.
    #[cold]
    pub(crate) fn take<E>(&mut self, event: &Event<E>) {
        let trace = event.trace();
        here::set_trace(trace);
        if trace != 0 {
            self.taken.push(Taken {
                trace,
                stamp: event.stamp(),
                settled: false,
                dropped: None,
            });
        }
    }

    /// Ends the current trace: events that are sent from here on belong to no trace.
    #[inline]
    pub(crate) fn pause(&self) {
        if self.any {
            here::set_trace(0);
            here::set_path(None);
        }
    }

    /// Settles the events taken so far.
    #[inline]
    pub(crate) fn settle(&mut self) {
        for taken in &mut self.taken {
            taken.settled = true;
        }
    }

    /// Notes that the handler did not finish.
    pub(crate) fn dropped(&mut self, reason: Reason) {
        for taken in &mut self.taken {
            if !taken.settled {
                taken.dropped.get_or_insert(reason);
            }
        }
    }
}

impl Taken {
    fn end(self) -> SpanEnd {
        self.dropped.map_or(SpanEnd::Finished, SpanEnd::Dropped)
    }
}

impl<E> Shared<E> {
    /// Records the traced events of a run that ends.
    #[cold]
    pub(crate) fn traced(&self, batch: &mut Batch<E>, begun_ns: u64, ended_ns: u64) {
        for taken in batch.traces().taken.drain(..) {
            let queued_ns = queued_ns(taken.stamp);
            // A servlet reads the clock before it gets the lock, so an event may arrive in between.
            let begun_ns = begun_ns.max(queued_ns);
            self.tracer.note(Span {
                trace: taken.trace,
                stage: Arc::clone(&self.name),
                class: Class((taken.stamp & 0xff) as u8),
                queued_ns,
                begun_ns,
                ended_ns: ended_ns.max(begun_ns),
                end: taken.end(),
            });
        }
    }

    /// Records that an event ended in the queue, if it is traced.
    pub(crate) fn trace_dropped(&self, event: &Event<E>, reason: Reason) {
        let trace = event.trace();
        if trace == 0 {
            return;
        }
        let now_ns = self.time.now_ns();
        self.tracer.note(Span {
            trace,
            stage: Arc::clone(&self.name),
            class: event.class_of(),
            queued_ns: queued_ns(event.stamp()),
            begun_ns: now_ns,
            ended_ns: now_ns,
            end: SpanEnd::Dropped(reason),
        });
    }
}

impl<E: Send + 'static> Shared<E> {
    /// Calls the current handler with a batch that needs checks of its events.
    pub(crate) async fn call_traced(self: &Arc<Self>, batch: &mut Batch<E>) -> Result<(), Gone> {
        let begun_ns = self.time.now_ns();
        batch.check_called(self, begun_ns);
        let before = batch.traces().taken.len();
        let (trace, path) = (here::trace(), here::path());
        let called = self.call_direct(batch).await;
        // The caller's current trace and path continue.
        here::set_trace(trace);
        here::set_path(path);
        let ended_ns = self.time.now_ns();
        for taken in batch.traces().taken.iter().skip(before) {
            self.tracer.note(Span {
                trace: taken.trace,
                stage: Arc::clone(&self.name),
                class: Class((taken.stamp & 0xff) as u8),
                queued_ns: begun_ns,
                begun_ns,
                ended_ns,
                end: taken.end(),
            });
        }
        called
    }
}
