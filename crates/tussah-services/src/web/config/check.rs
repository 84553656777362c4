//! Whether what a configuration names is there.

use super::settings::Config;
use crate::web::site::Site;
use crate::web::tls::Reloadable;

impl Config {
    /// Opens what is served, and reads the certificate and its key, as the server would; the log is left alone.
    ///
    /// # Errors
    /// What a server with this configuration would fail with, a sentence each.
    pub fn check(&self) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        if let Err(error) = Site::open(&self.root, self.site.clone()) {
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
