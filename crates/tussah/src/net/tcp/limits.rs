//! The timeouts of streams.

/// Defines the methods that set timeouts, for a stream with an `Extra`. It uses `io`, `Duration`,
/// `Direction` and `Limited` from the calling module.
macro_rules! time_limits {
    () => {
        /// Sets how long a read may wait for the peer before it fails with `TimedOut`, from the
        /// next operation on. No data is lost: a later read continues. A stream without a timeout
        /// (`None`, the default) has no additional cost.
        ///
        /// The `poll_` functions cannot know that a caller has given up. Polling again continues
        /// the earlier wait, unless its timeout elapsed more than a second ago.
        ///
        /// # Errors
        /// Returns `InvalidInput` for zero.
        pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
            self.set_timeout(Direction::Read, timeout)
        }

        /// Returns the read timeout; see [`set_read_timeout`](Self::set_read_timeout).
        #[must_use]
        pub fn read_timeout(&self) -> Option<Duration> {
            self.extra()?.timeout(Direction::Read)
        }

        /// Sets how long a write may wait for room before it fails with `TimedOut`, from the next
        /// operation on. Operations that write a whole buffer may wait that long for each part.
        ///
        /// # Errors
        /// Returns `InvalidInput` for zero.
        pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
            self.set_timeout(Direction::Write, timeout)
        }

        /// Returns the write timeout; see [`set_write_timeout`](Self::set_write_timeout).
        #[must_use]
        pub fn write_timeout(&self) -> Option<Duration> {
            self.extra()?.timeout(Direction::Write)
        }

        fn set_timeout(&self, direction: Direction, timeout: Option<Duration>) -> io::Result<()> {
            if timeout == Some(Duration::ZERO) {
                let text = "expected a timeout above zero, or none";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            if timeout.is_some() || self.extra().is_some() {
                self.make_extra().set_timeout(direction, timeout);
            }
            Ok(())
        }
    };
}

pub(in crate::net) use time_limits;
