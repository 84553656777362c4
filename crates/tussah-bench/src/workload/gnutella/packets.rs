//! The packets of the client and their mix.

/// The kinds of packets.
pub const PING: u8 = 0x00;
pub const PONG: u8 = 0x01;
pub const QUERY: u8 = 0x80;

/// The length of a header, in bytes.
const HEAD: usize = 23;
/// The payloads. With them, a packet has 30 bytes on average; the paper measured 32.
const PONG_PAYLOAD: [u8; 14] = [0xca, 0x18, 127, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0];
const QUERY_PAYLOAD: &[u8] = b"\0\0tussah wild silk\0";

/// Of a hundred packets, the queries and the pings. The others are pongs.
const QUERIES: usize = 15;
const PINGS: usize = 55;

/// Returns the identifier, the kind and the length of the packet at the start of `bytes`, if it is
/// whole.
pub fn head(bytes: &[u8]) -> Option<([u8; 16], u8, usize)> {
    let (id, rest) = bytes.split_first_chunk::<16>()?;
    let (&[kind, _, _, a, b, c, d], rest) = rest.split_first_chunk::<7>()?;
    let len = u32::from_le_bytes([a, b, c, d]) as usize;
    (rest.len() >= len).then_some((*id, kind, HEAD + len))
}

/// Appends a packet.
pub fn push(out: &mut Vec<u8>, id: [u8; 16], kind: u8, ttl: u8) {
    let payload: &[u8] = match kind {
        PONG => &PONG_PAYLOAD,
        QUERY => QUERY_PAYLOAD,
        _ => b"",
    };
    out.extend_from_slice(&id);
    out.extend_from_slice(&[kind, ttl, 0]);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(payload);
}

/// Returns the identifier of the ping or query with this number, which a peer sends in a round.
pub fn id(round: u64, peer: usize, number: usize) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&round.to_le_bytes());
    id[8..12].copy_from_slice(&(peer as u32).to_le_bytes());
    id[12..].copy_from_slice(&(number as u32).to_le_bytes());
    id
}

/// Returns the kind of a packet by its number. The kinds are spread evenly.
pub fn kind(number: usize) -> u8 {
    // 37 and 100 have no common factor, so each remainder comes once in a hundred.
    match number * 37 % 100 {
        rest if rest < QUERIES => QUERY,
        rest if rest < QUERIES + PINGS => PING,
        _ => PONG,
    }
}

/// Packets by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub pings: usize,
    pub queries: usize,
    pub pongs: usize,
}

impl Counts {
    /// Returns the counts of the first packets of the mix.
    pub fn of(packets: usize) -> Self {
        let mut counts = Self::default();
        for number in 0..packets {
            match kind(number) {
                PING => counts.pings += 1,
                QUERY => counts.queries += 1,
                _ => counts.pongs += 1,
            }
        }
        counts
    }

    /// Returns how many packets a peer gets if each of `peers` peers sends these packets, and how
    /// many bytes they have.
    pub fn received(&self, peers: usize) -> (usize, usize) {
        let others = peers - 1;
        let (query, pong) = (HEAD + QUERY_PAYLOAD.len(), HEAD + PONG_PAYLOAD.len());
        // The router answers each ping itself.
        let pongs = self.pongs + self.pings;
        (
            others * (self.pings + self.queries) + pongs,
            others * (self.pings * HEAD + self.queries * query) + pongs * pong,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_has_fifteen_percent_of_queries() {
        let (queries, pings, pongs) = (15, 55, 30);
        let expected = Counts {
            pings,
            queries,
            pongs,
        };
        assert_eq!(Counts::of(100), expected);
        let mut bytes = Vec::new();
        for number in 0..100 {
            push(&mut bytes, id(1, 2, number), kind(number), 7);
        }
        assert_eq!(bytes.len(), 15 * 42 + 55 * 23 + 30 * 37);
        let (mut at, mut number) = (0, 0);
        while let Some((found, kind_of, len)) = head(&bytes[at..]) {
            assert_eq!((found, kind_of), (id(1, 2, number), kind(number)));
            (at, number) = (at + len, number + 1);
        }
        assert_eq!((at, number), (bytes.len(), 100));
        assert_eq!(expected.received(2), (70 + 85, 55 * 23 + 15 * 42 + 85 * 37));
    }
}
