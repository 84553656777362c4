//! HTTP/1.1, for a server: RFC 9110 (semantics) and RFC 9112 (messages).
