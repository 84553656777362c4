//! Checks that a server could open the files of a configuration.

use super::settings::Config;
use crate::web::access_log::AccessLog;
use crate::web::server::tls::Reloadable;

impl Config {
    /// Checks that the server could open the site, the certificate with its key, and the access
    /// log. A missing log file is not created.
    ///
    /// # Errors
    /// Returns one sentence for each error that would prevent the server from opening these files.
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
        if let Some(log) = &self.log.file
            && let Err(error) = AccessLog::check(log)
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
