//! The pace of a stream.

use std::ops::Range;
use std::time::{Duration, Instant};

/// The pace of a stream: what it reads next, and when.
///
/// The first part of a video, as long as `ahead`, is due at once. After that, a chunk is due at the
/// end of each period; a chunk is what the client plays in one period. The stream reads one chunk
/// at a time.
///
/// A stream does not run further ahead of a client that reads more slowly than the video plays.
/// The pace then counts from a period later.
#[derive(Debug)]
pub(super) struct Pace {
    /// Bytes per second.
    rate: u64,
    ahead: Duration,
    period: Duration,
    first: u64,
    /// The first byte that has not been read.
    next: u64,
    end: u64,
    /// The time from which periods count.
    begun: Instant,
    /// The time at which the client began to play: when the first chunk had been read.
    playing: Option<Instant>,
}

/// The next step of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Read these bytes.
    Read(Range<u64>),
    /// Wait for this time.
    Wait(Duration),
    /// Everything has been read.
    End,
}

impl Pace {
    /// Begins a stream of some bytes of a video.
    pub(super) fn new(
        bytes: Range<u64>,
        rate: u64,
        (ahead, period): (Duration, Duration),
        now: Instant,
    ) -> Self {
        Self {
            rate,
            ahead,
            period,
            first: bytes.start,
            next: bytes.start,
            end: bytes.end,
            begun: now,
            playing: None,
        }
    }

    /// Returns the next step. The previous chunk has been read, and `waiting` bytes of all chunks
    /// have not been sent.
    pub(super) fn step(&mut self, now: Instant, waiting: u64) -> Step {
        if self.next >= self.end {
            return Step::End;
        }
        let passed = now.saturating_duration_since(self.begun);
        let periods = passed.as_nanos() / self.period.as_nanos();
        let periods = u32::try_from(periods).expect("a stream ends within ten years");
        let due = self.bytes(self.ahead + self.period * periods);
        if self.next - self.first >= due {
            return Step::Wait(self.period * (periods + 1) - passed);
        }
        if waiting >= self.bytes(self.ahead) {
            self.begun += self.period;
            self.playing = self.playing.map(|playing| playing + self.period);
            return Step::Wait(self.period);
        }
        let end = self.end.min(self.next + self.bytes(self.period));
        let chunk = self.next..end;
        self.next = end;
        Step::Read(chunk)
    }

    /// Records that the chunk that begins at `start` has been read. Returns whether it is late: the
    /// client has already played everything before it.
    pub(super) fn has_read(&mut self, start: u64, now: Instant) -> bool {
        let playing = *self.playing.get_or_insert(now);
        let before = Duration::from_secs_f64((start - self.first) as f64 / self.rate as f64);
        now > playing + before
    }

