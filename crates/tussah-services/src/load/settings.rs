//! The settings of a run, complete and valid.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::pace::Pace;

/// How a connection ends after its last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CloseBy {
    /// The last request says `Connection: close`
    Header,
    /// The client closes it after the last answer
    Client,
    /// The client resets it after the last answer, so that no port waits (TIME_WAIT)
    Reset,
}

/// The settings of a run.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) connections: usize,
    pub(super) workers: usize,
    pub(super) requests: Option<u64>,
    pub(super) duration: Option<Duration>,
    /// Requests a second; `None` in a closed loop.
    pub(super) rate: Option<f64>,
    pub(super) think: Duration,
    pub(super) warm_up: Duration,
    pub(super) requests_per_connection: Option<u32>,
    pub(super) close_by: CloseBy,
    pub(super) pipeline: usize,
    pub(super) timeout: Duration,
    pub(super) honor_retry_after: bool,
    pub(super) retry_pause: Duration,
    /// The interval, in requests of a client, between those whose body is compared; 0 for none.
    pub(super) check_every: u32,
    pub(super) window: Option<Duration>,
    pub(super) within: Option<Duration>,
    pub(super) pid: Option<u32>,
    pub(super) seed: u64,
}

impl Settings {
    /// Returns the pace of a client from a start time.
    pub(super) fn pace(&self, number: usize, start_ns: u64) -> Pace {
        match self.rate {
            Some(rate) => Pace::open(rate, number, self.connections, start_ns),
            None => Pace::Closed {
                think_ns: self.think.as_nanos() as u64,
            },
        }
    }
}
