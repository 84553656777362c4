//! A table of keys, by their hash. It calls the keys' methods only to look a key up, before
//! anything changes.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};

use tussah_core::Guarded;

/// Keys and their values. A key has a place, which stays the same until the key is forgotten.
pub(super) struct Table<K, V> {
    hasher: RandomState,
    /// The first key's place for each hash; the other keys with that hash are linked from it.
    first: HashMap<u64, usize, BuildHasherDefault<Hashed>>,
    places: Vec<Option<Known<K, V>>>,
    free: Vec<usize>,
}

struct Known<K, V> {
    key: Guarded<K>,
    hash: u64,
    /// The place of another key with this hash.
    next: Option<usize>,
    value: V,
}

/// A key that was looked up, and its place if it has one.
pub(super) struct Looked<K> {
    key: Guarded<K>,
    pub(super) hash: u64,
    pub(super) place: Option<usize>,
}

/// A hasher for values that are already hashes.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, _: &[u8]) {
        unreachable!("a hash is a `u64`");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            first: HashMap::default(),
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<K: Hash + Eq, V: Default> Table<K, V> {
    /// Looks a key up. If its `Hash` or `Eq` panics, nothing has changed.
    pub(super) fn look(&self, key: K) -> Looked<K> {
        let key = Guarded::new(key);
        let hash = self.hasher.hash_one(&*key);
        let mut place = self.first.get(&hash).copied();
        while let Some(known) = place.and_then(|place| self.places[place].as_ref()) {
            if *known.key == *key {
                break;
            }
            place = known.next;
        }
        Looked { key, hash, place }
    }

    /// Returns the place of a key, and creates it if necessary. The table must not have changed
    /// since the key was looked up.
    pub(super) fn place(&mut self, looked: Looked<K>) -> usize {
        let Looked { key, hash, place } = looked;
        if let Some(place) = place {
            return place;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(Known {
            key,
            hash,
            next: self.first.insert(hash, place),
            value: V::default(),
        });
        place
    }
}

impl<K, V> Table<K, V> {
    pub(super) fn forget(&mut self, place: usize) {
        let known = self.places[place].take();
        let Known { hash, next, .. } = known.expect("a place that is known has a key");
        self.free.push(place);
        if self.first[&hash] == place {
            match next {
                Some(next) => self.first.insert(hash, next),
                None => self.first.remove(&hash),
            };
            return;
        }
        let mut others = self.places.iter_mut().flatten();
        let before = others.find(|known| known.next == Some(place));
        let before = before.expect("a key is found from another with its hash");
        before.next = next;
    }

    /// Returns the value of the key with this place.
    pub(super) fn at(&mut self, place: usize) -> &mut V {
        self.get_mut(place)
            .expect("a place that is known has a key")
    }

    pub(super) fn get(&self, place: usize) -> Option<&V> {
        self.places[place].as_ref().map(|known| &known.value)
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut V> {
        self.places[place].as_mut().map(|known| &mut known.value)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.places.iter_mut().flatten().map(|it| &mut it.value)
    }

    /// Returns an upper bound on the places in use, which includes free places.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
