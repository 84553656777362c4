//! The bytes of a burst and the server's code to check and acknowledge them.

use std::sync::atomic::Ordering;

use crate::server::RECEIVED;

/// The size of a packet, in bytes.
pub const PACKET: usize = 8 << 10;
/// The number of packets in a burst.
const PACKETS: usize = 1000;
/// The size of a burst, in bytes.
pub const BURST: usize = PACKET * PACKETS;
/// The size of an acknowledgement, in bytes.
pub const ACK: usize = 32;

/// Returns a whole burst; every packet begins with its number.
pub fn burst() -> Vec<u8> {
    let mut burst = vec![0x5a; BURST];
    for (number, packet) in burst.chunks_exact_mut(PACKET).enumerate() {
        packet[..8].copy_from_slice(&number.to_ne_bytes());
    }
    burst
}

/// Returns the acknowledgement of a connection's burst with this number.
pub fn ack(number: u64) -> [u8; ACK] {
    let mut ack = [0xa5; ACK];
    ack[..8].copy_from_slice(&number.to_ne_bytes());
    ack[8..16].copy_from_slice(&BURST.to_ne_bytes());
    ack
}

/// The receiving end of a connection, which accepts the bytes in any pieces.
#[derive(Debug, Default)]
pub struct Receiver {
    /// The number of the current burst.
    number: u64,
    /// The number of its bytes that have arrived.
    position: usize,
}

impl Receiver {
    /// Counts the next bytes and checks the beginnings of packets. Returns the acknowledgement at
    /// the end of a burst.
    ///
    /// # Panics
    ///
    /// Panics if a packet is out of order, or if bytes follow the burst, since the client waits
    /// after it.
    pub fn take(&mut self, bytes: &[u8]) -> Option<[u8; ACK]> {
        RECEIVED.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        assert!(
            self.position + bytes.len() <= BURST,
            "received more than a burst"
        );
        let mut rest = bytes;
        while !rest.is_empty() {
            let (packet, offset) = (self.position / PACKET, self.position % PACKET);
            let (here, next) = rest.split_at(rest.len().min(PACKET - offset));
            let number = packet.to_ne_bytes();
            let expected = number.get(offset..).unwrap_or_default();
            assert!(
                here.iter()
                    .zip(expected)
                    .all(|(byte, expected)| byte == expected),
                "the packet {packet} is out of order"
            );
            self.position += here.len();
            rest = next;
        }
        (self.position == BURST).then(|| {
            self.position = 0;
            self.number += 1;
            ack(self.number - 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_acknowledged_once_however_it_is_split() {
        for piece in [1, 7, PACKET, 3 * PACKET + 5, BURST] {
            let mut receiver = Receiver::default();
            let burst = burst();
            for number in 0..2 {
                let acks: Vec<_> = burst
                    .chunks(piece)
                    .map(|bytes| receiver.take(bytes))
                    .collect();
                let (last, others) = acks.split_last().unwrap();
                assert!(others.iter().all(Option::is_none));
                assert_eq!(*last, Some(ack(number)));
            }
        }
    }

    #[test]
    #[should_panic = "the packet 1 is out of order"]
    fn packets_in_another_order_are_noticed() {
        let burst = burst();
        let mut receiver = Receiver::default();
        receiver.take(&burst[..PACKET]);
        receiver.take(&burst[..PACKET]);
    }
}
