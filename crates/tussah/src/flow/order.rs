//! The order of instances along the edges.

use std::collections::VecDeque;
use std::ops::Range;

/// Returns the numbers of all instances so that each edge leads to a later instance, except for one
/// edge of each cycle.
pub(super) fn upstream_first<'a>(
    instances: usize,
    edges: impl Iterator<Item = (&'a Range<usize>, &'a Range<usize>)>,
) -> Vec<usize> {
    let mut next = vec![Vec::new(); instances];
    for (from, to) in edges {
        from.clone().for_each(|from| next[from].extend(to.clone()));
    }
    // An instance follows all instances that it leads to, in the reverse order.
    let (mut order, mut is_seen) = (Vec::new(), vec![false; instances]);
    for first in 0..instances {
        let mut path = Vec::new();
        if !std::mem::replace(&mut is_seen[first], true) {
            path.push(first);
        }
        while let Some(&last) = path.last() {
            match next[last].pop() {
                Some(to) if !std::mem::replace(&mut is_seen[to], true) => path.push(to),
                Some(_) => {}
                None => order.extend(path.pop()),
            }
        }
    }
    order.reverse();
    order
}

/// Returns the numbers of the instances along a cycle of edges, if there is one. It begins and ends
/// at the last of these instances.
pub(super) fn cycle<'a>(
    instances: usize,
    edges: impl Iterator<Item = (&'a Range<usize>, &'a Range<usize>)> + Clone,
) -> Option<Vec<usize>> {
    let mut ranks = vec![0; instances];
    let order = upstream_first(instances, edges.clone());
    for (rank, &place) in order.iter().enumerate() {
        ranks[place] = rank;
    }
    let mut next = vec![Vec::new(); instances];
    for (from, to) in edges {
        from.clone().for_each(|from| next[from].extend(to.clone()));
    }
    let is_back = |from: usize, to: usize| ranks[to] <= ranks[from];
    let (last, first) = order.iter().find_map(|&from| {
        let back = next[from].iter().find(|&&to| is_back(from, to));
        back.map(|&to| (from, to))
    })?;
    // The way from each instance back to the first one.
    let mut before = vec![None; instances];
    let mut to_do = VecDeque::from([first]);
    while let Some(from) = to_do.pop_front() {
        for &to in &next[from] {
            if before[to].is_none() {
                before[to] = Some(from);
                to_do.push_back(to);
            }
        }
    }
    let way = |&at: &usize| before[at].filter(|_| at != first);
    let mut path: Vec<usize> = std::iter::successors(Some(last), way).collect();
    path.reverse();
    let start = (0..path.len())
        .max_by_key(|&at| path[at])
        .unwrap_or_default();
    path.rotate_left(start);
    path.push(path[0]);
    Some(path)
}

/// Returns the number of each instance among those that keep state, and the number of these. A flow
/// ends in this order: what an instance sends at the end is still in the flow.
pub(super) fn slots(order: &[usize], has_state: impl Fn(usize) -> bool) -> (Vec<usize>, usize) {
    let (mut slots, mut count) = (vec![0; order.len()], 0);
    for &place in order {
        slots[place] = count;
        count += usize::from(has_state(place));
    }
    (slots, count)
}
