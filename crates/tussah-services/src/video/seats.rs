//! The admission of streams: each disk has room for the streams that it can read in time.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tussah::time::now;

use super::library::Title;

/// The time for which a seat is kept for a client that may ask for another part of the same video:
/// a seek, or the next segment of a playlist.
const KEPT: Duration = Duration::from_secs(10);

/// Bound, in time: the longest `Retry-After` of a rejected client.
const RETRY_MAX: Duration = Duration::from_secs(120);

/// The seats of all disks.
#[derive(Debug)]
pub(super) struct Seats {
    /// The rate of each disk, in bytes per second.
    disks: Vec<u64>,
    ahead: Duration,
    /// The maximum number of seats for each client address.
    each: usize,
    /// The seats that are taken, by number.
    taken: Mutex<(u64, BTreeMap<u64, Taken>)>,
}

/// A seat that is taken: its part of the rate of a disk is not available to other clients.
#[derive(Debug)]
struct Taken {
    client: Option<IpAddr>,
    title: Arc<Title>,
    /// The time at which the seat is probably free.
    ends: Instant,
    /// True while a stream uses the seat. Otherwise the seat waits for its client until `ends`.
    is_playing: bool,
}

/// The seat of a stream. When it is dropped, the seat is kept for its client for a short time.
#[derive(Debug)]
pub(super) struct Seat {
    number: u64,
    begun: Instant,
    /// The time that a client needs to play the stream, and whether another part of the video
    /// follows it.
    plays: Duration,
    has_more: bool,
    /// True once the whole stream has been read.
    is_read: Arc<AtomicBool>,
    seats: Arc<Seats>,
}

/// The reason why a stream has no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The disk has no room; it may have some after this time.
    Full(Duration),
    /// The disk is slower than the video.
    Slow,
    /// The client has as many seats as it may have.
    Greedy,
}

/// The use of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Use {
    /// The streams that are playing, and the seats that are kept for their clients.
    pub(super) playing: usize,
    pub(super) kept: usize,
    /// The rate that both need together, in bytes per second.
    pub(super) rate: u64,
}

impl Seats {
    pub(super) fn new(disks: Vec<u64>, ahead: Duration, each: usize) -> Self {
        Self {
            disks,
            ahead,
            each,
            taken: Mutex::default(),
        }
    }

    /// Takes a seat for `len` bytes of a video. `has_more` is true if the video continues after
    /// them. A seat that is kept for this client and video is used first.
    pub(super) fn take(
        self: &Arc<Self>,
        client: Option<IpAddr>,
        title: &Arc<Title>,
        len: u64,
        has_more: bool,
    ) -> Result<Seat, Refused> {
        let now = now();
        let plays = Duration::from_secs_f64(len as f64 / title.rate as f64);
        let mut taken = self.taken.lock();
        let (last, all) = &mut *taken;
        all.retain(|_, seat| seat.is_playing || seat.ends > now);
        let mut kept = all.iter();
        let kept = kept.find(|(_, seat)| {
            !seat.is_playing && seat.client == client && seat.title.is_same(title)
        });
        let number = match kept {
            Some((&number, _)) => number,
            None => {
                self.check(all, client, title, now)?;
                *last += 1;
                *last
            }
        };
        let seat = Taken {
            client,
            title: Arc::clone(title),
            ends: now + plays,
            is_playing: true,
        };
        all.insert(number, seat);
        drop(taken);
        Ok(Seat {
            number,
            begun: now,
            plays,
            has_more,
            is_read: Arc::default(),
            seats: Arc::clone(self),
        })
    }

    /// Checks whether there is room for another seat.
    fn check(
        &self,
        all: &BTreeMap<u64, Taken>,
        client: Option<IpAddr>,
        title: &Title,
        now: Instant,
    ) -> Result<(), Refused> {
        let of_client = all.values().filter(|seat| seat.client == client);
        if of_client.count() >= self.each {
            return Err(Refused::Greedy);
        }
        let on_disk = || all.values().filter(|seat| seat.title.disk == title.disk);
        let rate: u64 = on_disk().map(|seat| seat.title.rate).sum();
        if rate + title.rate <= self.disks[title.disk] {
            return Ok(());
        }
        let next = on_disk().map(|seat| seat.ends.saturating_duration_since(now));
        let Some(next) = next.min().filter(|_| title.rate <= self.disks[title.disk]) else {
            return Err(Refused::Slow);
        };
        Err(Refused::Full(next.clamp(Duration::from_secs(1), RETRY_MAX)))
    }

    /// Returns the use of each disk.
    pub(super) fn uses(&self) -> Vec<Use> {
        let now = now();
        let mut uses = vec![Use::default(); self.disks.len()];
        for seat in self.taken.lock().1.values() {
            let of = &mut uses[seat.title.disk];
            match seat.is_playing {
                true => of.playing += 1,
                false if seat.ends > now => of.kept += 1,
                false => continue,
            }
            of.rate += seat.title.rate;
        }
        uses
    }
}

