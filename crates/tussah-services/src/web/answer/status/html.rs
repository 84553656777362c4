//! The status page as HTML. It loads no other resources and updates itself.

use std::fmt::{Display, Write as _};
use std::sync::LazyLock;

use tussah::stage::observe::{Digest, StageStats};
use tussah::sync::LimitStats;
use tussah_plot::Escaped;

use super::report::{Report, Source, allowed};
use crate::graph_status::{figure, with_figure};
use crate::units::{show_bytes, show_ns};
use crate::web::server::counts::Count;

/// The graph of the server.
static FIGURE: LazyLock<String> = LazyLock::new(|| figure(include_str!("../../stages/web.weave")));

pub(super) fn page(report: &Report) -> String {
    let mut text = String::new();
    now(&mut text, report);
    let prometheus = " · <a href=\"?format=prometheus\">Prometheus</a>";
    with_figure(&whole(&text, &report.stages, prometheus), &FIGURE)
}

/// Returns a page with a part that changes, a table of stages, and the links that follow the one to
/// the page as JSON.
pub(crate) fn whole(now: &str, all: &[StageStats], links: &str) -> String {
    let mut page = String::from(TOP);
    page.push_str(now);
    page.push_str("</div><details><summary>Stages</summary><div id=stages>");
    stages(&mut page, all);
    let _ = write!(page, "{MIDDLE}{links}{END}");
    page
}

/// Writes the part that changes.
fn now(page: &mut String, report: &Report) {
    let connections = &report.connections;
    let cache = match report.cache.hit_ratio() {
        Some(ratio) => format!("{:.1} %", 100.0 * ratio),
        None => "–".to_owned(),
    };
    let facts: [(&str, &dyn Display); 7] = [
        ("version", &report.version),
        ("up", &up(report.up_s)),
        ("connections", &connections.open),
        ("idle", &connections.idle),
        ("limit", &connections.limit),
        ("cache hits", &cache),
        ("cancelled requests", &report.cancelled),
    ];
    page.push_str("<dl>");
    for (name, value) in facts {
        let _ = write!(page, "<div><dt>{name}<dd>{value}</div>");
    }
    let _ = write!(
        page,
        "</dl><div class=wide><table><tr><th rowspan=2>route<th colspan=4>last {} s\
        <th colspan=2>now<th colspan=6>rejected<th colspan=5>responses<th rowspan=2>sent\
        <tr><th>per second<th>p50<th>p90<th>p99<th>in service<th>queued\
        <th>overload<th title=\"the scarce resources, and how many requests were rejected for each\">for<th title=\"would have been rejected, were --overload on\">(observed)<th>full<th title=\"cancelled since the client had gone\">client gone<th title=\"cut after the drain time\">cut\
        <th>1xx<th>2xx<th>3xx<th>4xx<th>5xx",
        report.recent_s
    );
    for source in &report.sources {
        row(page, source);
    }
    page.push_str("</table></div>");
    if !report.limits.is_empty() {
        limits(page, &report.limits);
    }
}

fn limits(page: &mut String, limits: &[LimitStats]) {
    page.push_str(
        "<div class=wide><table><tr><th rowspan=2>limit<th colspan=3>now<th rowspan=2>acquired\
        <th colspan=3>wait<th colspan=3>hold<tr><th>in use<th>permits<th>waiting\
        <th>p50<th>p90<th>p99<th>p50<th>p90<th>p99",
    );
    for limit in limits {
        let _ = write!(page, "<tr><th scope=row>{}", Escaped(&limit.name));
        let _ = write!(page, "<td>{}<td>{}", limit.in_use, limit.permits);
        let _ = write!(page, "<td>{}<td>{}", limit.waiting, limit.acquired);
        for times in [&limit.wait, &limit.hold] {
            percentiles(page, times);
        }
        let several = limit.classes.len() > 1;
        for (number, class) in limit.classes.iter().enumerate().filter(|_| several) {
            let _ = write!(page, "<tr><th scope=row>class {number}<td>{}", class.in_use);
            let _ = write!(page, "<td><td>{}<td>{}", class.waiting, class.acquired);
            percentiles(page, &class.wait);
            page.push_str("<td><td><td>");
        }
    }
    page.push_str("</table></div>");
}

fn percentiles(page: &mut String, times: &Digest) {
    for permille in [500, 900, 990] {
        let _ = write!(page, "<td>{}", time(times, permille));
    }
}

