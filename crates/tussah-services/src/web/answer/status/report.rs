//! The contents of the status page, for all formats.

use std::time::Duration;

use tussah::stage::control::Resource;
use tussah::stage::observe::{Digest, StageStats};
use tussah::sync::{Limit, LimitStats};

use crate::web::connection::connections::Census;
use crate::web::server::Server;
use crate::web::server::counts::{Count, Counted, FILES, OTHER, of_route};
use crate::web::server::totals::{RECENT_S, add_rejected, answers, times};

/// The state of a server at one moment.
pub(super) struct Report {
    pub(super) version: &'static str,
    pub(super) up_s: u64,
    pub(super) connections: Census,
    pub(super) cancelled: u64,
    /// The time that `recent` of the sources covers, in seconds.
    pub(super) recent_s: u64,
    /// The routes in the order in which they were added, followed by files and everything else.
    pub(super) sources: Vec<Source>,
    pub(super) limits: Vec<LimitStats>,
    pub(super) cache: Cache,
    pub(super) stages: Vec<StageStats>,
}

/// The state of a route, of files, or of everything else.
pub(super) struct Source {
    /// The path of a route.
    pub(super) name: String,
    pub(super) is_route: bool,
    pub(super) counted: Counted,
    pub(super) recent: Recent,
    /// Response times since the start of the server.
    pub(super) times: Digest,
    pub(super) queued: u64,
    pub(super) in_service: u64,
    /// Requests that overload control rejected, by the resource that was scarce.
    pub(super) rejected_by: Vec<(Resource, u64)>,
    /// Requests that overload control would have rejected, if it only observes.
    pub(super) would_reject: u64,
}

/// Returns the kind of a scarce resource and the name of a limit.
pub(super) fn kind_of(resource: &Resource) -> (&'static str, Option<&str>) {
    match resource {
        Resource::Limit(name) => ("limit", Some(name)),
        Resource::Workers => ("workers", None),
        Resource::Servlets => ("servlets", None),
        _ => ("unknown", None),
    }
}

/// The recent activity.
pub(super) struct Recent {
    pub(super) per_second: f64,
    pub(super) times: Digest,
}

/// The activity of the page cache.
pub(super) struct Cache {
    pub(super) requests: u64,
    pub(super) missed: u64,
    pub(super) checked: u64,
}

impl Cache {
    /// Returns the share of requests for files whose page was in memory, if there were any.
    pub(super) fn hit_ratio(&self) -> Option<f64> {
        let hits = self.requests.saturating_sub(self.missed) as f64;
        (self.requests > 0).then(|| hits / self.requests as f64)
    }
}

impl Report {
    pub(super) fn of(server: &Server) -> Self {
        let totals = &server.totals;
        let stages = totals.stages();
        let up = server.clock.passed();
        let up_s = up.as_secs();
        totals.begin_second(up_s, &server.routes);
        let routes = server.routes.all().iter().enumerate();
        let routes = routes
            .map(|(index, (path, _))| (totals.counts.source_of(index), path.as_str()))
            .filter(|(source, _)| *source != OTHER);
        let sources = routes.chain([(FILES, "files"), (OTHER, "other")]);
        let before = totals.before(up_s, &server.routes);
        // Ten seconds, and the current partial second.
        let begin = Duration::from_secs(up_s.saturating_sub(RECENT_S));
        let window = (up - begin).max(Duration::from_secs(1));
        let source = |(source, name): (u32, &str)| {
            let counted = totals.counts.of(source);
            let times = times(&stages, source, &server.routes);
            let stages = stages.iter().map(|(stats, _)| stats);
            let own = stages.filter(|stats| answers(&stats.name, source, &server.routes));
            let (mut queued, mut in_service, mut would_reject) = (0, 0, 0);
            let mut rejected_by = Vec::new();
            for stats in own {
                queued += stats.queued;
                in_service += stats.in_service;
                would_reject += stats.would_reject;
                add_rejected(&mut rejected_by, &stats.rejected_by);
            }
            let (responses, past) = before.of(source);
            let responses = counted.responses().saturating_sub(*responses);
            Source {
                name: name.to_owned(),
                is_route: source >= of_route(0),
                recent: Recent {
                    per_second: responses as f64 / window.as_secs_f64(),
                    times: times.since(past),
                },
                counted,
                times,
                queued,
                in_service,
                rejected_by,
                would_reject,
            }
        };
        let files = totals.counts.of(FILES);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            up_s,
            connections: server.connections.all().census(),
            cancelled: totals.cancelled(),
            recent_s: up_s.clamp(1, RECENT_S),
            sources: sources.map(source).collect(),
            limits: server.routes.limits().iter().map(Limit::stats).collect(),
            cache: Cache {
                requests: files.responses(),
                missed: files.get(Count::Missed),
                checked: files.get(Count::Checked),
            },
            stages: stages.into_iter().map(|(stats, _)| stats).collect(),
        }
    }
}

/// Returns the number of servlets that may currently be busy at the same time.
pub(super) fn allowed(stage: &StageStats) -> usize {
    let target = stage.servlets.target;
    stage.cap.map_or(target, |cap| cap.min(target))
}
