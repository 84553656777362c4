//! The request methods (RFC 9110, section 9, and RFC 5789).

/// What a request asks to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Transfer the resource.
    Get,
    /// As `Get`, but only the head of the answer.
    Head,
    /// Let the resource process the body.
    Post,
    /// Replace the resource with the body.
    Put,
    /// Remove the resource.
    Delete,
    /// Say what can be done with the resource.
    Options,
    /// Send the request back.
    Trace,
    /// Open a tunnel.
    Connect,
    /// Change a part of the resource.
    Patch,
    /// Any other token; [`Head::method_text`](super::head::Head::method_text) has it.
    Other,
}

impl Method {
    /// The method of this name; names of methods are case-sensitive.
    pub fn from_token(token: &[u8]) -> Self {
        match token {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"OPTIONS" => Self::Options,
            b"TRACE" => Self::Trace,
            b"CONNECT" => Self::Connect,
            b"PATCH" => Self::Patch,
            _ => Self::Other,
        }
    }
}
