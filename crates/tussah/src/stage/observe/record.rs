//! Recordings: the statistics of a network's stages over time, as CSV rows.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tussah_core::JoinHandle;
use tussah_core::Notify;
use tussah_core::time::Clock;

use super::stats::StageStats;
use crate::stage::network::{Known, Network, Weak};
use crate::stage::state::Digest;

/// The names of the CSV columns that [`Network::record`] writes.
///
/// `time_s` is the time since the network was created, in seconds. The columns from `arrived` to
/// `called` count events since the previous row of the same stage. The percentiles are response
/// times in nanoseconds, for the events that finished since the previous row. All other columns
/// show current values, as in [`StageStats`].
pub const COLUMNS: &str = "time_s,stage,queued,queue_len,queue_bytes,threshold,batch,servlets_busy,servlets_waiting,servlets_parked,servlets_target,arrived,admitted,refused,shed,expired,cancelled,finished,called,response_p50_ns,response_p99_ns";

/// A recording of statistics, which continues until it is stopped or dropped. [`Network::record`]
/// starts it.
#[must_use = "dropping it ends the recording"]
pub struct Recording<W> {
    thread: Option<JoinHandle<io::Result<W>>>,
    stop: Arc<Notify>,
}

impl Network {
    /// Writes one CSV row per stage after each `interval`, below a header line with the names of
    /// the [columns](COLUMNS).
    ///
    /// The rows are written on the runtime's blocking pool, one sample after the other. If the
    /// writer is slow, samples are skipped. The recording also ends when the last handle to the
    /// network is dropped.
    ///
    /// # Panics
    /// Panics if `interval` is zero.
    ///
    /// # Examples
    /// ```
    /// use tussah::stage::{Batch, Handler, Network};
    /// use tussah::time::{Duration, sleep};
    ///
    /// struct Drop;
    ///
    /// impl Handler for Drop {
    ///     type Event = u32;
    ///     async fn handle(&self, batch: &mut Batch<u32>) {
    ///         batch.drain().for_each(drop);
    ///     }
    /// }
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(async {
    /// let network = Network::new("one stage");
    /// let stage = network.stage("drop").handler(|_| Ok(Drop)).expect("a new name");
    /// let recording = network.record(Duration::from_millis(10), Vec::new());
    /// stage.sender().send(7).await.expect("it is open");
    /// stage.settled().await;
    /// let csv = String::from_utf8(recording.stop().await?).expect("text");
    /// assert!(csv.starts_with("time_s,stage,"));
    /// assert!(csv.lines().last().expect("a row").contains(",drop,"));
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn record<W: Write + Send + 'static>(&self, interval: Duration, writer: W) -> Recording<W> {
        assert!(
            !interval.is_zero(),
            "the interval of a recording is longer than zero"
        );
        let stop = Arc::new(Notify::new());
        let sampler = Sampler {
            network: self.downgrade(),
            clock: self.inner.time.clock.clone(),
            start: self.inner.start,
            last: Vec::new(),
        };
        let thread = sampler.run(interval, writer, Arc::clone(&stop));
        Recording {
            thread: Some(self.inner.runtime.spawn(thread)),
            stop,
        }
    }
}

impl<W> Recording<W> {
    /// Writes one last row per stage, stops the recording, and returns the writer.
    ///
    /// # Errors
    /// Returns the writer's error if a failed write ended the recording.
    pub async fn stop(mut self) -> io::Result<W> {
        self.stop.notify_one();
        let thread = self.thread.take().expect("it is taken here only");
        thread.await.map_err(io::Error::other)?
    }
}

impl<W> Drop for Recording<W> {
    fn drop(&mut self) {
        if let Some(thread) = &self.thread {
            thread.abort();
        }
    }
}

impl<W> fmt::Debug for Recording<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").finish_non_exhaustive()
    }
}

/// A stage's counts in the previous row.
#[derive(Clone, Default)]
struct Seen {
    id: u32,
    arrived: u64,
    refused: u64,
    shed: u64,
    expired: u64,
    cancelled: u64,
    finished: u64,
    called: u64,
    responses: Digest,
}

struct Sampler {
    network: Weak,
    clock: Clock,
    start: Instant,
    last: Vec<Seen>,
}

