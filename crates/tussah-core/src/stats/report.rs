//! A report of the workers' activity, and of the factors that limit the speed-up.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use super::Profile;
use crate::blocking::BlockingStats;
use crate::color::ColorName;
use crate::loom::atomic::Ordering;
use crate::runtime::Shared;

/// Bound, in colors: the length of a report, which lists those that took the most time.
const COLORS_LISTED: usize = 16;

/// A runtime's activity since its start. The times and shares of colors are estimates from sampled
/// turns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// One entry per worker, including removed workers.
    pub workers: Vec<WorkerStats>,
    /// The colors that took the most time, at most 16, in decreasing order of time.
    pub colors: Vec<ColorStats>,
    /// The maximum speed-up that more CPUs can give, or `None` if nothing was measured. The value
    /// is 1 divided by the share of the first entry of `colors`. Because the events of a color run
    /// serially, the value follows from Amdahl's law, with that color as the serial part (the
    /// thesis on libasync-mp, §5.2.2: a share of 0.35 gives 2.85).
    pub speedup_max: Option<f64>,
    /// Count of numbered colors that the runtime remembers; [`ColorRef`](crate::ColorRef) states
    /// when it forgets one.
    pub colors_remembered: usize,
    /// Statistics of the blocking pool.
    pub blocking: BlockingStats,
    /// Size of the memory for events and threads, in bytes.
    pub slab_bytes: usize,
}

/// Activity of one worker.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Number of events started.
    pub events: u64,
    /// Number of turns; a turn begins when the worker takes a runnable color from its queue.
    pub turns: u64,
    /// Number of runnable colors in the worker's queue.
    pub queue_len: usize,
    /// Median duration of the most recent measured turns.
    pub turn_median: Duration,
    /// Number of times that the worker stole from another worker.
    pub steals: u64,
    /// Number of runnable colors that the worker stole.
    pub stolen: u64,
    /// Number of times that the worker went to sleep.
    pub parks: u64,
    /// Number of panics caught.
    pub panics: u64,
}

/// The time spent in one color.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ColorStats {
    /// Name of the color.
    pub color: ColorName,
    /// Estimated total duration of the color's events.
    pub time: Duration,
    /// The color's share of the total duration of all events, from 0 to 1.
    pub share: f64,
    /// The type of the closure or future that last ran in the color. The type's path contains the
    /// name of the function that created the closure or future.
    pub event: Option<&'static str>,
    /// The source location at which the closure or future that last ran in the color was posted or
    /// spawned.
    pub location: Option<&'static Location<'static>>,
}

impl Stats {
    pub(crate) fn of(shared: &Shared) -> Self {
        let remotes: Vec<_> = (0..shared.places())
            .map(|place| shared.place(place))
            .collect();
        let workers = remotes.iter().map(|remote| WorkerStats {
            events: remote.running.events(),
            turns: remote.turns().div_ceil(2),
            queue_len: remote.queue_len(),
            turn_median: Duration::from_nanos(remote.turn_ns.load(Ordering::Relaxed)),
            steals: remote.counters.steals.load(Ordering::Relaxed),
            stolen: remote.counters.stolen.load(Ordering::Relaxed),
            parks: remote.counters.parks.load(Ordering::Relaxed),
            panics: remote.counters.panics.load(Ordering::Relaxed),
        });
        let workers = workers.collect();
        let profiles: Vec<_> = remotes.iter().map(|remote| remote.profile.lock()).collect();
        let (entries, total_ns) = Profile::merge(profiles.iter().map(|profile| &**profile));
        drop(profiles);
        let colors: Vec<_> = entries
            .into_iter()
            .take(COLORS_LISTED)
            .map(|entry| ColorStats {
                color: entry.color,
                time: Duration::from_nanos(entry.time_ns),
                share: entry.time_ns as f64 / total_ns.max(1) as f64,
                event: entry.site.map(|site| site.name),
                location: entry.site.and_then(|site| site.location),
            })
            .collect();
        Self {
            workers,
            speedup_max: colors
                .first()
                .filter(|first| first.share > 0.0)
                .map(|first| 1.0 / first.share),
            colors,
            colors_remembered: shared.table.len(),
            blocking: shared.blocking.stats(),
            slab_bytes: shared.slab.stats().bytes,
        }
    }
}

impl fmt::Display for ColorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColorName::Number(color) => write!(f, "color {}", color.0),
            ColorName::Value { type_name, number } => write!(f, "Colored<{type_name}> #{number}"),
        }
    }
}

impl fmt::Display for ColorStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:5.1} %  {}", 100.0 * self.share, self.color)?;
        if let Some(event) = self.event {
            write!(f, ", {event}")?;
        }
        if let Some(location) = self.location {
            write!(f, " at {location}")?;
        }
        Ok(())
    }
}

/// Prints the speed-up report.
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.speedup_max {
            Some(most) => writeln!(
                f,
                "speed-up by more CPUs: at most {most:.2}, limited by the first of these colors"
            )?,
            None => writeln!(f, "speed-up by more CPUs: nothing was measured yet")?,
        }
        for color in &self.colors {
            writeln!(f, "{color}")?;
        }
        for (place, worker) in self.workers.iter().enumerate() {
            writeln!(
                f,
                "worker {place}: {} events in {} turns of {:?}, {} stolen in {} steals, {} sleeps, {} panics, {} queued",
                worker.events,
                worker.turns,
                worker.turn_median,
                worker.stolen,
                worker.steals,
                worker.parks,
                worker.panics,
                worker.queue_len
            )?;
        }
        Ok(())
    }
}
