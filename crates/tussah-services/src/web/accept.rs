//! *Accept*: starts a thread for each connection, as long as there are not too many.

use std::sync::Arc;

use tussah::stage::{Direct, DirectHandler};

use super::connection::Connection;
use super::exchange::Exchange;
use super::parse::Parse;
use super::server::Server;
use super::stream::Stream;
use super::thread::{refuse, serve};

/// The stage.
pub(crate) struct Accept(pub(crate) Arc<Entry>);

/// Where requests enter the network.
pub(crate) struct Entry {
    pub(crate) server: Arc<Server>,
    pub(crate) parse: Direct<Box<Exchange>, Parse>,
}

impl DirectHandler for Accept {
    type Event = Stream;

    fn handle(&self, stream: Stream) {
        let connection = Arc::new(Connection::new(stream));
        let entry = Arc::clone(&self.0);
        match entry.server.connections.enter(&connection) {
            Some(place) => drop(tussah::spawn(serve(connection, entry, place))),
            None => drop(tussah::spawn(refuse(connection, entry))),
        }
    }
}
