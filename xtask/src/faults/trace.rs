//! Counts the system calls in the output of strace.

use std::collections::BTreeMap;

/// Returns the number of each call that the dynamic loader makes before `main`. If one of them
/// fails, the loader ends the process with a message of its own.
pub(super) fn loader_calls(trace: &str) -> BTreeMap<String, usize> {
    // Rust's start-up code begins with this call, and the loader does not make it.
    let end = trace
        .find(" poll(")
        .map_or(0, |poll| trace[..poll].rfind('\n').unwrap_or(0));
    most_calls(&trace[..end])
}

/// Returns how often each call is made by the OS thread that makes it most often.
pub(super) fn most_calls(trace: &str) -> BTreeMap<String, usize> {
    let mut calls = BTreeMap::<(&str, &str), usize>::new();
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        if let Some((call, _)) = rest.trim_start().split_once('(') {
            *calls.entry((thread, call)).or_default() += 1;
        }
    }
    let mut most = BTreeMap::<String, usize>::new();
    for ((_, call), count) in calls {
        let most = most.entry(call.to_owned()).or_default();
        *most = count.max(*most);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_for_each_os_thread() {
        let trace = "10 read(3, 4) = 1\n11  read(3 <unfinished ...>\n11 <... read resumed>) = 1\n\
                     11 read(5) = 0\n10 +++ exited with 0 +++\n10 write(1) = 1\n";
        let most = most_calls(trace);
        assert_eq!(most["read"], 2);
        assert_eq!(most["write"], 1);
        assert_eq!(most.len(), 2, "{most:?}");
    }

    #[test]
    fn the_loader_ends_before_the_first_poll() {
        let trace =
            "10 read(3) = 1\n10 mmap(0) = 1\n10 read(3) = 1\n10 poll(0) = 1\n10 read(3) = 1\n";
        let calls = loader_calls(trace);
        assert_eq!((calls["read"], calls["mmap"], calls.len()), (2, 1, 2));
        assert!(loader_calls("10 read(3) = 1\n").is_empty());
    }
}
