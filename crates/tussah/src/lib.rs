//! tussah.