impl Sampler {
    async fn run<W: Write + Send + 'static>(
        mut self,
        interval: Duration,
        mut writer: W,
        stop: Arc<Notify>,
    ) -> io::Result<W> {
        let mut rows = format!("{COLUMNS}\n");
        let mut due = self.clock.now();
        let mut stopped = false;
        loop {
            writer = write(writer, std::mem::take(&mut rows), stopped).await?;
            if stopped {
                return Ok(writer);
            }
            // The next multiple of the interval, or the last multiple that has passed.
            let passed = self.clock.now().duration_since(due).as_nanos() / interval.as_nanos();
            let steps = u32::try_from(passed).unwrap_or(u32::MAX).max(1);
            due = crate::time::add(due, interval.saturating_mul(steps));
            stopped = crate::time::timeout_at(due, stop.notified()).await.is_ok();
            stopped |= !self.sample(&mut rows);
        }
    }

    /// Adds a row for each stage. Returns false if the network no longer exists.
    fn sample(&mut self, rows: &mut String) -> bool {
        let Some(network) = self.network.upgrade() else {
            return false;
        };
        let (stages, _) = network.known();
        let time = self.clock.now().duration_since(self.start);
        let seen = stages.iter().map(|known| self.row(rows, time, known));
        self.last = seen.collect();
        true
    }

    fn row(&self, rows: &mut String, time: Duration, known: &Known) -> Seen {
        use std::fmt::Write;
        let (stats, responses) = Arc::clone(&known.stage).stats_and_responses();
        let last = self.last.iter().find(|seen| seen.id == known.id);
        let last = last.cloned().unwrap_or_default();
        let seen = Seen::of(known.id, &stats, responses);
        let recent = seen.responses.since(&last.responses);
        // Operations that wait for the system may be lost without being counted, so a count may
        // shrink.
        let since = |last: u64, now: u64| now.saturating_sub(last);
        let arrived = since(last.arrived, seen.arrived);
        let refused = since(last.refused, seen.refused);
        let servlets = stats.servlets;
        writeln!(
            rows,
            "{:.6},{},{},{},{},{},{},{},{},{},{},{arrived},{},{refused},{},{},{},{},{},{},{}",
            time.as_secs_f64(),
            quoted(&stats.name),
            stats.queued,
            stats.queue_len,
            stats.queue_bytes,
            stats.threshold,
            stats.batch_max,
            servlets.busy,
            stats.waiting,
            servlets.parked,
            servlets.target,
            since(refused, arrived),
            since(last.shed, seen.shed),
            since(last.expired, seen.expired),
            since(last.cancelled, seen.cancelled),
            since(last.finished, seen.finished),
            since(last.called, seen.called),
            recent.permille(500),
            recent.permille(990),
        )
        .expect("a string takes whatever is written");
        seen
    }
}

impl Seen {
    fn of(id: u32, stats: &StageStats, responses: Digest) -> Self {
        Self {
            id,
            arrived: stats.arrived,
            refused: stats.refused,
            shed: stats.shed,
            expired: stats.expired,
            cancelled: stats.cancelled,
            finished: stats.finished,
            called: stats.called,
            responses,
        }
    }
}

/// Writes on an OS thread of the blocking pool, or here if there is none.
async fn write<W: Write + Send + 'static>(writer: W, rows: String, last: bool) -> io::Result<W> {
    let job = move || {
        let mut writer = writer;
        writer.write_all(rows.as_bytes())?;
        if last {
            writer.flush()?;
        }
        Ok(writer)
    };
    match crate::try_spawn_blocking(job) {
        Ok(handle) => handle.await.map_err(io::Error::other)?,
        Err(refused) => refused.into_inner()(),
    }
}

/// Quotes a name where RFC 4180 §2 requires it.
fn quoted(name: &str) -> String {
    if name.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_are_quoted_where_they_have_to_be() {
        let check = |name, expected| assert_eq!(quoted(name), expected);
        check("parse", "parse");
        check("a b", "a b");
        check("a,b", "\"a,b\"");
        check("\"a\"\n", "\"\"\"a\"\"\n\"");
    }
}
