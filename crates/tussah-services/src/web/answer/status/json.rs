//! The status page as JSON.

use serde_json::{Value, json};
use tussah::stage::control::Resource;
use tussah::stage::observe::{Digest, StageStats};
use tussah::sync::{LimitClassStats, LimitStats};

use super::report::{Report, Source, allowed, kind_of};
use crate::web::server::counts::Count;

pub(super) fn page(report: &Report) -> String {
    let connections = &report.connections;
    let page = json!({
        "version": report.version,
        "up_s": report.up_s,
        "connections": {
            "open": connections.open,
            "idle": connections.idle,
            "limit": connections.limit,
        },
        "cancelled": report.cancelled,
        "recent_s": report.recent_s,
        "cache": {
            "requests": report.cache.requests,
            "missed": report.cache.missed,
            "checked": report.cache.checked,
            "hit_ratio": report.cache.hit_ratio(),
        },
        "sources": report.sources.iter().map(source).collect::<Vec<_>>(),
        "limits": report.limits.iter().map(limit).collect::<Vec<_>>(),
        "stages": report.stages.iter().map(stage).collect::<Vec<_>>(),
    });
    format!("{page:#}\n")
}

fn source(source: &Source) -> Value {
    let counted = &source.counted;
    let [c1, c2, c3, c4, c5] = counted.codes();
    json!({
        "name": source.name,
        "is_route": source.is_route,
        "recent": {
            "per_second": source.recent.per_second,
            "response_s": percentiles(&source.recent.times),
        },
        "response_s": percentiles(&source.times),
        "in_service": source.in_service,
        "queued": source.queued,
        "rejected": {
            "overload": counted.get(Count::Overload),
            "full": counted.get(Count::Full),
            "client_gone": counted.get(Count::Gone),
            "cut": counted.get(Count::Cut),
        },
        "rejected_for": source.rejected_by.iter().map(scarce).collect::<Vec<_>>(),
        "would_reject": source.would_reject,
        "responses": { "1xx": c1, "2xx": c2, "3xx": c3, "4xx": c4, "5xx": c5 },
        "bytes_sent": counted.get(Count::Bytes),
    })
}

fn scarce((resource, count): &(Resource, u64)) -> Value {
    let (kind, limit) = kind_of(resource);
    json!({ "resource": kind, "limit": limit, "count": count })
}

fn limit(limit: &LimitStats) -> Value {
    json!({
        "name": &*limit.name,
        "permits": limit.permits,
        "in_use": limit.in_use,
        "waiting": limit.waiting,
        "acquired": limit.acquired,
        "wait_s": percentiles(&limit.wait),
        "hold_s": percentiles(&limit.hold),
        "classes": limit.classes.iter().map(limit_class).collect::<Vec<_>>(),
    })
}

fn limit_class(class: &LimitClassStats) -> Value {
    json!({
        "in_use": class.in_use,
        "waiting": class.waiting,
        "acquired": class.acquired,
        "wait_s": percentiles(&class.wait),
    })
}

/// Returns times in seconds; `null` if there are none.
fn percentiles(times: &Digest) -> Value {
    if times.count() == 0 {
        return Value::Null;
    }
    let of = |permille| times.percentile(permille).as_secs_f64();
    json!({ "p50": of(500), "p90": of(900), "p99": of(990) })
}

pub(crate) fn stage(stage: &StageStats) -> Value {
    json!({
        "name": &*stage.name,
        "state": stage.gate,
        "closed": stage.closed.as_deref(),
        "arrived": stage.arrived,
        "called": stage.called,
        "finished": stage.finished,
        "refused": stage.refused,
        "shed": stage.shed,
        "cancelled": stage.cancelled,
        "failed": stage.failed,
        "panicked": stage.panicked,
        "queued": stage.queued,
        "queue_max": stage.queue_max,
        "in_service": stage.in_service,
        "servlets_busy": stage.servlets.busy,
        "servlets_allowed": allowed(stage),
        "batch_max": stage.batch_max,
    })
}
