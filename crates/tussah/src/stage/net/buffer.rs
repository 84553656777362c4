//! Bytes to send: owned, static or shared.

use std::fmt;
use std::sync::Arc;

/// Bytes to send: owned, static or shared. Shared bytes are not copied, even if they are sent to
/// many peers.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use tussah::stage::net::Buffer;
///
/// let shared: Arc<[u8]> = Arc::from(*b"to all");
/// let buffers: [Buffer; 4] =
///     ["text".into(), vec![1, 2].into(), shared.clone().into(), shared.into()];
/// assert_eq!(buffers[3].as_ref(), b"to all");
/// ```
#[derive(Clone)]
pub struct Buffer(Kind);

#[derive(Clone)]
enum Kind {
    Own(Vec<u8>),
    Static(&'static [u8]),
    Shared(Arc<[u8]>),
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Kind::Own(bytes) => bytes,
            Kind::Static(bytes) => bytes,
            Kind::Shared(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Kind::Own(bytes))
    }
}

impl From<String> for Buffer {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<&'static [u8]> for Buffer {
    fn from(bytes: &'static [u8]) -> Self {
        Self(Kind::Static(bytes))
    }
}

impl<const LEN: usize> From<&'static [u8; LEN]> for Buffer {
    fn from(bytes: &'static [u8; LEN]) -> Self {
        Self(Kind::Static(bytes))
    }
}

impl From<&'static str> for Buffer {
    fn from(text: &'static str) -> Self {
        text.as_bytes().into()
    }
}

impl From<Arc<[u8]>> for Buffer {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self(Kind::Shared(bytes))
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.as_ref().len())
    }
}
