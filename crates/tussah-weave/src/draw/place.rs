//! Positions: of boxes in their layers, and of arrows in the gutters between the layers.

use super::layer::{Layers, Vertex, layers};
use super::measure::{around, end_width, size, text_width};
use super::{Link, Scene};

/// The height between two arrows at a box: room for a label.
const ARROW_PITCH: f64 = 34.0;
/// The height between two boxes of a layer.
const CARD_GAP: f64 = 30.0;
/// The height that an arrow takes in a layer that it crosses.
const WAYPOINT_HEIGHT: f64 = 16.0;
/// The width between two arrows that turn in a gutter.
const TRACK: f64 = 9.0;
/// The least width of the curved part of an arrow.
const CURVE: f64 = 44.0;
/// The space around the drawing.
pub(super) const MARGIN: f64 = 16.0;
/// The height of the heading.
const HEADING: f64 = 56.0;
/// The rounds that move boxes towards their neighbours.
const ROUNDS: usize = 16;

/// A rectangle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// The way of an arrow.
pub(super) struct Route {
    /// The path, in the notation of SVG.
    pub(super) path: String,
    pub(super) start: (f64, f64),
    pub(super) end: (f64, f64),
}

/// A scene with its positions.
pub(super) struct Placed {
    pub(super) cards: Vec<Rect>,
    pub(super) routes: Vec<Route>,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The position of the notes.
    pub(super) notes_y: f64,
}

/// Places all parts of a scene.
pub(super) fn place(scene: &Scene) -> Placed {
    let layers = layers(scene);
    let mut placer = Placer::new(scene, &layers);
    placer.place_rows();
    placer.place_columns();
    placer.place_arrows()
}

/// The width of the parts of a gutter: labels at the left, curves, labels at the right.
#[derive(Clone, Copy, Default)]
struct Gutter {
    x: f64,
    left: f64,
    right: f64,
    /// The arrows that go around, on their way down and up.
    tracks: usize,
}

impl Gutter {
    fn middle(&self) -> f64 {
        CURVE + self.tracks as f64 * TRACK
    }

    fn width(&self) -> f64 {
        self.left + self.middle() + self.right
    }
}

struct Placer<'s> {
    scene: &'s Scene,
    layers: &'s Layers,
    /// The rectangle of each vertex.
    rects: Vec<Rect>,
    /// The gutters; each is left of the layer of its number, and one is at the right end.
    gutters: Vec<Gutter>,
}

impl<'s> Placer<'s> {
    fn new(scene: &'s Scene, layers: &'s Layers) -> Self {
        let arrows = |card: usize| {
            let out = scene.links.iter().filter(|link| link.from == card).count();
            let into = scene.links.iter().filter(|link| link.to == card).count();
            out.max(into) as f64
        };
        let rects = layers.vertices.iter().map(|vertex| match *vertex {
            Vertex::Card(index) => {
                let (width, height) = size(&scene.cards[index]);
                Rect {
                    width,
                    height: height.max(arrows(index) * ARROW_PITCH + 8.0),
                    ..Rect::default()
                }
            }
            Vertex::Waypoint(_) => Rect {
                height: WAYPOINT_HEIGHT,
                ..Rect::default()
            },
        });
        Self {
            scene,
            layers,
            rects: rects.collect(),
            gutters: vec![Gutter::default(); layers.layers.len() + 1],
        }
    }

