//! *Accept*: starts a thread for each connection.

use std::sync::Arc;

use tussah::stage::{Batch, Direct, Handler};

use super::connection::Connection;
use super::exchange::Exchange;
use super::parse::Parse;
use super::server::Server;
use super::stream::Stream;
use super::thread::serve;

/// The stage.
pub(crate) struct Accept(pub(crate) Arc<Entry>);

/// Where requests enter the network.
pub(crate) struct Entry {
    pub(crate) server: Arc<Server>,
    pub(crate) parse: Direct<Box<Exchange>, Parse>,
}

impl Handler for Accept {
    type Event = Stream;

    async fn handle(&self, batch: &mut Batch<Stream>) {
        while let Some(stream) = batch.next() {
            let connection = Arc::new(Connection::new(stream));
            tussah::spawn(serve(connection, Arc::clone(&self.0)));
        }
    }
}
