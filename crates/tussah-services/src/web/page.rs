//! A page: what is sent for a path, header and body in one buffer, or its file if that is large.

use std::fs::File;

/// A page. Shared by all who are sent it.
pub(crate) struct Page {
    /// The header after the date, its empty line, and the body.
    bytes: Vec<u8>,
    /// Where the body begins.
    head_len: usize,
    /// The file, if the body is not in memory.
    pub(crate) file: Option<File>,
    pub(crate) body_len: u64,
}

impl Page {
    pub(crate) fn new(bytes: Vec<u8>, head_len: usize) -> Self {
        let body_len = (bytes.len() - head_len) as u64;
        Self {
            bytes,
            head_len,
            file: None,
            body_len,
        }
    }
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    pub(crate) fn head_len(&self) -> usize {
        self.head_len
    }
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}
