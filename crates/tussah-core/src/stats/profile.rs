//! The time spent per color: a sketch of constant size that keeps the heaviest colors.
//!
//! Space-Saving (Metwally, Agrawal, El Abbadi, "Efficient Computation of Frequent and Top-k
//! Elements in Data Streams", ICDT 2005, §3): a color outside of the sketch replaces the lightest
//! color in it and takes over its weight. So the sketch contains every color with more than 1/64 of
//! the time. No weight is too small; a weight is too large by at most the lightest weight.

use std::collections::HashMap;

use super::Site;
use crate::color::ColorName;

/// Bound, in colors: the size of a worker's profile. The profile contains any color with more than
/// 1/64 of the time; lighter colors may be missing.
const COLORS_KEPT: usize = 64;

/// One worker's sketch.
pub(crate) struct Profile {
    /// A number for each entry's color, and its time, stored densely for the search.
    keys: Vec<u64>,
    times_ns: Vec<u64>,
    entries: Vec<Entry>,
    /// The total time of all colors.
    total_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) color: ColorName,
    /// Set by `merge`.
    pub(crate) time_ns: u64,
    /// The last event seen in the color.
    pub(crate) site: Option<Site>,
}

impl Profile {
    pub(crate) fn new() -> Self {
        Self {
            keys: Vec::with_capacity(COLORS_KEPT),
            times_ns: Vec::with_capacity(COLORS_KEPT),
            entries: Vec::with_capacity(COLORS_KEPT),
            total_ns: 0,
        }
    }

    /// Adds time to a color.
    pub(crate) fn add(&mut self, color: ColorName, site: Option<Site>, time_ns: u64) {
        self.total_ns += time_ns;
        let key = match color {
            ColorName::Number(color) => color.0,
            ColorName::Value { number, .. } => !number,
        };
        let found = self.keys.iter().position(|&kept| kept == key);
        // A number and a value may have the same key. The search for the value then continues in
        // the rest.
        let found =
            found.and_then(|at| (at..self.keys.len()).find(|&at| self.entries[at].color == color));
        if let Some(at) = found {
            self.times_ns[at] += time_ns;
            self.entries[at].site = site.or(self.entries[at].site);
            return;
        }
        let entry = Entry {
            color,
            time_ns: 0,
            site,
        };
        if self.entries.len() < COLORS_KEPT {
            self.keys.push(key);
            self.times_ns.push(time_ns);
            self.entries.push(entry);
            return;
        }
        let least_ns = *self.times_ns.iter().min().expect("entries are kept");
        let lightest = self
            .times_ns
            .iter()
            .position(|&time_ns| time_ns == least_ns);
        let at = lightest.expect("the least time is one of them");
        self.keys[at] = key;
        self.times_ns[at] += time_ns;
        self.entries[at] = entry;
    }

    /// Adds time of threads with a color of their own, which cannot limit the speed-up.
    pub(crate) fn add_uncolored(&mut self, time_ns: u64) {
        self.total_ns += time_ns;
    }

    /// Merges the profiles of several workers, the heaviest color first, and adds up their times.
    pub(crate) fn merge<'a>(profiles: impl IntoIterator<Item = &'a Profile>) -> (Vec<Entry>, u64) {
        let mut by_color: HashMap<ColorName, Entry> = HashMap::new();
        let mut total_ns = 0;
        for profile in profiles {
            total_ns += profile.total_ns;
            for (entry, time_ns) in profile.entries.iter().zip(&profile.times_ns) {
                by_color.entry(entry.color).or_insert(*entry).time_ns += time_ns;
            }
        }
        let mut entries: Vec<_> = by_color.into_values().collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.time_ns));
        (entries, total_ns)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Color;

    #[test]
    fn the_heavy_color_is_found_among_many_light_ones() {
        let mut profile = Profile::new();
        for n in 0..10_000 {
            profile.add(ColorName::Number(Color(n)), None, 1);
            profile.add(ColorName::Number(Color(77_777)), None, 2);
        }
        let (entries, total_ns) = Profile::merge([&profile]);
        assert_eq!(total_ns, 30_000);
        assert_eq!(entries[0].color, ColorName::Number(Color(77_777)));
        assert!(entries[0].time_ns >= 20_000);
        assert!(entries.len() <= COLORS_KEPT);
    }

    #[test]
    fn workers_are_added_up() {
        let (mut one, mut two) = (Profile::new(), Profile::new());
        one.add(ColorName::Number(Color(1)), None, 10);
        two.add(ColorName::Number(Color(1)), None, 5);
        two.add_uncolored(5);
        let (entries, total_ns) = Profile::merge([&one, &two]);
        assert_eq!((entries.len(), entries[0].time_ns, total_ns), (1, 15, 20));
    }
}
