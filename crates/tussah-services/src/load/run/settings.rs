//! The settings of a run, complete and valid.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::pace::Pace;

/// The way in which a connection ends after its last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CloseBy {
    /// Send `Connection: close` with the last request
    Header,
    /// Close the connection after the last response
    Client,
    /// Reset the connection after the last response, so that no port stays in TIME_WAIT
    Reset,
}

/// The settings of a run.
#[derive(Clone, Debug)]
pub(in crate::load) struct Settings {
    pub(in crate::load) connections: usize,
    pub(in crate::load) workers: usize,
    pub(in crate::load) requests: Option<u64>,
    pub(in crate::load) duration: Option<Duration>,
    /// Requests per second; `None` in a closed loop.
    pub(in crate::load) rate: Option<f64>,
    pub(in crate::load) think: Duration,
    pub(in crate::load) warm_up: Duration,
    pub(in crate::load) requests_per_connection: Option<u32>,
    pub(in crate::load) close_by: CloseBy,
    pub(in crate::load) pipeline: usize,
    pub(in crate::load) timeout: Duration,
    pub(in crate::load) honor_retry_after: bool,
    pub(in crate::load) retry_pause: Duration,
    /// The interval between requests of a client whose body is compared, in requests; 0 for none.
    pub(in crate::load) check_every: u32,
    pub(in crate::load) window: Option<Duration>,
    pub(in crate::load) within: Option<Duration>,
    pub(in crate::load) pid: Option<u32>,
    pub(in crate::load) seed: u64,
}

impl Settings {
    /// Returns the pace of a client from a start time.
    pub(in crate::load) fn pace(&self, number: usize, start_ns: u64) -> Pace {
        match self.rate {
            Some(rate) => Pace::open(rate, number, self.connections, start_ns),
            None => Pace::Closed {
                think_ns: self.think.as_nanos() as u64,
            },
        }
    }
}
