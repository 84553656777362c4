//! The integration tests of tussah, in one binary.

mod sync;
