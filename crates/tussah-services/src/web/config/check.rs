//! Checks that the files and certificates of a configuration exist.

use super::settings::Config;
use crate::web::server::tls::Reloadable;

impl Config {
    /// Opens the site, and reads the certificate and its key, as the server would. The log stays
    /// untouched.
    ///
    /// # Errors
    /// Returns the errors that would make a server with this configuration fail, one sentence each.
    pub fn check(&self) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        if let Err(error) = self.open_site() {
            problems.push(error.to_string());
        }
        if let (Some(certificate), Some(key)) = (&self.tls.cert, &self.tls.key)
            && let Err(error) = Reloadable::open(certificate, key)
        {
            problems.push(error.to_string());
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}
