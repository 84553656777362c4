//! The scripts that were found lately.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tussah::Clock;

/// Bound, in seconds: the maximum time for which the path of a script is remembered, and so for
/// which a script that was moved may still be called.
const TIME: Duration = Duration::from_secs(1);

/// Bound, in scripts: the maximum number whose paths are remembered; the paths of further scripts
/// are looked up for each request.
const SCRIPTS_MAX: usize = 256;

/// The paths of the scripts that were found lately, by the names under which they were found.
/// Looking for a script takes four system calls.
pub(super) struct Known {
    clock: Clock,
    paths: Mutex<Paths>,
}

struct Paths {
    by_name: HashMap<Vec<u8>, Vec<u8>>,
    /// The time when there were none.
    since: Instant,
}

impl Known {
    pub(super) fn new(clock: Clock) -> Self {
        let paths = Mutex::new(Paths {
            by_name: HashMap::new(),
            since: clock.now(),
        });
        Self { clock, paths }
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<Vec<u8>> {
        let mut paths = self.paths.lock();
        let now = self.clock.now();
        if now.saturating_duration_since(paths.since) >= TIME {
            paths.by_name.clear();
            paths.since = now;
        }
        paths.by_name.get(name).cloned()
    }

    /// Adds a script. If there is no room, it will be looked for each time.
    pub(super) fn add(&self, name: &[u8], path: &[u8]) {
        let mut paths = self.paths.lock();
        if paths.by_name.len() < SCRIPTS_MAX {
            paths.by_name.insert(name.to_vec(), path.to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_known_for_a_second() {
        let hand = Clock::manual();
        let known = Known::new(hand.clock());
        assert_eq!(known.get(b"/"), None);
        known.add(b"/", b"/index.php");
        hand.advance(TIME - Duration::from_millis(1));
        assert_eq!(known.get(b"/"), Some(b"/index.php".to_vec()));
        hand.advance(Duration::from_millis(1));
        assert_eq!(known.get(b"/"), None);
    }

    #[test]
    fn the_room_for_scripts_is_bounded() {
        let known = Known::new(Clock::manual().clock());
        for number in 0..=SCRIPTS_MAX {
            known.add(&number.to_le_bytes(), b"/a.php");
        }
        assert!(known.get(&0usize.to_le_bytes()).is_some());
        assert_eq!(known.get(&SCRIPTS_MAX.to_le_bytes()), None);
    }
}
