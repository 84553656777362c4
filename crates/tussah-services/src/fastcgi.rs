//! A FastCGI client: sends requests to an application such as php-fpm, over a pool of connections.
//!
//! A [`Backend`] is one application server. A named [`Limit`] bounds the connections of a backend:
//! a request takes a permit before it takes or opens a connection. The request holds the permit
//! until the application has ended the response, or until the caller drops the [`Response`].
//! Further requests wait in a bounded queue.
//!
//! The client sends the request and receives the response at the same time, so neither blocks the
//! other. Once the head of the response has arrived, the client reads and sends only while the
//! caller polls [`Response::chunk`], so a slow caller slows down the application.
//!
//! [`Limit`]: tussah::sync::Limit
//!
//! ```no_run
//! use tussah_services::fastcgi::{Backend, Options, Params};
//!
//! # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
//! let php = Backend::new("unix:/run/php/php-fpm.sock".parse()?, Options::default());
//! let params = Params::from_iter([
//!     ("SCRIPT_FILENAME", "/srv/www/hello.php"),
//!     ("REQUEST_METHOD", "GET"),
//! ]);
//! let mut response = php.request(params, futures_lite::io::empty()).await?;
//! println!("{}", response.head().status);
//! while let Some(chunk) = response.chunk().await? {
//!     print!("{}", String::from_utf8_lossy(&chunk));
//! }
//! # Ok(())
//! # }
//! ```

mod address;
mod backend;
mod connection;
mod exchange;
mod failure;
mod params;
mod response;

pub use address::{Address, AddressError};
pub use backend::{Backend, Options};
pub use failure::Failure;
pub use params::Params;
pub use response::Response;
