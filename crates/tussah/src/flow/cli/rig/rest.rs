//! The part of a graph that a test does not replace.

use tussah_weave::{Plan, PortRef};

use super::Builder;

impl Builder<'_> {
    /// Returns the plan without the instances that the test replaces, and their edges.
    pub(super) fn rest(&self) -> Plan {
        let stays = |node: usize| !self.removed.contains(&node);
        let mut plan = self.plan.clone();
        let kept: Vec<usize> = (0..plan.nodes.len()).filter(|&it| stays(it)).collect();
        let port = |port: &mut PortRef| {
            port.node = kept
                .iter()
                .position(|&it| it == port.node)
                .unwrap_or_default();
        };
        plan.nodes = kept
            .iter()
            .map(|&node| self.plan.nodes[node].clone())
            .collect();
        plan.edges
            .retain(|edge| stays(edge.from.node) && stays(edge.to.node));
        for edge in &mut plan.edges {
            port(&mut edge.from);
            port(&mut edge.to);
        }
        plan.sheds.retain(|shed| stays(shed.node));
        for shed in &mut plan.sheds {
            shed.to = shed.to.take().filter(|to| stays(to.node));
            shed.to.iter_mut().for_each(port);
            shed.node = kept
                .iter()
                .position(|&it| it == shed.node)
                .unwrap_or_default();
        }
        for limit in &mut plan.limits {
            let nodes = kept.iter().enumerate();
            let inside = nodes.filter(|(_, node)| limit.nodes.contains(node));
            limit.nodes = inside.map(|(node, _)| node).collect();
        }
        plan.limits.retain(|limit| !limit.nodes.is_empty());
        plan
    }
}
