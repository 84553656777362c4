//! The status page.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;
use tussah::flow::{Out, module};
use tussah::stage::observe::StageStats;
use tussah_plot::Escaped;

use super::graph::TEXT;
use super::library::{Disk, Library};
use super::options::show_rate;
use super::seats::Use;
use crate::graph_status;
use crate::modules::{Request, Response};
use crate::units::show_bytes;
use crate::web::answer::status::{html_page, json_stage};

/// Answers with the state of the server: its disks, its streams, and the stages of its graph.
pub(super) struct StatusPage {
    library: Arc<Library>,
    /// The drawing of the graph.
    figure: String,
}

#[module]
impl StatusPage {
    fn init(library: Arc<Library>) -> Self {
        Self {
            library,
            figure: graph_status::figure(TEXT),
        }
    }

    fn run(&self, request: Request, out: &impl Out<Response>) {
        out.send(graph_status::respond(
            request,
            || self.html(),
            || self.json(),
        ));
    }
}

impl StatusPage {
    fn disks(&self) -> impl Iterator<Item = (&Disk, Use)> {
        self.library.disks.iter().zip(self.library.seats.uses())
    }

    fn stages(&self) -> Vec<StageStats> {
        let network = self.library.network.get();
        network.map(|network| network.stats()).unwrap_or_default()
    }

    fn json(&self) -> String {
        let disks = self.disks().map(|(disk, used)| {
            json!({
                "path": disk.path.display().to_string(),
                "bytes_per_s": disk.rate,
                "used_bytes_per_s": used.rate,
                "streams": used.playing,
                "kept": used.kept,
                "chunks": disk.chunks.load(Ordering::Relaxed),
                "bytes_read": disk.bytes.load(Ordering::Relaxed),
                "late": disk.late.load(Ordering::Relaxed),
            })
        });
        let page = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "rejected": self.library.rejected.load(Ordering::Relaxed),
            "disks": disks.collect::<Vec<_>>(),
            "stages": self.stages().iter().map(json_stage).collect::<Vec<_>>(),
        });
        format!("{page:#}\n")
    }

    fn html(&self) -> String {
        let rejected = self.library.rejected.load(Ordering::Relaxed);
        let mut now = format!(
            "<dl><div><dt>version<dd>{}</div><div><dt>rejected streams<dd>{rejected}</div></dl>\
             <div class=wide><table><tr><th>disk<th>rate<th>used<th>streams\
             <th title=\"seats of clients that may ask for another part of their video\">kept\
             <th>chunks<th>read<th>late",
            env!("CARGO_PKG_VERSION")
        );
        for (disk, used) in self.disks() {
            let path = disk.path.display().to_string();
            let (chunks, bytes) = (&disk.chunks, disk.bytes.load(Ordering::Relaxed));
            let late = disk.late.load(Ordering::Relaxed);
            let class = if late > 0 { " class=bad" } else { "" };
            let _ = write!(
                now,
                "<tr><th scope=row>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td{class}>{late}",
                Escaped(&path),
                show_rate(disk.rate),
                show_rate(used.rate),
                used.playing,
                used.kept,
                chunks.load(Ordering::Relaxed),
                show_bytes(bytes as f64),
            );
        }
        now.push_str("</table></div>");
        let page = html_page(&now, &self.stages(), "");
        graph_status::with_figure(&page, &self.figure)
    }
}
