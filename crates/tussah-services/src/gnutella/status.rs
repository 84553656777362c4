//! The status page.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Map, json};
use tussah::flow::{Out, module};
use tussah::stage::observe::StageStats;
use tussah_plot::Escaped;

use super::graph::TEXT;
use super::node::Node;
use crate::graph_status;
use crate::modules::{Request, Response};
use crate::units::show_bytes;
use crate::web::answer::status::{html_page, json_stage};

/// Answers with the state of the router: its peers, its counters, and the stages of its graph.
pub(super) struct StatusPage {
    node: Arc<Node>,
    /// The drawing of the graph.
    figure: String,
}

#[module]
impl StatusPage {
    fn init(node: Arc<Node>) -> Self {
        Self {
            node,
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
    fn stages(&self) -> Vec<StageStats> {
        let network = self.node.network.get();
        network.map(|network| network.stats()).unwrap_or_default()
    }

    fn json(&self) -> String {
        let node = &self.node;
        let peers = node.peers().into_iter().map(|peer| {
            json!({
                "address": peer.address.to_string(),
                "agent": peer.theirs.agent,
                "listens_at": peer.theirs.host,
                "is_ours": peer.is_ours,
                "queued_bytes": peer.queued(),
            })
        });
        let packets = node.counts.packets.all().into_iter();
        let packets = packets.map(|(name, _, count)| (name.to_owned(), json!(count)));
        let ends = node.counts.ends();
        let ends = ends.map(|(name, _, count)| (name.to_owned(), json!(count)));
        let page = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "listen": node.listening.get().map(ToString::to_string),
            "files": node.share.files(),
            "answers": node.counts.answers.load(Ordering::Relaxed),
            "peers": peers.collect::<Vec<_>>(),
            "packets": packets.collect::<Map<_, _>>(),
            "ended": ends.collect::<Map<_, _>>(),
            "stages": self.stages().iter().map(json_stage).collect::<Vec<_>>(),
        });
        format!("{page:#}\n")
    }

    fn html(&self) -> String {
        let node = &self.node;
        let mut now = format!(
            "<dl><div><dt>version<dd>{}</div><div><dt>files<dd>{}</div>\
             <div><dt>answers<dd>{}</div></dl>\
             <div class=wide><table><tr><th>peer<th>agent<th>made by<th>queued",
            env!("CARGO_PKG_VERSION"),
            node.share.files(),
            node.counts.answers.load(Ordering::Relaxed),
        );
        for peer in node.peers() {
            let made_by = if peer.is_ours {
                "this router"
            } else {
                "the peer"
            };
            let _ = write!(
                now,
                "<tr><th scope=row>{}<td>{}<td>{made_by}<td>{}",
                peer.address,
                Escaped(&peer.theirs.agent),
                show_bytes(peer.queued() as f64),
            );
        }
        now.push_str("</table></div><div class=wide><table><tr><th>packets<th>count");
        for (name, about, count) in node.counts.packets.all() {
            table_row(&mut now, name, about, count);
        }
        now.push_str("</table></div><div class=wide><table><tr><th>ended<th>connections");
        for (name, about, count) in node.counts.ends() {
            table_row(&mut now, name, about, count);
        }
        now.push_str("</table></div>");
        let page = html_page(&now, &self.stages(), "");
        graph_status::with_figure(&page, &self.figure)
    }
}

/// Writes the row of a count, whose meaning is shown on hovering over its name.
fn table_row(to: &mut String, name: &str, about: &str, count: u64) {
    let about = Escaped(about);
    let _ = write!(to, "<tr><th scope=row title=\"{about}\">{name}<td>{count}");
}
