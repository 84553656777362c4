//! Running a user's code where its panic is nobody's: destructors and wakers.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `f` and drops what it throws. The hook has printed it.
///
/// What is thrown is a user's value too. If even its destructor panics, that second value is leaked: dropping it could go
/// on like this for ever.
pub(crate) fn quietly(f: impl FnOnce()) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else {
        return;
    };
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_payload_that_panics_when_dropped_is_contained() {
        struct Again;
        impl Drop for Again {
            fn drop(&mut self) {
                panic!("in the destructor of what was thrown");
            }
        }
        let mut ran = false;
        quietly(|| {
            ran = true;
            std::panic::panic_any(Again)
        });
        assert!(ran);
    }
}
