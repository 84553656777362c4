//! Tests of random operations on a table, compared with a model that is a list.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::web::answer::buffers::Buffers;

/// Room for some pages without a file, or for two pages with a file.
const BYTES_MAX: usize = 2 * FILE_BYTES + 8 * ENTRY_BYTES;

/// The number of seconds for which a page need not be checked again.
const FRESH_S: u64 = 2;

/// The number of paths, which is small enough to request each path repeatedly.
const KEYS: u8 = 12;

#[derive(Clone, Debug)]
enum Step {
    Ask {
        key: u8,
        /// True if the page is being sent until the next second, if there is a page.
        sends: bool,
    },
    /// Loads one of the pages that are being loaded, or another path.
    Loaded {
        at: usize,
        page: Option<(usize, bool)>,
    },
    /// A second passes.
    Second,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ask = (0..KEYS, any::<bool>()).prop_map(|(key, sends)| Step::Ask { key, sends });
    let len =
        prop_oneof![9 => 200..1500_usize, 1 => Just(BYTES_MAX - ENTRY_BYTES), 1 => Just(BYTES_MAX)];
    let page = prop::option::weighted(0.8, (len, prop::bool::weighted(0.1)));
    let loaded = (any::<usize>(), page).prop_map(|(at, page)| Step::Loaded { at, page });
    prop::collection::vec(
        prop_oneof![8 => ask, 6 => loaded, 1 => Just(Step::Second)],
        0..200,
    )
}

/// Some keys share a hash, and some of these share a place.
fn hash_of(key: u8) -> u64 {
    [0, 0, 1, 1 << 40][usize::from(key % 4)]
}

fn exchange(key: u8) -> Box<Exchange> {
    let mut exchange = Exchange::take();
    exchange.key = vec![key];
    exchange.hash = hash_of(key);
    exchange
}

struct Kept {
    key: u8,
    page: *const Page,
    checked_s: u64,
    bytes: usize,
}

/// The model and the table.
struct Both {
    table: Table,
    /// The kept pages, most recently used first.
    kept: Vec<Kept>,
    /// The requests that wait for a path.
    loading: HashMap<u8, Vec<*const Exchange>>,
    /// The largest number of pages that were kept or being loaded at the same time.
    most: usize,
    sent: Vec<Arc<Page>>,
    /// The pool of all pages.
    buffers: Arc<Buffers>,
    now_s: u64,
}

impl Both {
    fn new() -> Self {
        Self {
            table: Table::new(BYTES_MAX),
            kept: Vec::new(),
            loading: HashMap::new(),
            most: 0,
            sent: Vec::new(),
            buffers: Arc::new(Buffers::new(0)),
            now_s: 10,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Ask { key, sends } => self.ask(key, sends),
            Step::Loaded { at, page } => self.loaded(at, page),
            Step::Second => {
                self.now_s += 1;
                self.sent.clear();
            }
        }
        self.most = self.most.max(self.kept.len() + self.loading.len());
    }

    fn ask(&mut self, key: u8, sends: bool) {
        let exchange = exchange(key);
        let asks: *const Exchange = &raw const *exchange;
        let fresh_s = self.now_s - FRESH_S;
        let found = self.table.look_up(exchange, fresh_s, self.now_s);
        if let Some(waiting) = self.loading.get_mut(&key) {
            assert!(matches!(found, Found::Waits));
            waiting.push(asks);
            return;
        }
        let known = self.kept.iter().position(|kept| kept.key == key);
        let known = known.map(|at| self.kept.remove(at));
        match (found, known) {
            (Found::Hit(page, exchange), Some(kept)) if kept.checked_s >= fresh_s => {
                assert_eq!(
                    (Arc::as_ptr(&page), &raw const *exchange),
                    (kept.page, asks)
                );
                let is_sent = self.sent.iter().any(|sent| Arc::ptr_eq(sent, &page));
                assert!(is_sent || page.is_of_second(self.now_s));
                self.kept.insert(0, kept);
                if sends {
                    self.sent.push(page);
                }
            }
            (Found::Miss(page, exchange), known) => {
                assert!(known.as_ref().is_none_or(|kept| kept.checked_s < fresh_s));
                let known = known.map(|kept| kept.page);
                let page = page.as_ref().map(Arc::as_ptr);
                assert_eq!((page, &raw const *exchange), (known, asks));
                self.loading.insert(key, Vec::new());
            }
            _ => panic!("it is neither fresh nor being loaded"),
        }
    }

