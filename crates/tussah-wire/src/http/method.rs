//! The request methods (RFC 9110, section 9, and RFC 5789).

/// A request method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Transfer the resource.
    Get,
    /// Like `Get`, but the response has no content.
    Head,
    /// Have the resource process the body.
    Post,
    /// Replace the resource with the body.
    Put,
    /// Remove the resource.
    Delete,
    /// Describe the options of the resource.
    Options,
    /// Echo the request.
    Trace,
    /// Open a tunnel.
    Connect,
    /// Modify part of the resource.
    Patch,
    /// Any other method; [`Head::method_text`](super::head::Head::method_text) returns its name.
    Other,
}

impl Method {
    /// Returns whether the method only retrieves a representation, as GET and HEAD do.
    #[inline]
    pub fn reads(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }

    /// Returns the method with this name. Method names are case-sensitive.
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
