//! The parts of CGI/1.1 (RFC 3875) that a web server needs for applications that speak FastCGI.
//!
//! [`variables`] converts a request into the variables for an application, and [`parse`] parses the
//! head of the application's response. The parser refuses a head that starts with a status line
//! (section 5, "NPH").

mod path;
mod response;
mod variables;

pub use path::split_path_info;
pub use response::{CgiHead, Limits, parse};
pub use variables::{Context, variables};
