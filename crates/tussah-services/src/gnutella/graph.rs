//! The graph of the router, compiled from `gnutella.weave`.

use std::sync::Arc;

use super::catcher::{Catcher, Connect};
use super::node::Node;
use super::pages::{Ask, Pages};
use super::router::Router;
use super::running::Ready;
use super::search::Search;
use super::server::Server;
use super::status::StatusPage;
use crate::modules::{HttpListen, HttpReply};

tussah::flow::weave_file!("gnutella.weave");

/// The text of the graph.
pub(super) const TEXT: &str = include_str!("gnutella.weave");
