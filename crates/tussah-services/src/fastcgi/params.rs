//! The variables of a request.

use tussah_wire::fastcgi::{Pairs, push_pair};

/// The variables of a request, such as `SCRIPT_FILENAME`, with their values. They are encoded as
/// they are pushed (FastCGI 1.0, sections 3.4 and 5.2).
///
/// ```
/// use tussah_services::fastcgi::Params;
///
/// let mut params = Params::from_iter([
///     ("SCRIPT_FILENAME", "/srv/www/hello.php"),
///     ("REQUEST_METHOD", "GET"),
/// ]);
/// params.push("QUERY_STRING", "name=you");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Params {
    pub(super) pairs: Vec<u8>,
    method: Method,
    /// True if the length of the body is specified.
    has_len: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Method {
    Get,
    Head,
    #[default]
    Other,
}

impl Params {
    /// Creates an empty list with room for variables of `bytes` bytes in total.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            pairs: Vec::with_capacity(bytes),
            ..Self::default()
        }
    }

    /// Returns the path of the script in the URL, which is empty if no variable names it.
    pub(super) fn script(&self) -> &[u8] {
        let mut pairs = Pairs::new(&self.pairs);
        let script = pairs.find(|pair| matches!(pair, Ok((b"SCRIPT_NAME", _))));
        script.and_then(Result::ok).map_or(b"", |(_, value)| value)
    }

    /// Appends a variable.
    ///
    /// # Panics
    /// Panics if the name or the value is 2 GiB or longer.
    pub fn push(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let (name, value) = (name.as_ref(), value.as_ref());
        match name {
            b"REQUEST_METHOD" => {
                self.method = match value {
                    b"GET" => Method::Get,
                    b"HEAD" => Method::Head,
                    _ => Method::Other,
                }
            }
            b"CONTENT_LENGTH" => self.has_len = !value.is_empty(),
            _ => {}
        }
        push_pair(&mut self.pairs, name, value);
    }

    /// Returns whether the method is HEAD.
    pub(super) fn is_head(&self) -> bool {
        self.method == Method::Head
    }

    /// Returns whether the method is safe to repeat.
    pub(super) fn is_safe(&self) -> bool {
        self.method != Method::Other
    }

    /// Returns whether the whole request is safe to repeat, because it also has no body.
    pub(super) fn may_repeat(&self) -> bool {
        self.is_safe() && !self.has_len
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FromIterator<(N, V)> for Params {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let mut params = Self::default();
        params.extend(variables);
        params
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> Extend<(N, V)> for Params {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, variables: I) {
        for (name, value) in variables {
            self.push(name, value);
        }
    }
}
