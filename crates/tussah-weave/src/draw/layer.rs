//! Layers: the boxes from left to right, ordered so that few arrows cross.
//!
//! The method is that of Sugiyama, Tagawa and Toda, "Methods for visual understanding of
//! hierarchical system structures" (1981): layers by longest paths, and sweeps that sort each layer
//! by the medians of its neighbours. The checker has found the edges that close cycles already.

use super::{Scene, Style};

/// Bound, in places that arrows take in layers: the maximum that is laid out. Further arrows may
/// cross cards, but drawings of larger graphs are not readable anyway.
const WAYPOINTS_MAX: usize = 4000;
/// The sweeps over all layers; more do not improve the graphs of the tests.
const SWEEPS: usize = 12;

/// A box, or the place where an arrow crosses a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Vertex {
    Card(usize),
    /// The link.
    Waypoint(usize),
}

/// The layers.
pub(super) struct Layers {
    /// The vertices of each layer, from the top.
    pub(super) layers: Vec<Vec<usize>>,
    pub(super) vertices: Vec<Vertex>,
    /// The layer of each vertex.
    pub(super) layer_of: Vec<usize>,
    /// The vertices that each link visits; none for a link that goes around.
    pub(super) paths: Vec<Vec<usize>>,
}

pub(super) fn layers(scene: &Scene) -> Layers {
    let cards = scene.cards.len();
    let layer_of_card = longest_paths(scene);
    let mut layers = Layers {
        layers: Vec::new(),
        vertices: (0..cards).map(Vertex::Card).collect(),
        layer_of: layer_of_card.clone(),
        paths: Vec::new(),
    };
    for (index, link) in scene.links.iter().enumerate() {
        let (from, to) = (layer_of_card[link.from], layer_of_card[link.to]);
        if link.style == Style::Back || from >= to {
            layers.paths.push(Vec::new());
            continue;
        }
        let mut path = vec![link.from];
        for layer in from + 1..to {
            if layers.vertices.len() > cards + WAYPOINTS_MAX {
                break;
            }
            path.push(layers.vertices.len());
            layers.vertices.push(Vertex::Waypoint(index));
            layers.layer_of.push(layer);
        }
        path.push(link.to);
        layers.paths.push(path);
    }
    let count = layers.layer_of.iter().max().map_or(0, |last| last + 1);
    layers.layers = vec![Vec::new(); count];
    for (vertex, &layer) in layers.layer_of.iter().enumerate() {
        layers.layers[layer].push(vertex);
    }
    order(&mut layers);
    layers
}

/// Returns the layer of each box: one more than the largest of those that lead to it.
fn longest_paths(scene: &Scene) -> Vec<usize> {
    let count = scene.cards.len();
    let mut layer = vec![0; count];
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut missing = vec![0_usize; count];
    for link in &scene.links {
        if matches!(link.style, Style::Queue | Style::Call) {
            out[link.from].push(link.to);
            missing[link.to] += 1;
        }
    }
    let mut ready: Vec<usize> = (0..count).filter(|&card| missing[card] == 0).collect();
    while let Some(card) = ready.pop() {
        for &to in &out[card] {
            layer[to] = layer[to].max(layer[card] + 1);
            missing[to] -= 1;
            if missing[to] == 0 {
                ready.push(to);
            }
        }
    }
    layer
}

/// Sorts the layers, and keeps the order with the fewest crossings.
fn order(layers: &mut Layers) {
    let count = layers.vertices.len();
    let (mut before, mut after) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for path in &layers.paths {
        for pair in path.windows(2) {
            after[pair[0]].push(pair[1]);
            before[pair[1]].push(pair[0]);
        }
    }
    let mut best = layers.layers.clone();
    let mut fewest = crossings(&best, &after, count);
    for sweep in 0..SWEEPS {
        let mut position = positions(&layers.layers, count);
        let last = layers.layers.len();
        for step in 1..last {
            let (layer, neighbours) = match sweep % 2 {
                0 => (step, &before),
                _ => (last - 1 - step, &after),
            };
            sort_by_median(&mut layers.layers[layer], neighbours, &position);
            for (index, &vertex) in layers.layers[layer].iter().enumerate() {
                position[vertex] = index;
            }
        }
        let crossed = crossings(&layers.layers, &after, count);
        if crossed < fewest {
            fewest = crossed;
            best.clone_from(&layers.layers);
        }
    }
    layers.layers = best;
}

fn positions(layers: &[Vec<usize>], count: usize) -> Vec<usize> {
    let mut position = vec![0; count];
    for layer in layers {
        for (index, &vertex) in layer.iter().enumerate() {
            position[vertex] = index;
        }
    }
    position
}

fn sort_by_median(layer: &mut [usize], neighbours: &[Vec<usize>], position: &[usize]) {
    let median = |vertex: usize| {
        let mut places: Vec<usize> = neighbours[vertex]
            .iter()
            .map(|&other| position[other])
            .collect();
        places.sort_unstable();
        match places.len() {
            // A vertex without neighbours keeps its place.
            0 => 2 * position[vertex],
            len => places[(len - 1) / 2] + places[len / 2],
        }
    };
    layer.sort_by_key(|&vertex| median(vertex));
}

/// Counts the pairs of arrows that cross between neighbouring layers.
fn crossings(layers: &[Vec<usize>], after: &[Vec<usize>], count: usize) -> usize {
    let position = positions(layers, count);
    let mut crossed = 0;
    for layer in layers {
        let mut ends: Vec<usize> = Vec::new();
        for &vertex in layer {
            let mut own: Vec<usize> = after[vertex].iter().map(|&to| position[to]).collect();
            own.sort_unstable();
            crossed += own
                .iter()
                .map(|end| ends.iter().filter(|&other| other > end).count())
                .sum::<usize>();
            ends.extend(own);
        }
    }
    crossed
}
