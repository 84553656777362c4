//! *Accept*: starts a thread for each connection, as long as there are not too many.

use std::sync::Arc;

use tussah::Color;
use tussah::stage::{Direct, DirectHandler};

use super::config::Colors;
use super::connection::Connection;
use super::exchange::Exchange;
use super::parse::Parse;
use super::server::Server;
use super::stream::Stream;
use super::thread::{refuse, serve};

/// The color of all connections, if none has one of its own.
const ALL: Color = Color(1);

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
            Some(place) => match entry.server.config.colors {
                Colors::Connection => drop(tussah::spawn(serve(connection, entry, place))),
                Colors::One => {
                    drop(tussah::spawn_in(ALL, serve(connection, entry, place)));
                }
            },
            None => drop(tussah::spawn(refuse(connection, entry))),
        }
    }
}