fn row(page: &mut String, source: &Source) {
    let (counted, recent) = (&source.counted, &source.recent);
    let _ = write!(page, "<tr><th scope=row>{}", Escaped(&source.name));
    let _ = write!(page, "<td>{:.1}", recent.per_second);
    percentiles(page, &recent.times);
    let mut count = |number, is_bad| cell(page, number, is_bad);
    count(source.in_service, false);
    count(source.queued, false);
    count(counted.get(Count::Overload), true);
    scarce(page, source);
    let mut count = |number, is_bad| cell(page, number, is_bad);
    count(source.would_reject, true);
    count(counted.get(Count::Full), true);
    count(counted.get(Count::Gone), false);
    count(counted.get(Count::Cut), true);
    for (class, codes) in counted.codes().into_iter().enumerate() {
        count(codes, class == 4);
    }
    let _ = write!(page, "<td>{}", show_bytes(counted.get(Count::Bytes) as f64));
}

fn cell(page: &mut String, number: u64, is_bad: bool) {
    let class = match number {
        0 => " class=none",
        _ if is_bad => " class=bad",
        _ => "",
    };
    let _ = write!(page, "<td{class}>{number}");
}

fn scarce(page: &mut String, source: &Source) {
    page.push_str("<td>");
    for (n, (resource, count)) in source.rejected_by.iter().enumerate() {
        let line = if n == 0 { "" } else { "<br>" };
        let resource = resource.to_string();
        let _ = write!(page, "{line}{}: {count}", Escaped(&resource));
    }
}

fn stages(page: &mut String, all: &[StageStats]) {
    page.push_str(
        "<table><tr><th>stage<th>came<th>finished<th>failed<th>refused<th>shed<th>cancelled<th>queued<th>in service\
         <th>servlets<th>allowed",
    );
    for stage in all {
        stage_row(page, stage);
    }
    page.push_str("</table>");
}

pub(super) fn stage_row(page: &mut String, stage: &StageStats) {
    let numbers = [
        stage.arrived + stage.called,
        stage.finished + stage.called,
        stage.failed,
        stage.refused,
        stage.shed,
        stage.cancelled,
        stage.queued,
        stage.in_service,
        stage.servlets.busy as u64,
        allowed(stage) as u64,
    ];
    let _ = write!(page, "<tr><th scope=row>{}", Escaped(&stage.name));
    if let Some(why) = &stage.closed {
        let _ = write!(page, "<br><strong>closed: {}</strong>", Escaped(why));
    }
    for number in numbers {
        let _ = write!(page, "<td>{number}");
    }
}

fn up(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

fn time(times: &Digest, permille: u64) -> String {
    if times.count() == 0 {
        return "–".to_owned();
    }
    show_ns(times.percentile(permille).as_nanos() as f64)
}

const TOP: &str = "<!doctype html><html lang=en><meta charset=utf-8>\
<meta name=viewport content=\"width=device-width\"><title>Status</title>\
<noscript><meta http-equiv=refresh content=5></noscript><style>\
:root{color-scheme:light dark}\
body{font:15px/1.5 system-ui,sans-serif;margin:1.5rem auto;max-width:80rem;padding:0 1rem}\
body.stale{opacity:.4}h1{margin:0}.wide{overflow-x:auto}\
dl{display:flex;flex-wrap:wrap;gap:.2rem 2rem}dt{opacity:.7;font-size:.8rem}\
dd{margin:0;font-size:1.2rem;font-variant-numeric:tabular-nums}\
table{border-collapse:collapse;width:100%;margin:1rem 0}\
th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #8884;white-space:nowrap;\
font-variant-numeric:tabular-nums}th{font-weight:500}th[colspan]{text-align:center}\
th:first-child{text-align:left}tr+tr th:first-child:not([scope]){text-align:right}\
.none{opacity:.4}.bad{color:#d33;font-weight:600}summary{cursor:pointer}svg{max-width:100%;height:auto}</style>\
<h1>Status</h1><div id=now>";

/// The part between the stages and the links to other formats.
const MIDDLE: &str = "</div></details><p><a href=\"?format=json\">JSON</a>";

/// The end of the page. As long as the server answers, its script refreshes the numbers every two
/// seconds.
const END: &str = "</p>\
<script>setInterval(async()=>{try{const answer=await fetch('?format=html');\
const page=new DOMParser().parseFromString(await answer.text(),'text/html');\
for(const id of['now','stages'])\
document.getElementById(id).innerHTML=page.getElementById(id).innerHTML;\
document.body.className=''}catch{document.body.className='stale'}},2000)</script>\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uptime_has_two_units() {
        let ups = [59, 61, 3_660, 90_000].map(up);
        assert_eq!(ups, ["59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]);
    }
}
