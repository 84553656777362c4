//! The words of settings that have a fixed set of values.

use tussah::stage::control::Mode;

use super::settings::{
    CacheKind, Colors, DiagnosticsFormat, DiagnosticsLevel, HalfClose, LogFormat,
};
use super::value::Choice;
use crate::web::site::{Dotfiles, Symlinks};

impl Choice for Colors {
    const WORDS: &'static [(&'static str, Self)] =
        &[("connection", Self::Connection), ("one", Self::One)];
}

impl Choice for Mode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("on", Self::On),
        ("observe", Self::Observe),
        ("off", Self::Off),
    ];
}

impl Choice for HalfClose {
    const WORDS: &'static [(&'static str, Self)] =
        &[("cancel", Self::Cancel), ("serve", Self::Serve)];
}

impl Choice for CacheKind {
    const WORDS: &'static [(&'static str, Self)] =
        &[("sharded", Self::Sharded), ("none", Self::None)];
}

impl Choice for LogFormat {
    const WORDS: &'static [(&'static str, Self)] =
        &[("common", Self::Common), ("combined", Self::Combined)];
}

impl Choice for DiagnosticsLevel {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("off", Self::Off),
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
    ];
}

impl Choice for DiagnosticsFormat {
    const WORDS: &'static [(&'static str, Self)] = &[("text", Self::Text), ("json", Self::Json)];
}

impl Choice for Symlinks {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("none", Self::None),
        ("inside", Self::Inside),
        ("all", Self::All),
    ];
}

impl Choice for Dotfiles {
    const WORDS: &'static [(&'static str, Self)] =
        &[("hidden", Self::Hidden), ("served", Self::Served)];
}
