//! What the stages of a process have counted, whatever configuration they were of.

use parking_lot::Mutex;
use tussah::stage::{Network, StageStats};

/// The networks of a process, and what those have counted that have ended.
#[derive(Default)]
pub(crate) struct Totals(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The last one is the current one.
    networks: Vec<(usize, Network)>,
    /// By the names of the stages.
    ended: Vec<StageStats>,
}

impl Totals {
    /// Counts a network from now on, as the current one.
    pub(crate) fn begin(&self, number: usize, network: &Network) {
        self.0.lock().networks.push((number, network.clone()));
    }

    /// Keeps what a network has counted, which ends.
    pub(crate) fn end(&self, number: usize) {
        let mut known = self.0.lock();
        let at = known
            .networks
            .iter()
            .position(|(other, _)| *other == number);
        if let Some(at) = at {
            let (_, network) = known.networks.remove(at);
            add(&mut known.ended, network.stats());
        }
    }

    /// The stages of the current network as they are, with what they and those of the same name have counted.
    pub(crate) fn stages(&self) -> Vec<StageStats> {
        let known = self.0.lock();
        let mut stages = Vec::new();
        for (_, network) in known.networks.iter().rev() {
            add(&mut stages, network.stats());
        }
        add(&mut stages, known.ended.clone());
        stages
    }
}

/// Adds what others of the same name count; those of other names come behind.
fn add(stages: &mut Vec<StageStats>, others: Vec<StageStats>) {
    for other in others {
        let Some(stage) = stages.iter_mut().find(|stage| stage.name == other.name) else {
            stages.push(other);
            continue;
        };
        stage.arrived += other.arrived;
        stage.called += other.called;
        stage.finished += other.finished;
        stage.refused += other.refused;
        stage.shed += other.shed;
        stage.queued += other.queued;
        stage.in_service += other.in_service;
    }
}
