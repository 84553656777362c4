//! What a runtime does where io_uring is refused.
