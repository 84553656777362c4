//! A router for the Gnutella network: a flow graph that forwards packets between peers.
//!
//! The graph follows the design of the packet router in section 5.2 of Welsh, Culler and Brewer,
//! "SEDA" (SOSP 2001): a server that talks to the peers, a router, and a catcher that keeps the
//! node connected. The router forwards pings and queries to all other peers, and returns pushes,
//! pongs and query hits along the paths of the packets that they answer. `docs/gnutella.md`
//! describes the limits and the treatment of misbehaving peers.

mod catcher;
mod cli;
mod connection;
mod counts;
mod graph;
mod handshake;
mod hosts;
mod node;
mod options;
mod pages;
mod peer;
mod router;
mod running;
mod search;
mod server;
mod share;
mod status;
mod why;

pub use cli::{Arguments, run};
pub use options::Options;
pub use running::{Gnutella, GnutellaError, Running};