    fn loaded(&mut self, at: usize, content: Option<(usize, bool)>) {
        let mut keys: Vec<_> = self.loading.keys().copied().collect();
        keys.sort_unstable();
        // A path that no request names has no effect.
        keys.push(KEYS);
        let key = keys[at % keys.len()];
        let page =
            content.map(|(len, has_file)| Arc::new(Page::blank(&self.buffers, len, has_file)));
        let to_keep = page.as_ref().map(|page| (page, self.now_s));
        let waited = self.table.loaded(hash_of(key), &[key], to_keep);
        let waited: Vec<_> = waited.iter().map(|waited| &raw const **waited).collect();
        let Some(waiting) = self.loading.remove(&key) else {
            assert!(waited.is_empty());
            return;
        };
        assert_eq!(waited, waiting);
        let (Some(page), Some((len, has_file))) = (page, content) else {
            return;
        };
        let bytes = ENTRY_BYTES + len + if has_file { FILE_BYTES } else { 0 };
        if bytes > BYTES_MAX {
            return;
        }
        let kept = Kept {
            key,
            page: Arc::as_ptr(&page),
            checked_s: self.now_s,
            bytes,
        };
        self.kept.insert(0, kept);
        while self.bytes() > BYTES_MAX {
            self.kept.pop();
        }
    }

    fn bytes(&self) -> usize {
        self.kept.iter().map(|kept| kept.bytes).sum()
    }

    /// Checks the invariants.
    fn check(&self) {
        let table = &self.table;
        assert!(table.bytes <= BYTES_MAX);
        assert_eq!(table.bytes, self.bytes());
        assert_eq!(table.places.len(), self.kept.len() + self.loading.len());
        let kept: Vec<_> = self.kept.iter().map(|kept| kept.key).collect();
        assert_eq!(self.keys(table.newest, |entry| entry.older), kept);
        let mut oldest_first = self.keys(table.oldest, |entry| entry.newer);
        oldest_first.reverse();
        assert_eq!(oldest_first, kept);
        // An entry is used or free, and is reused.
        let mut free = 0;
        let mut at = table.free;
        while let Some(entry) = table.entries.get(at as usize) {
            assert!(matches!(entry.state, State::Free) && entry.key.is_empty());
            (free, at) = (free + 1, entry.older);
        }
        assert_eq!(table.entries.len(), table.places.len() + free);
        assert_eq!(table.entries.len(), self.most);
        // A page is kept, being sent, or gone.
        let sent = self.sent.iter().map(Arc::as_ptr);
        let mut pages: Vec<_> = self.kept.iter().map(|kept| kept.page).chain(sent).collect();
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(Arc::strong_count(&self.buffers), 1 + pages.len());
    }

    /// Returns the entries of a list, which must end.
    fn keys(&self, mut at: u32, next: fn(&Entry) -> u32) -> Vec<u8> {
        let mut keys = Vec::new();
        while let Some(entry) = self.table.entries.get(at as usize) {
            assert!(keys.len() < self.table.entries.len());
            assert!(matches!(entry.state, State::Kept { .. }));
            keys.push(entry.key[0]);
            at = next(entry);
        }
        keys
    }
}

proptest! {
    #[test]
    fn a_table_does_what_its_model_does(steps in steps()) {
        let mut both = Both::new();
        for step in &steps {
            both.step(step);
            both.check();
        }
    }
}
