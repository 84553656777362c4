//! Status codes (RFC 9110, section 15, and the registry of IANA).

use std::fmt;

/// A status code, from 100 to 999.
///
/// ```
/// use tussah_wire::http::Status;
///
/// assert_eq!(Status::NOT_FOUND.to_string(), "404 Not Found");
/// assert_eq!(Status::new(99), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(u16);

macro_rules! statuses {
    ($($code:literal $name:ident $reason:literal)*) => {
        impl Status {
            $(#[doc = concat!(stringify!($code), " ", $reason, ".")]
            pub const $name: Self = Self($code);)*

            /// Returns the registered reason phrase, or an empty string for an unregistered code.
            pub const fn reason(self) -> &'static str {
                match self.0 {
                    $($code => $reason,)*
                    _ => "",
                }
            }
        }
    };
}

statuses! {
    100 CONTINUE "Continue"
    101 SWITCHING_PROTOCOLS "Switching Protocols"
    102 PROCESSING "Processing"
    103 EARLY_HINTS "Early Hints"
    200 OK "OK"
    201 CREATED "Created"
    202 ACCEPTED "Accepted"
    203 NON_AUTHORITATIVE_INFORMATION "Non-Authoritative Information"
    204 NO_CONTENT "No Content"
    205 RESET_CONTENT "Reset Content"
    206 PARTIAL_CONTENT "Partial Content"
    207 MULTI_STATUS "Multi-Status"
    208 ALREADY_REPORTED "Already Reported"
    226 IM_USED "IM Used"
    300 MULTIPLE_CHOICES "Multiple Choices"
    301 MOVED_PERMANENTLY "Moved Permanently"
    302 FOUND "Found"
    303 SEE_OTHER "See Other"
    304 NOT_MODIFIED "Not Modified"
    305 USE_PROXY "Use Proxy"
    307 TEMPORARY_REDIRECT "Temporary Redirect"
    308 PERMANENT_REDIRECT "Permanent Redirect"
    400 BAD_REQUEST "Bad Request"
    401 UNAUTHORIZED "Unauthorized"
    402 PAYMENT_REQUIRED "Payment Required"
    403 FORBIDDEN "Forbidden"
    404 NOT_FOUND "Not Found"
    405 METHOD_NOT_ALLOWED "Method Not Allowed"
    406 NOT_ACCEPTABLE "Not Acceptable"
    407 PROXY_AUTHENTICATION_REQUIRED "Proxy Authentication Required"
    408 REQUEST_TIMEOUT "Request Timeout"
    409 CONFLICT "Conflict"
    410 GONE "Gone"
    411 LENGTH_REQUIRED "Length Required"
    412 PRECONDITION_FAILED "Precondition Failed"
    413 CONTENT_TOO_LARGE "Content Too Large"
    414 URI_TOO_LONG "URI Too Long"
    415 UNSUPPORTED_MEDIA_TYPE "Unsupported Media Type"
    416 RANGE_NOT_SATISFIABLE "Range Not Satisfiable"
    417 EXPECTATION_FAILED "Expectation Failed"
    421 MISDIRECTED_REQUEST "Misdirected Request"
    422 UNPROCESSABLE_CONTENT "Unprocessable Content"
    423 LOCKED "Locked"
    424 FAILED_DEPENDENCY "Failed Dependency"
    425 TOO_EARLY "Too Early"
    426 UPGRADE_REQUIRED "Upgrade Required"
    428 PRECONDITION_REQUIRED "Precondition Required"
    429 TOO_MANY_REQUESTS "Too Many Requests"
    431 REQUEST_HEADER_FIELDS_TOO_LARGE "Request Header Fields Too Large"
    451 UNAVAILABLE_FOR_LEGAL_REASONS "Unavailable For Legal Reasons"
    500 INTERNAL_SERVER_ERROR "Internal Server Error"
    501 NOT_IMPLEMENTED "Not Implemented"
    502 BAD_GATEWAY "Bad Gateway"
    503 SERVICE_UNAVAILABLE "Service Unavailable"
    504 GATEWAY_TIMEOUT "Gateway Timeout"
    505 HTTP_VERSION_NOT_SUPPORTED "HTTP Version Not Supported"
    506 VARIANT_ALSO_NEGOTIATES "Variant Also Negotiates"
    507 INSUFFICIENT_STORAGE "Insufficient Storage"
    508 LOOP_DETECTED "Loop Detected"
    510 NOT_EXTENDED "Not Extended"
    511 NETWORK_AUTHENTICATION_REQUIRED "Network Authentication Required"
}

impl Status {
    /// Returns the status with this code, or `None` if the code is not in the range from 100 to
    /// 999.
    pub const fn new(code: u16) -> Option<Self> {
        match code {
            100..=999 => Some(Self(code)),
            _ => None,
        }
    }

    /// Returns the status code.
    pub const fn code(self) -> u16 {
        self.0
    }

    /// Returns whether a response with this status to a request other than HEAD has a body, which
    /// may be empty (RFC 9112, section 6.3). Responses with status 1xx, 204 or 304 have no body.
    pub const fn has_body(self) -> bool {
        !matches!(self.0, 100..=199 | 204 | 304)
    }
}

/// Formats as `404 Not Found`.
impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.0, self.reason())
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Status({self})")
    }
}