    /// Returns the number of bytes that a client plays in a time, at least 1.
    fn bytes(&self, time: Duration) -> u64 {
        ((self.rate as f64 * time.as_secs_f64()) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};

    use proptest::prelude::*;

    use super::*;

    const S: Duration = Duration::from_secs(1);

    /// Reads chunks until the stream waits, and returns their ends in seconds of the video.
    fn reads(pace: &mut Pace, now: Instant, waiting: u64) -> (Vec<u64>, Step) {
        let mut ends = Vec::new();
        loop {
            match pace.step(now, waiting) {
                Step::Read(chunk) => {
                    assert!(!pace.has_read(chunk.start, now), "{chunk:?}");
                    ends.push(chunk.end / 1000);
                }
                step => return (ends, step),
            }
        }
    }

    #[test]
    fn a_minute_comes_at_once_and_five_seconds_every_five_seconds() {
        let begun = Instant::now();
        let mut pace = Pace::new(7..100_007, 1000, (60 * S, 5 * S), begun);
        let (ends, step) = reads(&mut pace, begun, 0);
        assert_eq!(ends, [5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60]);
        assert_eq!(step, Step::Wait(5 * S));
        assert_eq!(reads(&mut pace, begun + 4 * S, 0), (vec![], Step::Wait(S)));
        assert_eq!(
            reads(&mut pace, begun + 5 * S, 0),
            (vec![65], Step::Wait(5 * S))
        );
        assert_eq!(
            reads(&mut pace, begun + 11 * S, 0),
            (vec![70], Step::Wait(4 * S))
        );
        // After a pause of the server, everything that is due comes.
        assert_eq!(
            reads(&mut pace, begun + 25 * S, 0),
            (vec![75, 80, 85], Step::Wait(5 * S))
        );
        let (ends, step) = reads(&mut pace, begun + 60 * S, 0);
        assert_eq!((ends, step), (vec![90, 95, 100], Step::End));
    }

    #[test]
    fn a_stream_does_not_run_ahead_of_a_slow_client() {
        let begun = Instant::now();
        let mut pace = Pace::new(0..1_000_000, 1000, (60 * S, 5 * S), begun);
        let (ends, _) = reads(&mut pace, begun, 0);
        assert_eq!(ends.len(), 12);
        for number in 1..10 {
            let now = begun + number * 5 * S;
            assert_eq!(reads(&mut pace, now, 60_000), (vec![], Step::Wait(5 * S)));
        }
        // The pace goes on from where the client was.
        let now = begun + 50 * S;
        assert_eq!(reads(&mut pace, now, 59_999), (vec![65], Step::Wait(5 * S)));
    }

    #[test]
    fn a_chunk_is_late_when_the_client_has_played_everything_before_it() {
        let begun = Instant::now();
        let mut pace = Pace::new(1000..100_000, 1000, (60 * S, 5 * S), begun);
        // The client plays from the first chunk on, however long it waits for that one.
        assert!(!pace.has_read(1000, begun + 9 * S));
        assert!(!pace.has_read(6000, begun + 14 * S));
        assert!(pace.has_read(6000, begun + 15 * S));
        assert!(!pace.has_read(61_000, begun + 69 * S));
    }

    /// Plays videos of a minute and more from a disk, and returns the number of late chunks. A
    /// stream is the time at which it begins, in milliseconds, and its rate. The disk reads one
    /// chunk at a time, in the order in which they were asked for.
    fn late_chunks(streams: &[(u64, u64)], disk_rate: u64) -> usize {
        let begun = Instant::now();
        let mut paces: Vec<Pace> = Vec::new();
        let mut wakes = BTreeSet::new();
        for (number, &(at_ms, rate)) in streams.iter().enumerate() {
            let at = begun + Duration::from_millis(at_ms);
            let bytes = 0..rate * (90 + number as u64 % 7);
            paces.push(Pace::new(bytes, rate, (60 * S, 5 * S), at));
            wakes.insert((at, number));
        }
        let mut queue: VecDeque<(usize, Range<u64>, Instant)> = VecDeque::new();
        let mut reading: Option<(Instant, usize, Range<u64>)> = None;
        let mut late = 0;
        loop {
            if reading.is_none()
                && let Some((number, chunk, asked)) = queue.pop_front()
            {
                let takes = u128::from(chunk.end - chunk.start) * 1_000_000_000;
                let takes = Duration::from_nanos((takes / u128::from(disk_rate)) as u64);
                reading = Some((asked + takes, number, chunk));
            }
            let wake = wakes.first().copied();
            let (now, number) = match (&reading, wake) {
                (Some((at, number, chunk)), wake) if wake.is_none_or(|(wake, _)| *at <= wake) => {
                    let (at, number) = (*at, *number);
                    late += usize::from(paces[number].has_read(chunk.start, at));
                    reading = None;
                    // The next chunk in the queue begins now.
                    for (_, _, begins) in &mut queue {
                        *begins = at.max(*begins);
                    }
                    (at, number)
                }
                (_, Some(wake)) => {
                    wakes.remove(&wake);
                    wake
                }
                (_, None) => return late,
            };
            match paces[number].step(now, 0) {
                Step::Read(chunk) => queue.push_back((number, chunk, now)),
                Step::Wait(time) => {
                    wakes.insert((now + time, number));
                }
                Step::End => {}
            }
        }
    }

    proptest! {
        #[test]
        fn no_stream_is_late_on_a_disk_that_is_as_fast_as_all_of_them(
            streams in prop::collection::vec((0..200_000_u64, 1_000..2_000_000_u64), 1..30),
        ) {
            let rate: u64 = streams.iter().map(|(_, rate)| rate).sum();
            prop_assert_eq!(late_chunks(&streams, rate), 0);
        }
    }

    #[test]
    fn streams_are_late_on_a_slower_disk() {
        let streams = [(0, 1000); 10];
        assert_eq!(late_chunks(&streams, 10_000), 0);
        assert!(late_chunks(&streams, 9_000) > 0);
    }
}
