//! The graph of the server, compiled from `video.weave`.

use std::sync::Arc;

use super::disk::Disk;
use super::find::Find;
use super::library::Library;
use super::play::{Admit, Play};
use super::server::Ready;
use super::status::StatusPage;
use crate::modules::{HttpListen, HttpReply};

tussah::flow::weave_file!("video.weave");

/// The text of the graph.
pub(super) const TEXT: &str = include_str!("video.weave");
