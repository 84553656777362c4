//! Messages for the operator about routes that reject requests.

use tussah::stage::control::Resource;
use tussah::stage::observe::StageStats;

/// Bound, in seconds: the time without a rejection after which an overload counts as over. A route
/// near its capacity would otherwise fill the log.
const CALM_S: u64 = 10;

/// The rejections of a route by overload control.
#[derive(Default)]
pub(crate) struct Rejecting {
    /// The rejections at the last look, by scarce resource.
    before: Vec<(Resource, u64)>,
    overload: Option<Overload>,
    second: u64,
}

/// An overload that lasts.
struct Overload {
    since_s: u64,
    last_s: u64,
    /// The rejections before it.
    before: Vec<(Resource, u64)>,
}

impl Rejecting {
    /// Logs the begin and the end of an overload. `stats` are the counters at the end of a second.
    pub(crate) fn look(&mut self, stats: &StageStats) {
        self.second += 1;
        if let Some((text, begins)) = self.message(&stats.rejected_by) {
            let route = stats.name.strip_prefix("route ").unwrap_or(&stats.name);
            if begins {
                tracing::warn!(route, "{text}");
            } else {
                tracing::info!(route, "{text}");
            }
        }
    }

    /// Returns a message, and whether an overload begins.
    fn message(&mut self, now: &[(Resource, u64)]) -> Option<(String, bool)> {
        let fresh = since(now, &self.before);
        let before = std::mem::replace(&mut self.before, now.to_vec());
        if let Some(overload) = &mut self.overload {
            if !fresh.is_empty() {
                overload.last_s = self.second;
            }
            if self.second - overload.last_s < CALM_S {
                return None;
            }
            let lasted_s = overload.last_s - overload.since_s + 1;
            let of = since(now, &overload.before);
            self.overload = None;
            let text = format!("no longer rejects requests; in {lasted_s} s: {}", list(&of));
            return Some((text, false));
        }
        if fresh.is_empty() {
            return None;
        }
        self.overload = Some(Overload {
            since_s: self.second,
            last_s: self.second,
            before,
        });
        let text = format!(
            "rejects requests that it could not answer in time; in 1 s: {}",
            list(&fresh)
        );
        Some((text, true))
    }
}

/// Returns what has been added to counts since earlier ones.
fn since(now: &[(Resource, u64)], before: &[(Resource, u64)]) -> Vec<(Resource, u64)> {
    let added = now.iter().map(|(resource, count)| {
        let known = before.iter().find(|(same, _)| same == resource);
        (
            resource.clone(),
            count - known.map_or(0, |(_, count)| *count),
        )
    });
    added.filter(|(_, count)| *count > 0).collect()
}

fn list(rejected: &[(Resource, u64)]) -> String {
    let one = |(resource, count): &(Resource, u64)| match resource {
        Resource::Unknown => format!("{count} for an unknown resource"),
        resource => format!("{count} for {resource}"),
    };
    rejected.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overload_is_logged_at_its_begin_and_at_its_end() {
        let mut rejecting = Rejecting::default();
        let mut look = |limit, workers| {
            rejecting.second += 1;
            let counts = [
                (Resource::Limit("db".into()), limit),
                (Resource::Workers, workers),
            ];
            rejecting.message(&counts)
        };
        assert_eq!(look(0, 0), None);
        let text = "rejects requests that it could not answer in time; in 1 s: 5 for limit db";
        assert_eq!(look(5, 0), Some((text.to_owned(), true)));
        assert_eq!(look(9, 0), None);
        // A pause that is too short ends no overload.
        for _ in 1..CALM_S {
            assert_eq!(look(9, 0), None);
        }
        assert_eq!(look(9, 2), None);
        for _ in 1..CALM_S {
            assert_eq!(look(9, 2), None);
        }
        let text = "no longer rejects requests; in 12 s: 9 for limit db, 2 for workers";
        assert_eq!(look(9, 2), Some((text.to_owned(), false)));
        assert_eq!(look(9, 2), None);
        let text = "rejects requests that it could not answer in time; in 1 s: 1 for workers";
        assert_eq!(look(9, 3), Some((text.to_owned(), true)));
    }
}
