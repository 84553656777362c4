//! The pages of a shard, most recently used first, and the requests that wait for a page.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use hashbrown::HashTable;

use crate::web::answer::page::Page;
use crate::web::connection::exchange::Exchange;

/// The index that stands for no entry.
const NONE: u32 = u32::MAX;

/// The estimated cost of an entry, in bytes, in addition to its page: its place here, and the
/// allocator's overhead.
const ENTRY_BYTES: usize = 256;

/// Bound, in bytes: the part of the cache's size that an open file takes, so that 200 MB of them
/// leave descriptors for connections if a process may have 1024.
const FILE_BYTES: usize = 512 << 10;

/// A shard's pages.
pub(crate) struct Table {
    places: HashTable<u32>,
    entries: Vec<Entry>,
    /// The first free entry.
    free: u32,
    newest: u32,
    oldest: u32,
    bytes: usize,
    bytes_max: usize,
}

struct Entry {
    hash: u64,
    key: Box<[u8]>,
    state: State,
    newer: u32,
    older: u32,
}

enum State {
    Free,
    Kept {
        page: Arc<Page>,
        checked_s: u64,
    },
    /// The page is being loaded for one request, and these requests wait for it.
    Loading(Vec<Box<Exchange>>),
}

/// The result of a look-up.
pub(crate) enum Found {
    /// The page is in memory.
    Hit(Arc<Page>, Box<Exchange>),
    /// There is no page, or it has to be checked again: load it for this request.
    Miss(Option<Arc<Page>>, Box<Exchange>),
    /// The page is being loaded, and this request waits with others.
    Waits,
}

impl Table {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            places: HashTable::new(),
            entries: Vec::new(),
            free: NONE,
            newest: NONE,
            oldest: NONE,
            bytes: 0,
            bytes_max,
        }
    }

    /// Looks up a page. A page that was last checked before `fresh_s` is loaded again. A page that
    /// is not being sent gets the date of this second.
    #[inline]
    pub(crate) fn look_up(&mut self, exchange: Box<Exchange>, fresh_s: u64, unix_s: u64) -> Found {
        let Some(at) = self.find(exchange.hash, &exchange.key) else {
            self.begin(&exchange);
            return Found::Miss(None, exchange);
        };
        let entry = &mut self.entries[at as usize];
        match &mut entry.state {
            State::Kept { page, checked_s } if *checked_s >= fresh_s => {
                if !page.is_of_second(unix_s)
                    && let Some(page) = Arc::get_mut(page)
                {
                    page.set_second(unix_s);
                }
                let page = Arc::clone(page);
                if self.newest != at {
                    self.unlink(at);
                    self.link(at);
                }
                Found::Hit(page, exchange)
            }
            State::Loading(waiting) => {
                waiting.push(exchange);
                Found::Waits
            }
            state => {
                let known = std::mem::replace(state, State::Loading(Vec::new()));
                let State::Kept { page, .. } = known else {
                    unreachable!("an entry that is found is not free");
                };
                self.unlink(at);
                self.bytes -= cost(&page);
                Found::Miss(Some(page), exchange)
            }
        }
    }

    /// Ends the loading of a page: keeps the page if there is one, and returns the waiting
    /// requests.
    pub(crate) fn loaded(
        &mut self,
        hash: u64,
        key: &[u8],
        page: Option<(&Arc<Page>, u64)>,
    ) -> Vec<Box<Exchange>> {
        let Some(at) = self.find(hash, key) else {
            return Vec::new();
        };
        let State::Loading(waiting) =
            std::mem::replace(&mut self.entries[at as usize].state, State::Free)
        else {
            unreachable!("a page is loaded once at a time");
        };
        match page {
            Some((page, checked_s)) if cost(page) <= self.bytes_max => {
                self.bytes += cost(page);
                self.entries[at as usize].state = State::Kept {
                    page: Arc::clone(page),
                    checked_s,
                };
                self.link(at);
                while self.bytes > self.bytes_max {
                    self.forget_oldest();
                }
            }
            _ => self.remove(at),
        }
        waiting
    }

    #[inline]
    fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        let same = |&at: &u32| *self.entries[at as usize].key == *key;
        self.places.find(hash, same).copied()
    }

    /// Marks a page as being loaded.
    fn begin(&mut self, exchange: &Exchange) {
        let entry = Entry {
            hash: exchange.hash,
            key: exchange.key.as_slice().into(),
            state: State::Loading(Vec::new()),
            newer: NONE,
            older: NONE,
        };
        let at = if self.free == NONE {
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        } else {
            let at = self.free;
            self.free = self.entries[at as usize].older;
            self.entries[at as usize] = entry;
            at
        };
        let entries = &self.entries;
        let hash_of = |&at: &u32| entries[at as usize].hash;
        self.places.insert_unique(exchange.hash, at, hash_of);
    }

    fn forget_oldest(&mut self) {
        let at = self.oldest;
        self.unlink(at);
        if let State::Kept { page, .. } = &self.entries[at as usize].state {
            self.bytes -= cost(page);
        }
        self.remove(at);
    }

    /// Removes an entry that is in no list.
    fn remove(&mut self, at: u32) {
        let hash = self.entries[at as usize].hash;
        if let Ok(place) = self.places.find_entry(hash, |&other| other == at) {
            place.remove();
        }
        let entry = &mut self.entries[at as usize];
        entry.key = Box::default();
        entry.state = State::Free;
        entry.older = self.free;
        self.free = at;
    }

    fn link(&mut self, at: u32) {
        let older = self.newest;
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older) = (NONE, older);
        match self.entries.get_mut(older as usize) {
            Some(entry) => entry.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    fn unlink(&mut self, at: u32) {
        let (newer, older) = (
            self.entries[at as usize].newer,
            self.entries[at as usize].older,
        );
        match self.entries.get_mut(newer as usize) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
        match self.entries.get_mut(older as usize) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
    }
}

fn cost(page: &Page) -> usize {
    let file = page.file.as_ref().map_or(0, |_| FILE_BYTES);
    page.memory_bytes() + ENTRY_BYTES + file
}