    /// Moves each vertex towards the mean of its neighbours, within the order of its layer.
    fn place_rows(&mut self) {
        let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); self.rects.len()];
        for path in &self.layers.paths {
            for pair in path.windows(2) {
                neighbours[pair[0]].push(pair[1]);
                neighbours[pair[1]].push(pair[0]);
            }
        }
        for layer in &self.layers.layers {
            let mut y = 0.0;
            for &vertex in layer {
                self.rects[vertex].y = y;
                y += self.rects[vertex].height + CARD_GAP;
            }
        }
        for _ in 0..ROUNDS {
            for layer in &self.layers.layers {
                let centers: Vec<f64> = layer
                    .iter()
                    .map(|&vertex| {
                        let own = &neighbours[vertex];
                        let center =
                            |vertex: usize| self.rects[vertex].y + self.rects[vertex].height / 2.0;
                        match own.len() {
                            0 => center(vertex),
                            len => own.iter().map(|&other| center(other)).sum::<f64>() / len as f64,
                        }
                    })
                    .collect();
                self.spread(layer, &centers);
            }
        }
        let top = self
            .rects
            .iter()
            .map(|rect| rect.y)
            .fold(f64::INFINITY, f64::min);
        for rect in &mut self.rects {
            rect.y += MARGIN + HEADING - top;
        }
    }

    /// Places a layer near the wanted centers. Vertices that collide form a block.
    fn spread(&mut self, layer: &[usize], centers: &[f64]) {
        // Each block: its first vertex, its height so far, the sum of the wanted tops, its count.
        let mut blocks: Vec<(usize, f64, f64, f64)> = Vec::new();
        for (index, &vertex) in layer.iter().enumerate() {
            let height = self.rects[vertex].height;
            let mut block = (index, height + CARD_GAP, centers[index] - height / 2.0, 1.0);
            while let Some(&(first, above, sum, count)) = blocks.last() {
                if sum / count + above <= block.2 / block.3 {
                    break;
                }
                blocks.pop();
                block = (
                    first,
                    above + block.1,
                    sum + block.2 - block.3 * above,
                    count + block.3,
                );
            }
            blocks.push(block);
        }
        for (number, &(first, _, sum, count)) in blocks.iter().enumerate() {
            let end = blocks.get(number + 1).map_or(layer.len(), |next| next.0);
            let mut y = sum / count;
            for &vertex in &layer[first..end] {
                self.rects[vertex].y = y;
                y += self.rects[vertex].height + CARD_GAP;
            }
        }
    }

    /// Returns the gutters where a link leaves its box and where it reaches the other.
    fn ends(&self, link: &Link) -> (usize, usize) {
        (
            self.layers.layer_of[link.from] + 1,
            self.layers.layer_of[link.to],
        )
    }

    fn place_columns(&mut self) {
        for (link, path) in self.scene.links.iter().zip(&self.layers.paths) {
            let (first, last) = self.ends(link);
            let left = &mut self.gutters[first].left;
            *left = left.max(text_width(&link.from_label, 11.0) + 16.0);
            let right = &mut self.gutters[last].right;
            *right = right.max(end_width(link));
            if path.is_empty() {
                self.gutters[first].tracks += 1;
                self.gutters[last].tracks += 1;
            }
        }
        let mut x = MARGIN;
        for index in 0..self.gutters.len() {
            let is_outside = index == 0 || index + 1 == self.gutters.len();
            self.gutters[index].x = x;
            if !is_outside || self.gutters[index].tracks > 0 {
                x += self.gutters[index].width();
            }
            let Some(layer) = self.layers.layers.get(index) else {
                break;
            };
            let width = layer
                .iter()
                .map(|&vertex| self.rects[vertex].width)
                .fold(0.0, f64::max);
            for &vertex in layer {
                let rect = &mut self.rects[vertex];
                rect.x = x;
                // Boxes of a layer have one width, so that arrows begin and end in line.
                rect.width = width;
            }
            x += width;
        }
    }

    fn place_arrows(self) -> Placed {
        let links = &self.scene.links;
        let (starts, ends) = (self.attach(true), self.attach(false));
        let bottom = self
            .rects
            .iter()
            .map(|rect| rect.y + rect.height)
            .fold(0.0, f64::max);
        let (mut lanes, mut used) = (0, vec![0; self.gutters.len()]);
        let mut routes = Vec::with_capacity(links.len());
        for (index, link) in links.iter().enumerate() {
            let (from, to) = (&self.rects[link.from], &self.rects[link.to]);
            let start = (from.x + from.width, starts[index]);
            let end = (to.x, ends[index]);
            let path = &self.layers.paths[index];
            let path = if path.is_empty() {
                lanes += 1;
                let lane = bottom + 8.0 + f64::from(lanes) * 14.0;
                let (first, last) = self.ends(link);
                let down = &self.gutters[first];
                used[first] += 1;
                let down_x = down.x + down.left + used[first] as f64 * TRACK;
                let up = &self.gutters[last];
                used[last] += 1;
                let up_x = up.x + up.left + up.middle() - used[last] as f64 * TRACK;
                around(start, end, (down_x, lane, up_x))
            } else {
                self.through(path, start, end, links, index)
            };
            routes.push(Route { path, start, end });
        }
        let notes_y = bottom + 30.0 + f64::from(lanes) * 14.0;
        let right = self
            .gutters
            .last()
            .map_or(0.0, |gutter| match gutter.tracks {
                0 => gutter.x,
                _ => gutter.x + gutter.width(),
            });
        let notes = self.scene.notes.len() as f64;
        let heading = text_width(&self.scene.doc, 13.0).max(text_width(&self.scene.name, 18.0));
        let note_width = self
            .scene
            .notes
            .iter()
            .map(|note| text_width(note, 12.0))
            .fold(0.0, f64::max);
        Placed {
            cards: self.rects[..self.scene.cards.len()].to_vec(),
            routes,
            // The boxes of a stack are drawn beside each other.
            width: right.max(MARGIN + heading).max(MARGIN + note_width) + MARGIN + 8.0,
            height: notes_y + notes * 18.0 + MARGIN,
            notes_y,
        }
    }

    /// Returns the heights at which links are attached to their boxes, in the order of their other
    /// ends, so that they do not cross beside the box. Links that go around are the lowest.
    fn attach(&self, is_start: bool) -> Vec<f64> {
        let links = &self.scene.links;
        let mut heights = vec![0.0; links.len()];
        for card in 0..self.scene.cards.len() {
            let mut own: Vec<usize> = (0..links.len())
                .filter(|&index| {
                    (if is_start {
                        links[index].from
                    } else {
                        links[index].to
                    }) == card
                })
                .collect();
            let other = |index: usize| {
                let path = &self.layers.paths[index];
                let next = match is_start {
                    true => path.get(1),
                    false => path
                        .len()
                        .checked_sub(2)
                        .and_then(|before| path.get(before)),
                };
                next.map_or(f64::INFINITY, |&vertex| {
                    self.rects[vertex].y + self.rects[vertex].height / 2.0
                })
            };
            own.sort_by(|&left, &right| other(left).total_cmp(&other(right)));
            let rect = &self.rects[card];
            let first = rect.y + rect.height / 2.0 - (own.len() as f64 - 1.0) * ARROW_PITCH / 2.0;
            for (place, &index) in own.iter().enumerate() {
                heights[index] = first + place as f64 * ARROW_PITCH;
            }
        }
        heights
    }

    /// Returns the path of an arrow from left to right, through its places in the layers between.
    fn through(
        &self,
        path: &[usize],
        start: (f64, f64),
        end: (f64, f64),
        links: &[Link],
        index: usize,
    ) -> String {
        let link = &links[index];
        let mut out = format!("M{:.0} {:.0}", start.0, start.1);
        let mut y = start.1;
        let first = self.layers.layer_of[link.from] + 1;
        for (step, &vertex) in path[1..].iter().enumerate() {
            let gutter = &self.gutters[first + step];
            let rect = &self.rects[vertex];
            let is_last = vertex == link.to;
            let next = if is_last {
                end.1
            } else {
                rect.y + rect.height / 2.0
            };
            let (from, to) = (
                gutter.x + gutter.left,
                gutter.x + gutter.left + gutter.middle(),
            );
            let half = (to - from) / 2.0;
            out.push_str(&format!(
                " H{from:.0} C{:.0} {y:.0} {:.0} {next:.0} {to:.0} {next:.0} H{:.0}",
                from + half,
                to - half,
                if is_last { end.0 } else { rect.x + rect.width },
            ));
            y = next;
        }
        out
    }
}
