//! The whole scheduler under load: exclusion and order on many colors, with stealing and a changing
//! number of workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tussah_core::{Color, Colored, Runtime, yield_now};

/// The check of a color's events: that they are alone, and in the order of each poster.
struct Checked {
    busy: AtomicBool,
    next: Vec<AtomicU64>,
}

impl Checked {
    fn new(posters: usize) -> Self {
        Self {
            busy: AtomicBool::new(false),
            next: (0..posters).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn event(&self, poster: usize, number: u64) {
        assert!(
            !self.busy.swap(true, Ordering::Relaxed),
            "two events of one color ran at once"
        );
        let next = self.next[poster].fetch_add(1, Ordering::Relaxed);
        assert_eq!(next, number, "the events of a poster ran out of order");
        if number & 15 == 0 {
            std::thread::yield_now();
        }
        self.busy.store(false, Ordering::Relaxed);
    }
}

#[test]
fn exclusion_and_order_on_a_thousand_colors() {
    const COLORS: usize = 1000;
    const POSTERS: usize = 4;
    const ROUNDS: u64 = 30;
    let runtime = Runtime::builder()
        .workers(3)
        .steal_delay(std::time::Duration::from_micros(1))
        .build()
        .expect("workers start");
    let checked: Arc<Vec<_>> = Arc::new((0..COLORS).map(|_| Checked::new(POSTERS)).collect());
    let ran = Arc::new(AtomicUsize::new(0));
    let wrong = Arc::new(AtomicBool::new(false));
    let post = {
        let (checked, ran, wrong, handle) = (
            checked.clone(),
            ran.clone(),
            wrong.clone(),
            runtime.handle().clone(),
        );
        move |poster: usize, color: usize, number: u64| {
            let (checked, ran, wrong) = (checked.clone(), ran.clone(), wrong.clone());
            handle
                .post_in(Color(color as u64), move || {
                    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        checked[color].event(poster, number);
                    }));
                    wrong.fetch_or(caught.is_err(), Ordering::Relaxed);
                    ran.fetch_add(1, Ordering::Relaxed);
                })
                .expect("open");
        }
    };
    std::thread::scope(|scope| {
        // Two posters from outside, two from inside.
        for poster in 0..2 {
            let post = post.clone();
            scope.spawn(move || {
                for number in 0..ROUNDS {
                    (0..COLORS).for_each(|color| post(poster, color, number));
                }
            });
        }
        for poster in 2..4 {
            let post = post.clone();
            drop(runtime.spawn(async move {
                for number in 0..ROUNDS {
                    (0..COLORS)
                        .rev()
                        .for_each(|color| post(poster, color, number));
                    yield_now().await;
                }
            }));
        }
        for workers in [1, 4, 2, 3, 1, 2] {
            runtime.set_workers(workers).expect("workers start");
            let so_far = ran.load(Ordering::Relaxed);
            while ran.load(Ordering::Relaxed)
                < (so_far + 5_000).min(COLORS * POSTERS * ROUNDS as usize)
            {
                std::thread::yield_now();
            }
        }
    });
    let all = COLORS * POSTERS * ROUNDS as usize;
    while ran.load(Ordering::Relaxed) < all {
        std::thread::yield_now();
    }
    assert!(
        !wrong.load(Ordering::Relaxed),
        "an event found its color broken; see above"
    );
    let report = runtime.shutdown(std::time::Duration::from_secs(10));
    assert!(report.drained);
}

#[test]
fn mixed_operations_on_shared_values_add_up() {
    let runtime = Runtime::builder()
        .workers(2)
        .steal_delay(std::time::Duration::from_micros(1))
        .build()
        .expect("workers start");
    let values: Arc<Vec<_>> = Arc::new(
        (0..8)
            .map(|_| Colored::new_in(&runtime, (0u64, false)))
            .collect(),
    );
    fn enter(value: &mut (u64, bool)) {
        assert!(
            !std::mem::replace(&mut value.1, true),
            "two closures had the value at once"
        );
        value.0 += 1;
        value.1 = false;
    }
    let threads: Vec<_> = (0..16usize)
        .map(|id| {
            let values = values.clone();
            runtime.spawn(async move {
                for round in 0..300 {
                    let (one, two) = (
                        &values[(id + round) % 8],
                        &values[(id * 3 + round * 5 + 1) % 8],
                    );
                    match round % 5 {
                        0 => one.with(enter).await,
                        1 => one.post(enter).expect("open"),
                        2 => one.read(|value| assert!(!value.1)).await,
                        3 if one.color() != two.color() => {
                            tussah_core::with_all((one, two), |one, two| {
                                enter(one);
                                enter(two);
                            })
                            .await;
                        }
                        _ => {
                            // Cancelled: it may have been counted, if it entered at once.
                            let mut request = std::pin::pin!(one.with(|value| assert!(!value.1)));
                            let _ = futures_lite::future::poll_once(&mut request).await;
                            yield_now().await;
                        }
                    }
                }
            })
        })
        .collect();
    let sum = runtime.block_on(async {
        for thread in threads {
            thread.await.expect("no panic");
        }
        let mut sum = 0;
        for value in values.iter() {
            sum += value.with(|value| value.0).await;
        }
        sum
    });
    let mut expected = 0;
    for id in 0..16usize {
        for round in 0..300 {
            let (one, two) = ((id + round) % 8, (id * 3 + round * 5 + 1) % 8);
            expected += match round % 5 {
                0 | 1 => 1,
                3 if one != two => 2,
                _ => 0,
            };
        }
    }
    assert_eq!(sum, expected);
}
