//! The time limits of streams.

/// The methods that set them, for a stream with an extra part. It takes `io`, `Duration`, `Direction` and `Limited` from where it is
/// used.
macro_rules! time_limits {
    () => {
        /// Sets how long a read may wait for the peer before it fails with `TimedOut`, from the next operation on. Nothing is lost
        /// then; reading again goes on. Without a limit (`None`, the default) it costs nothing.
        ///
        /// The `poll_` functions are not told that somebody gives up. Who polls again goes on with the wait that has begun, unless its time was up
        /// more than a second ago.
        ///
        /// # Errors
        /// `InvalidInput` for zero.
        pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
            self.set_timeout(Direction::Read, timeout)
        }

        /// What [`set_read_timeout`](Self::set_read_timeout) has set.
        #[must_use]
        pub fn read_timeout(&self) -> Option<Duration> {
            self.extra()?.timeout(Direction::Read)
        }

        /// Sets how long a write may wait for room before it fails with `TimedOut`, from the next operation on. Operations
        /// that write all of something may wait as long for each part.
        ///
        /// # Errors
        /// `InvalidInput` for zero.
        pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
            self.set_timeout(Direction::Write, timeout)
        }

        /// What [`set_write_timeout`](Self::set_write_timeout) has set.
        #[must_use]
        pub fn write_timeout(&self) -> Option<Duration> {
            self.extra()?.timeout(Direction::Write)
        }

        fn set_timeout(&self, direction: Direction, timeout: Option<Duration>) -> io::Result<()> {
            if timeout == Some(Duration::ZERO) {
                let text = "expected a time limit above zero, or none";
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
