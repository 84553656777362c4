//! The events of a connection, as a server sees them.

use tussah_wire::http::{Refusal, body, head};

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A head, described as text.
    Head(String),
    /// The whole body of the request.
    Body(Vec<u8>),
    Refused(Refusal),
    /// The message is incomplete.
    More,
}

/// Reads the pieces of a connection one after the other.
pub struct Session {
    buffer: Vec<u8>,
    scan: head::Scan,
    decoder: Option<(body::Decoder, Vec<u8>)>,
    pub events: Vec<Event>,
}

impl Session {
    fn new() -> Self {
        Self {
            buffer: Vec::new(),
            scan: head::Scan::new(),
            decoder: None,
            events: Vec::new(),
        }
    }

    fn refused(&self) -> bool {
        matches!(self.events.last(), Some(Event::Refused(_)))
    }

    fn read(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
        while !self.refused() {
            let step = match self.decoder.take() {
                None => self.read_head(),
                Some((decoder, body)) => self.read_body(decoder, body),
            };
            match step {
                Ok(true) => {}
                Ok(false) => break,
                Err(refusal) => self.events.push(Event::Refused(refusal)),
            }
        }
    }

    /// Returns whether another step may be possible without further bytes.
    fn read_head(&mut self) -> Result<bool, Refusal> {
        let Some(head) = self.scan.parse(&self.buffer, &head::Limits::default())? else {
            return Ok(false);
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields: Vec<_> = head
            .fields(&self.buffer)
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        let (method, target) = (
            text(head.method_text(&self.buffer)),
            text(head.target(&self.buffer)),
        );
        let (path, query) = (
            text(head.path(&self.buffer)),
            head.query(&self.buffer).map(text),
        );
        let host = head.host(&self.buffer).map(text);
        let summary = format!("{method} {target} {path} {query:?} {host:?} {head:?} {fields:?}");
        self.events.push(Event::Head(summary));
        self.buffer.drain(..head.len());
        self.decoder = Some((
            body::Decoder::new(head.framing, body::Limits::default())?,
            Vec::new(),
        ));
        Ok(true)
    }

    fn read_body(
        &mut self,
        mut decoder: body::Decoder,
        mut body: Vec<u8>,
    ) -> Result<bool, Refusal> {
        let step = decoder.decode(&self.buffer)?;
        assert_eq!(step.done, decoder.is_done());
        body.extend_from_slice(&self.buffer[step.body]);
        self.buffer.drain(..step.consumed);
        if step.done {
            self.events.push(Event::Body(body));
            return Ok(true);
        }
        assert!(
            step.consumed > 0 || self.buffer.is_empty(),
            "a decoder that is not done consumes something"
        );
        self.decoder = Some((decoder, body));
        Ok(!self.buffer.is_empty())
    }

    fn end(mut self) -> Vec<Event> {
        let is_between = self.decoder.is_none() && self.buffer.is_empty();
        if !self.refused() && (!is_between || self.events.is_empty()) {
            self.events.push(Event::More);
        }
        self.events
    }
}

/// Returns the events of these pieces.
pub fn run<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> Vec<Event> {
    let mut session = Session::new();
    for piece in pieces {
        session.read(piece);
    }
    session.end()
}

/// Returns whether a connection read in pieces gives the same events as `whole`. An error in an
/// incomplete head may be detected only in the whole.
pub fn same(whole: &[Event], pieces: &[Event]) -> bool {
    match (whole, pieces) {
        ([whole @ .., Event::Refused(_)], [pieces @ .., Event::More]) => whole == pieces,
        _ => whole == pieces,
    }
}
