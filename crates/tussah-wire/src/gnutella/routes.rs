//! The table of routes: which peer a descriptor came from.

use std::collections::HashMap;

use super::Guid;

/// The place of an entry that does not exist.
const NOWHERE: u32 = u32::MAX;

/// A table that maps each identifier to the peer from which it arrived (section 4, rules 1 to 3 and
/// 6).
///
/// A router keeps a table for each kind of identifier that it remembers:
///
/// - one table of pings and one of queries, filled by [`insert`](Self::insert). A descriptor whose
///   identifier is already in the table is a duplicate. A response goes to the peer that sent the
///   request.
/// - one table of servents, filled by [`update`](Self::update) from the query hits that the router
///   forwards. A push goes to the peer that sent the servent's latest query hit.
///
/// The table is bounded: when it is full, a new entry evicts the oldest one. Entries that are older
/// than the age limit count as missing. The caller passes the current time, in a unit of its
/// choice; the time must never decrease.
///
/// ```
/// use tussah_wire::gnutella::{Guid, Routes};
///
/// let mut queries = Routes::new(10_000, 600);
/// let id = Guid([1; 16]);
/// assert!(queries.insert(id, "peer 1", 0));
/// assert!(!queries.insert(id, "peer 2", 1), "a duplicate");
/// assert_eq!(queries.get(&id, 600), Some(&"peer 1"));
/// assert_eq!(queries.get(&id, 601), None);
/// ```
#[derive(Clone, Debug)]
pub struct Routes<P> {
    places: HashMap<Guid, u32>,
    /// The entries, which form a ring list by age.
    entries: Vec<Entry<P>>,
    oldest: u32,
    newest: u32,
    /// Bound, in entries: the maximum number in the whole table; chosen by the caller.
    entries_max: u32,
    age_max: u64,
}

#[derive(Clone, Debug)]
struct Entry<P> {
    id: Guid,
    peer: P,
    since: u64,
    older: u32,
    newer: u32,
}

impl<P> Routes<P> {
    /// Creates a table for up to `entries_max` entries, each of which is valid for `age_max` units
    /// of time. Memory is allocated as the table grows.
    ///
    /// # Panics
    ///
    /// Panics if `entries_max` is 0 or exceeds 2^31.
    pub fn new(entries_max: usize, age_max: u64) -> Self {
        assert!(
            (1..=1 << 31).contains(&entries_max),
            "a table has 1 to 2^31 entries"
        );
        Self {
            places: HashMap::new(),
            entries: Vec::new(),
            oldest: NOWHERE,
            newest: NOWHERE,
            entries_max: entries_max as u32,
            age_max,
        }
    }

    /// Returns the number of entries, including those that are too old.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the table has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the peer from which `id` arrived, or `None` if there is no entry or the entry is too
    /// old.
    pub fn get(&self, id: &Guid, now: u64) -> Option<&P> {
        let entry = &self.entries[*self.places.get(id)? as usize];
        (!self.is_old(entry, now)).then_some(&entry.peer)
    }

    /// Adds an entry, unless the table already has an entry for `id` that is not too old. Returns
    /// whether the entry was added.
    pub fn insert(&mut self, id: Guid, peer: P, now: u64) -> bool {
        let is_new = self.get(&id, now).is_none();
        if is_new {
            self.update(id, peer, now);
        }
        is_new
    }

    /// Adds or replaces the entry for `id`, which becomes the newest entry.
    pub fn update(&mut self, id: Guid, peer: P, now: u64) {
        let entry = Entry {
            id,
            peer,
            since: now,
            older: NOWHERE,
            newer: NOWHERE,
        };
        let place = match self.places.get(&id) {
            Some(&place) => self.replace(place, entry),
            None if self.is_full(now) => {
                let oldest = self.oldest;
                self.places.remove(&self.entries[oldest as usize].id);
                self.replace(oldest, entry)
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.places.insert(id, place);
        self.append(place);
    }

    fn is_old(&self, entry: &Entry<P>, now: u64) -> bool {
        now.saturating_sub(entry.since) > self.age_max
    }

    /// Returns whether a new entry has to take the place of the oldest one. An entry that is too
    /// old gives way before the table is full, so that the table is no larger than it has to be.
    fn is_full(&self, now: u64) -> bool {
        self.entries.len() == self.entries_max as usize
            || self
                .entries
                .get(self.oldest as usize)
                .is_some_and(|oldest| self.is_old(oldest, now))
    }

    /// Replaces the entry at `place`, and takes it out of the list. Returns `place`.
    fn replace(&mut self, place: u32, entry: Entry<P>) -> u32 {
        let Entry { older, newer, .. } =
            std::mem::replace(&mut self.entries[place as usize], entry);
        match self.entries.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match self.entries.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        place
    }

    /// Appends the entry at `place`, which is in no list, as the newest one.
    fn append(&mut self, place: u32) {
        let older = std::mem::replace(&mut self.newest, place);
        self.entries[place as usize].older = older;
        match self.entries.get_mut(older as usize) {
            Some(older) => older.newer = place,
            None => self.oldest = place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> Guid {
        Guid([number; 16])
    }

    #[test]
    fn the_first_path_of_a_query_and_the_latest_of_a_servent() {
        let mut routes = Routes::new(4, 10);
        assert!(routes.insert(id(1), 'a', 0));
        assert!(!routes.insert(id(1), 'b', 5));
        assert_eq!(routes.get(&id(1), 10), Some(&'a'));
        // The duplicate has not made the entry younger.
        assert!(routes.insert(id(1), 'c', 11));
        assert_eq!(routes.get(&id(1), 11), Some(&'c'));
        routes.update(id(1), 'd', 20);
        assert_eq!(routes.get(&id(1), 30), Some(&'d'));
        assert_eq!((routes.len(), routes.get(&id(2), 30)), (1, None));
    }

    #[test]
    fn the_oldest_entry_is_evicted() {
        let mut routes = Routes::new(3, 100);
        for number in 1..=3 {
            routes.update(id(number), number, number.into());
        }
        routes.update(id(1), 10, 4);
        routes.update(id(4), 4, 5);
        let peers: Vec<_> = (1..=4)
            .map(|number| routes.get(&id(number), 5).copied())
            .collect();
        assert_eq!(peers, [Some(10), None, Some(3), Some(4)]);
        assert_eq!(routes.len(), 3);
    }

    #[test]
    fn an_old_entry_gives_way_before_the_table_is_full() {
        let mut routes = Routes::new(1000, 10);
        for number in 0..=u8::MAX {
            routes.insert(id(number), (), u64::from(number) * 5);
        }
        assert_eq!(routes.len(), 3);
    }

    #[test]
    fn one_entry() {
        let mut routes = Routes::new(1, 10);
        assert!(routes.is_empty());
        for number in 0..10 {
            assert!(routes.insert(id(number), number, 0));
            assert!(!routes.insert(id(number), 99, 0));
            assert_eq!(
                (routes.len(), routes.get(&id(number), 0)),
                (1, Some(&number))
            );
        }
    }
}
