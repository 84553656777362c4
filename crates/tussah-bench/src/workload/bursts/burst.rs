//! The bytes of a burst: what the client sends, and how a server checks and acknowledges them.

use std::sync::atomic::Ordering;

use crate::server::RECEIVED;

/// Bytes of a packet.
pub const PACKET: usize = 8 << 10;
/// Packets of a burst.
const PACKETS: usize = 1000;
/// Bytes of a burst.
pub const BURST: usize = PACKET * PACKETS;
/// Bytes of an acknowledgement.
pub const ACK: usize = 32;

/// A whole burst; every packet begins with its number.
pub fn burst() -> Vec<u8> {
    let mut burst = vec![0x5a; BURST];
    for (number, packet) in burst.chunks_exact_mut(PACKET).enumerate() {
        packet[..8].copy_from_slice(&number.to_ne_bytes());
    }
    burst
}

/// The acknowledgement of a connection's burst with this number.
pub fn ack(number: u64) -> [u8; ACK] {
    let mut ack = [0xa5; ACK];
    ack[..8].copy_from_slice(&number.to_ne_bytes());
    ack[8..16].copy_from_slice(&BURST.to_ne_bytes());
    ack
}

/// The receiving end of a connection, in whatever pieces the bytes come.
#[derive(Debug, Default)]
pub struct Receiver {
    /// The burst that is coming.
    number: u64,
    /// Bytes of it that are here.
    position: usize,
}

impl Receiver {
    /// Takes the next bytes, checks where packets begin, and counts; returns the acknowledgement at the end of a burst.
    ///
    /// # Panics
    ///
    /// When a packet is another one than the next, or more comes than a burst, since the client waits after it.
    pub fn take(&mut self, bytes: &[u8]) -> Option<[u8; ACK]> {
        RECEIVED.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        assert!(
            self.position + bytes.len() <= BURST,
            "more than a burst has come"
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
                "the packet {packet} is another one"
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
    fn a_burst_is_acknowledged_once_in_whatever_pieces_it_comes() {
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
    #[should_panic = "the packet 1 is another one"]
    fn packets_in_another_order_are_noticed() {
        let burst = burst();
        let mut receiver = Receiver::default();
        receiver.take(&burst[..PACKET]);
        receiver.take(&burst[..PACKET]);
    }
}
