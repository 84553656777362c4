//! Starting threads on a runtime that may have shut down.

use std::future::Future;
use std::panic::Location;

use super::Handle;
use super::post::{AsColor, PostError};
use crate::thread::{self, JoinHandle};

impl Handle {
    /// Starts a thread, as [`spawn`](Self::spawn) does, for callers that may run while the runtime
    /// shuts down.
    ///
    /// # Errors
    /// Returns the future if the runtime has shut down.
    #[track_caller]
    pub fn try_spawn<F>(&self, future: F) -> Result<JoinHandle<F::Output>, PostError<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        if !self.shared.is_open() {
            return Err(PostError::shut_down(future));
        }
        Ok(self.start(Location::caller(), future))
    }

    /// Starts a thread, as [`spawn_in`](Self::spawn_in) does, for callers that may run while the
    /// runtime shuts down.
    ///
    /// # Errors
    /// Returns the future if the runtime has shut down.
    ///
    /// # Panics
    /// Panics if the color belongs to another runtime.
    ///
    /// # Examples
    /// ```
    /// # use tussah_core as tussah;
    /// use tussah::Color;
    /// let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// let handle = runtime.handle().clone();
    /// assert!(handle.try_spawn_in(Color(7), async {}).is_ok());
    /// drop(runtime);
    /// let refused = handle.try_spawn_in(Color(7), async {}).expect_err("it is too late");
    /// assert!(refused.is_shut_down());
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn try_spawn_in<F>(
        &self,
        color: impl AsColor,
        future: F,
    ) -> Result<JoinHandle<F::Output>, PostError<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        if !self.shared.is_open() {
            return Err(PostError::shut_down(future));
        }
        let location = Location::caller();
        let color = color.reference(&self.shared);
        self.assert_mine(color.cell());
        Ok(thread::spawn(&self.shared, color, location, future))
    }
}
