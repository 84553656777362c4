//! The report: what the workers did, and what limits the speed-up.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use super::Profile;
use crate::blocking::BlockingStats;
use crate::color::ColorName;
use crate::loom::atomic::Ordering;
use crate::runtime::Shared;

/// Bound, in colors: how many a report lists.
const COLORS_LISTED: usize = 16;

/// What a runtime did since it began. The shares are estimates from sampled turns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// One entry a worker, those that were taken away included.
    pub workers: Vec<WorkerStats>,
    /// The colors that took the most time, the first one first; at most 16.
    pub colors: Vec<ColorStats>,
    /// The most by which more CPUs can speed the program up: 1 / the share of the first of `colors`. `None` if nothing was
    /// measured. The time of one color is serial, so this is Amdahl's law with the color as the serial part (the thesis
    /// on libasync-mp, §5.2.2: a share of .35 gives 2.85).
    pub speedup_max: Option<f64>,
    /// Colors given by number that are remembered.
    pub colors_remembered: usize,
    /// The blocking pool.
    pub blocking: BlockingStats,
    /// Memory for events and threads, in bytes.
    pub slab_bytes: usize,
}

/// What one worker did.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Events that it began.
    pub events: u64,
    /// Turns: runnable colors that it took from its queue.
    pub turns: u64,
    /// Runnable colors that it has queued.
    pub queue_len: usize,
    /// The median length of a turn, over the last measured ones.
    pub turn_median: Duration,
    /// Times that it stole from another worker.
    pub steals: u64,
    /// Runnable colors that it stole.
    pub stolen: u64,
    /// Times that it went to sleep.
    pub parks: u64,
    /// Panics that it caught.
    pub panics: u64,
}

/// Where a color's time went.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ColorStats {
    /// Which color.
    pub color: ColorName,
    /// The time that its events took.
    pub time: Duration,
    /// That time as a part of the time of all events, 0 to 1.
    pub share: f64,
    /// The type of the closure or future that ran in it last; its path names the function.
    pub event: Option<&'static str>,
    /// Where that event was posted or spawned.
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

/// The speed-up report in words.
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
