//! The options for the classes of events.

use super::StageBuilder;
use crate::stage::event::{CLASSES_MAX, Class, Classes};

impl<E: Send + 'static> StageBuilder<E> {
    /// Sets the number of classes, 1 to 8. Class 0 is served first. Events of lower-numbered
    /// classes can delay a class, but cannot starve it: after 64 of these events, the stage serves
    /// one event of the waiting class. To divide the capacity among classes instead, use
    /// [`class_shares`](Self::class_shares).
    ///
    /// # Panics
    /// Panics if `classes` is 0 or above 8.
    #[track_caller]
    pub fn classes(mut self, classes: usize) -> Self {
        assert!(
            (1..=CLASSES_MAX).contains(&classes),
            "a stage has 1 to {CLASSES_MAX} classes; asked were {classes}"
        );
        self.classes = Classes::by_priority(classes);
        self
    }

    /// Creates one class for each share (1 to 8 shares), and divides the capacity among the
    /// classes. While events of all classes wait, the stage serves the classes in proportion to
    /// their shares. Capacity that a class does not need goes to the other classes. A share of 0
    /// counts as 1.
    ///
    /// With a [target](Self::target), an overloaded stage admits as many events of each class as it
    /// can serve in time. Each class can use its own share of the capacity, and capacity that other
    /// classes leave unused. The stage therefore rejects only excess events of a class that sends
    /// too many. In simulations whose handlers never wait, each class gets the capacity due to it,
    /// to within 8 %. The division is less exact in three cases:
    ///
    /// - If handlers wait for a limited resource, a class that needs most of its share can lose up
    ///   to a fifth of its events. This happens while another class sends many times as many events
    ///   as the stage can handle.
    /// - After a class starts to send far too many events, the stage may reject events of all
    ///   classes until it has served several hundred events. These rejections last about 1 s if the
    ///   stage serves 800 events/s, and 8 s if it serves 100 events/s.
    /// - A class whose share is at most one hundredth of the total gets more than its share.
    ///
    /// In a keyed stage, the events of a key stay in order, so shares only decide which key is
    /// served next. A whole batch counts against the share of one class: the class of the key's
    /// oldest event.
    ///
    /// Without a target, events of one class can fill the queue, and the stage then refuses events
    /// of other classes. To prevent this, limit the number of queued events of the class with
    /// [`class_queue`](Self::class_queue).
    ///
    /// # Panics
    /// Panics if there are no shares, or more than 8.
    ///
    /// # Examples
    /// In this example, paying customers get three quarters of the capacity, if they need it:
    /// ```
    /// use std::time::Duration;
    /// use tussah::stage::{BuildError, Handler, Network};
    ///
    /// fn build<H: Handler>(network: &Network, handler: H) -> Result<(), BuildError> {
    ///     let stage = network.stage("search").target(Duration::from_millis(100));
    ///     stage.class_shares(&[3, 1]).handler(|_| Ok(handler))?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn class_shares(mut self, shares: &[u32]) -> Self {
        assert!(
            (1..=CLASSES_MAX).contains(&shares.len()),
            "a stage has 1 to {CLASSES_MAX} classes; asked were {} shares",
            shares.len()
        );
        self.classes = Classes::by_share(shares);
        self
    }

    /// Sets the maximum number of queued events of one class; by default, only the queue's bound
    /// applies. If the stage does not have the class, this method has no effect.
    pub fn class_queue(mut self, class: Class, events: u64) -> Self {
        if let Some(max) = self.class_max.get_mut(usize::from(class.0)) {
            *max = events.max(1);
        }
        self
    }
}
