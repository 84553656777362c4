//! *HttpSend*: writes responses. The connection's thread writes the data for which the socket has
//! no room.

use std::io::{self, IoSlice};
use std::sync::Arc;

use tussah::stage::DirectHandler;

use crate::web::connection::exchange::{Body, Exchange, Next};
use crate::web::connection::response::SLICES_MAX;
use crate::web::server::Server;

/// The stage.
pub(crate) struct Send(pub(crate) Arc<Server>);

impl DirectHandler for Send {
    type Event = Box<Exchange>;

    fn handle(&self, mut exchange: Box<Exchange>) {
        let Some(connection) = &exchange.connection else {
            return;
        };
        if matches!(exchange.body, Body::Piped(_)) {
            exchange.next = Next::Write;
            return exchange.give_back();
        }
        let written = match exchange.response.only() {
            Some(bytes) => connection.stream.try_write(bytes),
            None => {
                let mut slices = [IoSlice::new(&[]); SLICES_MAX];
                match exchange.response.slices(&mut slices) {
                    0 => Ok(0),
                    count => {
                        let more = count < exchange.response.pieces.len();
                        connection.stream.try_write_vectored(&slices[..count], more)
                    }
                }
            }
        };
        exchange.next = match written {
            Ok(len) if exchange.response.advance(len as u64) => {
                self.0.note(&connection.stream, &exchange);
                return exchange.finish(self.0.clock.last_passed_s());
            }
            Ok(_) => Next::Write,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Next::Write,
            Err(_) => {
                let connection = Arc::clone(connection);
                self.0.note_broken(&connection.stream, &mut exchange);
                Next::Reset
            }
        };
        exchange.give_back();
    }
}
