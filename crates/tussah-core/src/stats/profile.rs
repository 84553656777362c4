//! Where time goes, by color: a sketch of bounded size that keeps the heaviest.
//!
//! Space-Saving (Metwally, Agrawal, El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams",
//! ICDT 2005, §3): a color that is not among the kept ones takes the place of the lightest, and its weight. So a color with
//! more than 1/64 of the time is among them, and no weight is too small; it is too large by at most that of the lightest.

use std::collections::HashMap;

use super::Site;
use crate::color::ColorName;

/// Bound, in colors: how many a worker's profile keeps; any color with more than 1/64 of the time is found.
const COLORS_KEPT: usize = 64;

/// One worker's sketch.
pub(crate) struct Profile {
    entries: Vec<Entry>,
    /// All time that was added, of whichever color.
    total_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) color: ColorName,
    pub(crate) time_ns: u64,
    /// The event that was seen there last.
    pub(crate) site: Option<Site>,
}

impl Profile {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::new(),
            total_ns: 0,
        }
    }

    /// Adds time to a color.
    pub(crate) fn add(&mut self, color: ColorName, site: Option<Site>, time_ns: u64) {
        self.total_ns += time_ns;
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.color == color) {
            entry.time_ns += time_ns;
            entry.site = site.or(entry.site);
        } else if self.entries.len() < COLORS_KEPT {
            self.entries.push(Entry {
                color,
                time_ns,
                site,
            });
        } else if let Some(lightest) = self.entries.iter_mut().min_by_key(|entry| entry.time_ns) {
            *lightest = Entry {
                color,
                time_ns: lightest.time_ns + time_ns,
                site,
            };
        }
    }

    /// Adds time that is of no color that could limit anything: threads that are their own.
    pub(crate) fn add_uncolored(&mut self, time_ns: u64) {
        self.total_ns += time_ns;
    }

    /// The profiles of several workers as one, the heaviest color first, with the time of all.
    pub(crate) fn merge<'a>(profiles: impl IntoIterator<Item = &'a Profile>) -> (Vec<Entry>, u64) {
        let mut by_color: HashMap<ColorName, Entry> = HashMap::new();
        let mut total_ns = 0;
        for profile in profiles {
            total_ns += profile.total_ns;
            for entry in &profile.entries {
                by_color
                    .entry(entry.color)
                    .and_modify(|sum| sum.time_ns += entry.time_ns)
                    .or_insert(*entry);
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
