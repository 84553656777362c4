//! The order of instances along the edges.

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
