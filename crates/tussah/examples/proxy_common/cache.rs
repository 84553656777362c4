//! A cache of responses.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bound, in bytes: the largest response that is cached.
pub const ANSWER_MAX: usize = 64 * 1024;

/// Small responses by URL. When the space is used up, the oldest response is evicted. Revalidation
/// is not implemented.
#[derive(Debug)]
pub struct Cache {
    answers: HashMap<Arc<str>, Answer>,
    /// The URLs in the order in which their responses arrived.
    order: VecDeque<Arc<str>>,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Clone, Debug)]
struct Answer {
    /// The whole response, head and body.
    bytes: Arc<[u8]>,
    since: Instant,
    fresh_for: Duration,
}

impl Cache {
    pub fn new(bytes_max: usize) -> Self {
        Self {
            answers: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Returns the response for a URL with its age, if one is fresh (RFC 9111, section 5.1).
    pub fn get(&self, url: &str, now: Instant) -> Option<Vec<u8>> {
        let answer = self.answers.get(url)?;
        let age = now.saturating_duration_since(answer.since);
        if age >= answer.fresh_for {
            return None;
        }
        let line = answer.bytes.iter().position(|byte| *byte == b'\n')? + 1;
        let (status, rest) = answer.bytes.split_at(line);
        let age = format!("Age: {}\r\n", age.as_secs());
        Some([status, age.as_bytes(), rest].concat())
    }

    pub fn put(&mut self, url: &str, bytes: &[u8], fresh_for: Duration, now: Instant) {
        let size = url.len() + bytes.len();
        if bytes.len() > ANSWER_MAX || size > self.bytes_max {
            return;
        }
        self.remove(url);
        while self.bytes + size > self.bytes_max {
            let oldest = self.order.front().expect("what is counted is there");
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
        let url: Arc<str> = url.into();
        let answer = Answer {
            bytes: bytes.into(),
            since: now,
            fresh_for,
        };
        self.bytes += size;
        self.order.push_back(url.clone());
        self.answers.insert(url, answer);
    }

    fn remove(&mut self, url: &str) {
        if let Some(answer) = self.answers.remove(url) {
            self.bytes -= url.len() + answer.bytes.len();
            self.order.retain(|other| &**other != url);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_keeps_fresh_responses_within_its_bound() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut cache = Cache::new(40);
        for url in ["a", "b", "c"] {
            cache.put(url, b"HTTP/1.1\n12345", 10 * second, now);
        }
        let get = |cache: &Cache, url: &str, after: u32| {
            let bytes = cache.get(url, now + after * second)?;
            Some(String::from_utf8(bytes).expect("it is text"))
        };
        assert_eq!(get(&cache, "a", 0), None, "the oldest had to go");
        let expected = "HTTP/1.1\nAge: 9\r\n12345";
        assert_eq!(get(&cache, "c", 9).as_deref(), Some(expected));
        assert_eq!(get(&cache, "c", 10), None);
        cache.put("b", b"HTTP/1.1\nnew", second, now);
        assert_eq!(
            get(&cache, "b", 0).as_deref(),
            Some("HTTP/1.1\nAge: 0\r\nnew")
        );
        assert_eq!(cache.bytes, 1 + 14 + 1 + 12);
        cache.put("d", &[0; 40], second, now);
        assert_eq!(get(&cache, "d", 0), None, "it is too large");
        assert_eq!(cache.order.len(), cache.answers.len());
    }
}
