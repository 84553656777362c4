//! The FastCGI client, against php-fpm and against peers that break the rules.

mod client;
pub(crate) mod faults;
pub(crate) mod php;
