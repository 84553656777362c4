//! Traces of events: where they were, from when to when.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::batch::{Batch, Chunk};
use super::event::{Class, Event, Reason, queued_ns};
use super::host::Gone;
use super::json::{self, Object};
use super::network::Network;
use super::outgoing;
use super::shared::Shared;

/// Bound, in spans of a network: how many are kept, the newest; about 300 KiB.
pub const SPANS_MAX: usize = 4096;

/// What the numbers of traces begin with that the network chose by itself.
const CHOSEN: u64 = 1 << 32;

/// What became of a traced event at one stage. Times are in nanoseconds since the network's start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// The number of the trace.
    pub trace: u64,
    /// The stage.
    pub stage: Arc<str>,
    /// The event's class.
    pub class: Class,
    /// When it was queued; as `begun_ns` if it came by a call.
    pub queued_ns: u64,
    /// When its batch was begun; as `ended_ns` if it never was.
    pub begun_ns: u64,
    /// When its batch ended, or it was dropped.
    pub ended_ns: u64,
    /// How it ended.
    pub end: End,
}

/// How a traced event ended at a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Its batch ended.
    Finished,
    /// It was dropped.
    Dropped(Reason),
}

/// The spans that a network keeps, in the order in which they ended. Printed, it has the spans of each trace below each other.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    /// The spans.
    pub spans: Vec<Span>,
    /// How many older ones are no longer kept.
    pub forgotten: u64,
}

impl Network {
    /// Has one in `n` of the events traced that are sent from outside of stages, from the next on; 0 ends that. What [sockets](super::net) tell comes from outside.
    /// Events that are sent [traced](Event::traced) always are.
    ///
    /// What is not traced is neither slower for it nor looked at; the numbers of traces that begin so are 2^32 and above.
    ///
    /// # Examples
    /// ```
    /// use tussah::stage::{Batch, End, Event, Handler, Network, Sender};
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
    /// let first = network.stage("first").handler(|edges| Ok(Half(Some(edges.to(&last).queue(10)?))))?;
    /// network.trace_one_in(3);
    /// for number in 0..6 {
    ///     first.sender().send(number).await.expect("it is open");
    /// }
    /// first.sender().send(Event::new(6).traced(17)).await.expect("it is open");
    /// first.drain().await;
    /// last.drain().await;
    /// let traces = network.traces();
    /// assert_eq!(traces.spans.len(), 6); // two were chosen, one was sent so; each was at two stages
    /// assert!(traces.of(17).all(|span| span.end == End::Finished));
    /// println!("{traces}");
    /// # Ok::<(), tussah::stage::BuildError>(())
    /// # }).expect("no error");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn trace_one_in(&self, n: u64) {
        self.inner.tracer.one_in.store(n, Ordering::Relaxed);
    }

    /// What is known of the events that were traced: the last 4096 spans.
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
    /// The spans of one trace, in the order in which they ended.
    pub fn of(&self, trace: u64) -> impl Iterator<Item = &Span> {
        self.spans.iter().filter(move |span| span.trace == trace)
    }

    /// The spans as a JSON list of objects.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        json::list(&mut out, &self.spans, |out, span| {
            let mut object = Object::new(out);
            object
                .number("trace", span.trace)
                .text("stage", &span.stage)
                .number("class", u64::from(span.class.0))
                .number("queued_ns", span.queued_ns)
                .number("begun_ns", span.begun_ns)
                .number("ended_ns", span.ended_ns);
            match span.end {
                End::Finished => object.text("end", "finished"),
                End::Dropped(reason) => object.text("end", &reason.to_string()),
            };
            object.end();
        });
        out
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
                    End::Finished => writeln!(f)?,
                    End::Dropped(reason) => writeln!(f, ", {reason}")?,
                }
            }
        }
        Ok(())
    }
}

/// What a network traces.
#[derive(Debug, Default)]
pub(crate) struct Tracer {
    one_in: AtomicU64,
    /// Events from outside, while some of them are chosen.
    seen: AtomicU64,
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    spans: VecDeque<Span>,
    forgotten: u64,
}

impl Tracer {
    /// The number of the trace of the next event from outside, if it is one to be traced.
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

/// What a batch knows of the traced events in it.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// An event that is traced, or has a deadline, may be in the batch.
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
    panicked: bool,
}

impl Marks {
    pub(crate) fn of<E>(events: &Chunk<E>) -> Self {
        Self {
            any: events.iter().any(Event::is_watched),
            taken: Vec::new(),
        }
    }

    /// Whether an event that is traced or has a deadline may be in the batch, or one that is traced has been taken.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.any || !self.taken.is_empty()
    }

    /// Notes that an event is taken: what is sent from here on is part of its trace, if it has one.
    #[cold]
    pub(crate) fn take<E>(&mut self, event: &Event<E>) {
        let trace = event.trace();
        outgoing::set_trace(trace);
        if trace != 0 {
            self.taken.push(Taken {
                trace,
                stamp: event.stamp(),
                settled: false,
                panicked: false,
            });
        }
    }

    /// What is sent from here on is part of no trace.
    #[inline]
    pub(crate) fn pause(&self) {
        if self.any {
            outgoing::set_trace(0);
        }
    }

    /// What was taken so far is done with.
    #[inline]
    pub(crate) fn settle(&mut self) {
        for taken in &mut self.taken {
            taken.settled = true;
        }
    }

    /// The handler panicked.
    pub(crate) fn panicked(&mut self) {
        for taken in &mut self.taken {
            taken.panicked = !taken.settled;
        }
    }
}

impl Taken {
    fn end(self) -> End {
        if self.panicked {
            End::Dropped(Reason::Panicked)
        } else {
            End::Finished
        }
    }
}

impl<E> Shared<E> {
    /// Notes what has been traced in a run that ends.
    #[cold]
    pub(crate) fn traced(&self, batch: &mut Batch<E>, begun_ns: u64, ended_ns: u64) {
        for taken in batch.traces().taken.drain(..) {
            let queued_ns = queued_ns(taken.stamp);
            // A servlet reads the clock before it gets the lock; an event may come in between.
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

    /// Notes that an event ended in the queue, if it is traced.
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
            end: End::Dropped(reason),
        });
    }
}

impl<E: Send + 'static> Shared<E> {
    /// Calls the present handler with a batch in which something is traced.
    pub(crate) async fn call_traced(self: &Arc<Self>, batch: &mut Batch<E>) -> Result<(), Gone> {
        let begun_ns = self.time.now_ns();
        let before = batch.traces().taken.len();
        let trace = outgoing::trace();
        let called = self.call_direct(batch).await;
        // What the caller took last goes on.
        outgoing::set_trace(trace);
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
