//! The names of a graph. Two instances may have the same name in different branches of an `if`.

use std::collections::{BTreeMap, BTreeSet};

use crate::expr::Expr;
use crate::graph::Group;
use crate::token::Span;

/// The branches of `if`s around a statement: the number of each `if`, and its branch.
pub(super) type Branches = Vec<(usize, bool)>;

/// Where a statement stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) branches: Branches,
    /// The conditions of the branches.
    pub(super) condition: Option<Expr>,
}

/// An instance.
#[derive(Clone, Debug)]
pub(super) struct Entity {
    pub(super) span: Span,
    pub(super) place: Place,
    pub(super) content: Content,
    /// True if its statement has an error: a missing edge may be a consequence.
    pub(super) is_faulty: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    /// The node of a module.
    Node(usize),
    /// The nodes of a graph.
    Graph(Group),
    /// An instance with an error.
    Unknown,
}

/// The instances of a graph by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) entities: Vec<Entity>,
    names: BTreeMap<String, Vec<usize>>,
}

impl Scope {
    /// Adds an instance. Returns the position of another that can exist at the same time. The name
    /// then stands for neither, so that its edges lead to no further errors.
    pub(super) fn insert(&mut self, name: &str, entity: Entity) -> Option<Span> {
        let same = self.names.entry(name.to_owned()).or_default();
        let is_conflict =
            |other: &Entity| !are_exclusive(&other.place.branches, &entity.place.branches);
        let mut others = same.iter().copied();
        let conflict = others.find(|&other| is_conflict(&self.entities[other]));
        let conflict = conflict.map(|other| {
            self.entities[other].content = Content::Unknown;
            self.entities[other].span
        });
        if conflict.is_none() {
            same.push(self.entities.len());
        }
        self.entities.push(entity);
        conflict
    }

    /// Returns the indices of the instances with this name.
    pub(super) fn find(&self, name: &str) -> &[usize] {
        self.names.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// Returns whether one of the instances exists in every case in which a statement in `branches`
    /// applies.
    pub(super) fn covers(&self, candidates: &[usize], branches: &Branches) -> bool {
        let places: Vec<&Branches> = candidates
            .iter()
            .map(|&index| &self.entities[index].place.branches)
            .filter(|other| !are_exclusive(other, branches))
            .collect();
        let is_inside = |place: &&Branches| place.iter().all(|branch| branches.contains(branch));
        if places.iter().any(is_inside) {
            return true;
        }
        // Each branch of an undecided `if` has to have one.
        let undecided: BTreeSet<usize> = places
            .iter()
            .flat_map(|place| place.iter())
            .filter(|(choice, _)| branches.iter().all(|(known, _)| known != choice))
            .map(|&(choice, _)| choice)
            .collect();
        let Some(&choice) = undecided.first() else {
            return false;
        };
        [true, false].into_iter().all(|branch| {
            let mut branches = branches.clone();
            branches.push((choice, branch));
            self.covers(candidates, &branches)
        })
    }
}

/// Returns whether two statements are in different branches of one `if`.
pub(super) fn are_exclusive(left: &Branches, right: &Branches) -> bool {
    left.iter()
        .any(|&(choice, branch)| right.contains(&(choice, !branch)))
}
