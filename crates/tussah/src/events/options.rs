//! Options of a single post.

use std::fmt;
use std::time::Instant;

use tussah_core::{AsColor, DropReason, Handle, quietly};

use super::refused::{Parcel, Refused, unpack};
use crate::time;

/// Options for posting an event; see [`post_with`](super::post_with).
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::{Color, PostOptions, post_with, time};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(async {
/// let options = PostOptions::new()
///     .deadline(time::now() + Duration::from_secs(2))
///     .depth_max(1000)
///     .on_drop(|reason| println!("503: {reason:?}"));
/// post_with(Color(17), options, || println!("200"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).expect("posted");
/// # std::io::Result::Ok(())
/// ```
#[derive(Default)]
#[must_use = "options do nothing until they are used in a post"]
pub struct PostOptions {
    deadline: Option<Instant>,
    on_drop: Option<OnDrop>,
    depth_max: Option<u32>,
    priority: Option<i8>,
}

type OnDrop = Box<dyn FnOnce(DropReason) + Send>;

impl PostOptions {
    /// Creates options without a deadline, drop callback, depth limit or priority.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a deadline, measured by the runtime's clock. If the deadline has passed when the event
    /// would run, the runtime drops the closure without running it.
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets a callback that runs in the event's color if the event is dropped without running. The
    /// callback receives the reason. The event's closure is dropped before the callback runs.
    pub fn on_drop(mut self, f: impl FnOnce(DropReason) + Send + 'static) -> Self {
        self.on_drop = Some(Box::new(f));
        self
    }

    /// Sets the maximum number of posted events in the color's queue. The maximum applies to this
    /// post and to all later posts in the same color. If the queue is already full, this post is
    /// rejected; see [`ColorRef::set_depth_max`](crate::ColorRef::set_depth_max).
    pub fn depth_max(mut self, events: u32) -> Self {
        self.depth_max = Some(events);
        self
    }

    /// Sets the color's priority, which remains in effect until another priority is set. The
    /// priority influences the order among colors, never the order of events within a color; see
    /// [`ColorRef::set_priority`](crate::ColorRef::set_priority).
    pub fn priority(mut self, priority: i8) -> Self {
        self.priority = Some(priority);
        self
    }
}

impl fmt::Debug for PostOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostOptions")
            .field("deadline", &self.deadline)
            .field("on_drop", &self.on_drop.is_some())
            .field("depth_max", &self.depth_max)
            .field("priority", &self.priority)
            .finish()
    }
}

#[track_caller]
pub(super) fn post<F: FnOnce() + Send + 'static>(
    handle: &Handle,
    color: impl AsColor,
    options: PostOptions,
    f: F,
) -> Result<(), Refused<F>> {
    let color = handle.color(color);
    if let Some(events) = options.depth_max {
        color.set_depth_max(events);
    }
    if let Some(priority) = options.priority {
        color.set_priority(priority);
    }
    let mut event = Event {
        f: Parcel::new(f),
        deadline: options.deadline,
        on_drop: options.on_drop,
    };
    handle.post_in(&color, move || event.run()).map_err(unpack)
}

/// An event with options. If it is dropped unrun, it calls its drop callback.
struct Event<F: FnOnce() + 'static> {
    f: Parcel<F>,
    deadline: Option<Instant>,
    on_drop: Option<OnDrop>,
}

impl<F: FnOnce()> Event<F> {
    fn run(&mut self) {
        if self.deadline.is_some_and(|deadline| deadline < time::now()) {
            return self.drop_unrun(DropReason::Expired);
        }
        let f = self.f.open().expect("an event runs once");
        f();
    }

    fn drop_unrun(&mut self, reason: DropReason) {
        // The callback runs even if the closure's destructor panics.
        quietly(|| drop(self.f.open()));
        if let Some(on_drop) = self.on_drop.take() {
            on_drop(reason);
        }
    }
}

impl<F: FnOnce() + 'static> Drop for Event<F> {
    fn drop(&mut self) {
        self.f.give_back();
        if self.f.is_full() {
            quietly(|| self.drop_unrun(DropReason::ShutDown));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    fn check(
        deadline: Option<Instant>,
        act: impl FnOnce(&mut Event<Box<dyn FnOnce()>>),
        expected: Option<DropReason>,
    ) {
        let (sender, receiver) = mpsc::channel();
        let ran = sender.clone();
        let f: Box<dyn FnOnce()> = Box::new(move || ran.send(None).expect("the test listens"));
        let on_drop: OnDrop =
            Box::new(move |reason| sender.send(Some(reason)).expect("the test listens"));
        let mut event = Event {
            f: Parcel::new(f),
            deadline,
            on_drop: Some(on_drop),
        };
        act(&mut event);
        drop(event);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn an_event_runs_or_reports_why_not() {
        let past = Instant::now();
        let future = past + Duration::from_secs(3600);
        check(None, Event::run, None);
        check(Some(future), Event::run, None);
        check(Some(past), Event::run, Some(DropReason::Expired));
        check(Some(future), |_| (), Some(DropReason::ShutDown));
        check(Some(past), |_| (), Some(DropReason::ShutDown));
    }
}