impl Seat {
    /// Returns a flag to set when the whole stream has been read.
    pub(super) fn is_read(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_read)
    }
}

impl Drop for Seat {
    /// Keeps the seat: after a stream that was broken off, for a seek. After a whole stream, until
    /// its client has played it and has asked for the next part.
    fn drop(&mut self) {
        let now = now();
        // Relaxed: the stream was read before the connection got its last part.
        let is_read = self.is_read.load(Ordering::Relaxed);
        let (_, all) = &mut *self.seats.taken.lock();
        if is_read && !self.has_more {
            all.remove(&self.number);
            return;
        }
        let passed = now.saturating_duration_since(self.begun);
        let unplayed = match is_read {
            true => self.plays.saturating_sub(passed).min(self.seats.ahead),
            false => Duration::ZERO,
        };
        if let Some(seat) = all.get_mut(&self.number) {
            seat.is_playing = false;
            seat.ends = now + unplayed + KEPT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tussah::{Clock, ManualClock, Runtime};

    const S: Duration = Duration::from_secs(1);

    fn title(path: &str, disk: usize, rate: u64) -> Arc<Title> {
        Arc::new(Title::fake(path, disk, rate))
    }

    fn client(number: u8) -> Option<IpAddr> {
        Some([10, 0, 0, number].into())
    }

    /// Runs a test with two disks of 10,000 bytes per second and at most 4 seats for each client.
    fn with_seats(test: impl FnOnce(&Arc<Seats>, &ManualClock)) {
        let clock = Clock::manual();
        let runtime = Runtime::builder().workers(1).clock(clock.clock()).build();
        let seats = Arc::new(Seats::new(vec![10_000, 10_000], 60 * S, 4));
        runtime
            .expect("a runtime")
            .block_on(async { test(&seats, &clock) });
    }

    #[test]
    fn a_disk_has_room_for_its_rate() {
        with_seats(|seats, _| {
            let (a, b) = (title("/a", 0, 4000), title("/b", 1, 4000));
            let take = |number, title| seats.take(client(number), title, 40_000, false);
            let _first = take(1, &a).expect("there is room");
            let second = take(2, &a).expect("there is room");
            assert_eq!(take(3, &a).expect_err("full"), Refused::Full(10 * S));
            let fast = title("/fast", 0, 10_001);
            assert_eq!(take(3, &fast).expect_err("slow"), Refused::Slow);
            let _other = take(3, &b).expect("the other disk has room");
            second.is_read().store(true, Ordering::Relaxed);
            drop(second);
            let _third = take(3, &a).expect("the second has ended");
            let of = |playing, rate| Use {
                playing,
                kept: 0,
                rate,
            };
            assert_eq!(seats.uses(), [of(2, 8000), of(1, 4000)]);
        });
    }

    #[test]
    fn a_seat_is_kept_for_a_seek() {
        with_seats(|seats, clock| {
            let a = title("/a", 0, 10_000);
            let take = |number| seats.take(client(number), &a, 1_000_000, false);
            drop(take(1).expect("there is room"));
            assert_eq!(take(2).expect_err("kept"), Refused::Full(10 * S));
            drop(take(1).expect("it is kept for this client"));
            clock.advance(9 * S);
            assert_eq!(take(2).expect_err("kept"), Refused::Full(S));
            assert_eq!(seats.uses()[0].kept, 1);
            clock.advance(S);
            assert_eq!(seats.uses()[0], Use::default());
            take(2).expect("it is free");
        });
    }

    #[test]
    fn a_seat_is_kept_until_a_segment_has_been_played() {
        with_seats(|seats, clock| {
            let a = title("/a", 0, 10_000);
            let segment = |number| seats.take(client(number), &a, 60_000, true);
            let first = segment(1).expect("there is room");
            first.is_read().store(true, Ordering::Relaxed);
            drop(first);
            clock.advance(15 * S);
            assert_eq!(segment(2).expect_err("kept"), Refused::Full(S));
            drop(segment(1).expect("the next segment"));
        });
    }

    #[test]
    fn a_greedy_client_gets_a_few_seats() {
        with_seats(|seats, _| {
            let titles: Vec<_> = (0..5)
                .map(|n| title(&format!("/{n}"), n % 2, 100))
                .collect();
            let take = |number, title| seats.take(client(number), title, 1000, false);
            let held: Vec<_> = titles[..4].iter().map(|title| take(1, title)).collect();
            assert!(held.iter().all(Result::is_ok));
            assert_eq!(take(1, &titles[4]).expect_err("5"), Refused::Greedy);
            take(2, &titles[4]).expect("another client");
        });
    }
}
