//! The attribute macros of tussah.
