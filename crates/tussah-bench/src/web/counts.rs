//! Counts the user instructions and system calls of a request, which repeat from run to run.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::Common;
use super::bench::{self, Bench, Scratch, Server};
use super::client::Until;
use super::cost::{self, Shape};
use super::figures::Findings;
use super::peer::{self, Peer};
use crate::metric::Metric;

const INSTRUCTIONS: &str = "user instructions / request";
const CALLS: &str = "system calls / request";

/// The default number of rounds.
const ROUNDS: u32 = 3;

/// The numbers of requests of the shorter and of the longer run. Their difference excludes the
/// start and the end.
const REQUESTS: [u64; 2] = [4_000, 24_000];

/// The number of instructions per request below which valgrind has missed the serving process.
const EACH_MIN: f64 = 50.0;

/// Bound, in seconds: the maximum time for strace to attach to all OS threads of a server.
const ATTACH_SECONDS_MAX: u64 = 10;

/// Calls that occur less often than this per request are not listed.
const LISTED_MIN: f64 = 0.005;

/// Runs `web instructions`.
pub fn instructions(common: &Common, connections: usize) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let mut bench = common.one_file(&scratch)?;
    let shape = Shape::keep_alive(connections);
    let folder = scratch.path().join("callgrind");
    let series = bench::rounds_anew(
        &mut bench,
        common,
        common.rounds(ROUNDS),
        |bench, peer, seed| {
            let mut counted = Vec::new();
            for requests in REQUESTS {
                let Some(count) = callgrind(bench, peer, &folder, shape, requests, seed)? else {
                    return Ok(None);
                };
                counted.push(count);
            }
            let each = (counted[1] - counted[0]) / (REQUESTS[1] - REQUESTS[0]) as f64;
            if each < EACH_MIN {
                let missing = format!("{}: valgrind counted no instructions", peer.name);
                if !bench.missing.contains(&missing) {
                    bench.missing.push(missing);
                }
                return Ok(None);
            }
            Ok(Some(vec![Metric::lower(INSTRUCTIONS, each)]))
        },
    )?;
    let [short, long] = REQUESTS;
    let aims = cost::PEERS.map(|peer| cost::aim(INSTRUCTIONS, peer, 1.0));
    Ok(Findings {
        about: format!(
            "one file of 4 KB, {connections} keep-alive connections, workers: {}; callgrind, {long} requests less {short}",
            common.workers
        ),
        base: common.base.clone(),
        series,
        missing: bench.missing,
        aims: aims.to_vec(),
    })
}

/// Returns the instructions of a server over its whole life with `requests` requests.
fn callgrind(
    bench: &mut Bench,
    peer: &'static Peer,
    folder: &Path,
    shape: Shape,
    requests: u64,
    seed: u64,
) -> Result<Option<f64>, String> {
    // Every run gets a new folder; before the first run there is none.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let server = bench.start_one(peer, |command| {
        let mut valgrind = peer::installed("valgrind", "valgrind")?;
        valgrind.args(["--tool=callgrind", "--trace-children=yes"]);
        valgrind.arg(format!("--callgrind-out-file={}/%p", folder.display()));
        valgrind.arg(command.get_program()).args(command.get_args());
        Ok(valgrind)
    })?;
    let Some(mut server) = server else {
        return Ok(None);
    };
    let mut clients = shape.clients(bench, &server, seed);
    clients.run(Until::Requests(requests), None)?;
    drop(clients);
    if server.process.end() {
        return Err("the server had to be killed, so there is no count".into());
    }
    let mut sum = 0.0;
    let files = fs::read_dir(folder).map_err(|error| error.to_string())?;
    for file in files.filter_map(Result::ok) {
        let text = fs::read_to_string(file.path()).map_err(|error| error.to_string())?;
        let totals = text.lines().filter_map(|line| line.strip_prefix("totals:"));
        sum += totals
            .filter_map(|count| count.trim().parse::<f64>().ok())
            .sum::<f64>();
    }
    Ok(Some(sum))
}

/// Runs `web syscalls`.
pub fn syscalls(common: &Common, connections: usize) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let mut bench = common.one_file(&scratch)?;
    let servers = bench.start()?;
    let shape = Shape::keep_alive(connections);
    let output = scratch.path().join("strace");
    let series = bench::rounds(&servers, common, common.rounds(ROUNDS), |server, seed| {
        let mut clients = shape.clients(&bench, server, seed);
        clients.once()?;
        let mut strace = attach(server, &output)?;
        let slice = clients.run(Until::Requests(REQUESTS[1]), None);
        let pid = rustix::process::Pid::from_child(&strace);
        let ended = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        ended.map_err(|error| error.to_string())?;
        strace.wait().map_err(|error| error.to_string())?;
        let text = fs::read_to_string(&output).map_err(|error| error.to_string())?;
        Ok(calls(&text, slice?.requests))
    })?;
    Ok(Findings {
        about: format!(
            "one file of 4 KB, {connections} keep-alive connections, workers: {}; strace, {} requests",
            common.workers, REQUESTS[1]
        ),
        base: common.base.clone(),
        series,
        missing: bench.missing,
        aims: vec![cost::aim(CALLS, "floor", 1.1)],
    })
}

/// Makes strace count the calls of all OS threads of a server.
fn attach(server: &Server, output: &Path) -> Result<std::process::Child, String> {
    let mut command = peer::installed("strace", "strace")?;
    command.args(["-c", "-f", "-o"]).arg(output);
    let tree = server.process.tree();
    for pid in &tree {
        command.args(["-p", &pid.to_string()]);
    }
    let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = child.map_err(|error| format!("strace: {error}"))?;
    let deadline = Instant::now() + Duration::from_secs(ATTACH_SECONDS_MAX);
    while !tree.iter().all(|pid| is_traced(*pid)) {
        if Instant::now() > deadline || matches!(child.try_wait(), Ok(Some(_))) {
            let _ = child.kill();
            return Err(
                "strace could not attach; it needs the right to trace other processes".into(),
            );
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(child)
}

/// Returns whether all OS threads of a process are traced.
fn is_traced(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return true;
    };
    let mut threads = threads.filter_map(Result::ok);
    threads.all(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        !status.contains("TracerPid:\t0\n")
    })
}

/// Returns the calls per request from a table of strace: the total, and by name.
fn calls(table: &str, requests: u64) -> Vec<Metric> {
    // Columns: share, seconds, µs a call, calls, errors if there are any, name.
    let rows = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let count: f64 = fields.get(3)?.parse().ok()?;
        Some((*fields.last()?, count / requests as f64))
    });
    let (total, kinds): (Vec<_>, Vec<_>) = rows.partition(|(name, _)| *name == "total");
    let total = total.first().map_or(0.0, |(_, count)| *count);
    let mut metrics = vec![Metric::lower(CALLS, total)];
    let listed = kinds.into_iter().filter(|(_, count)| *count >= LISTED_MIN);
    metrics.extend(listed.map(|(name, count)| Metric::info(&format!("{name} / request"), count)));
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_strace() {
        let table = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 54.64    0.003009           1      2000           sendto
 44.49    0.002450           1      2200       200 recvfrom
  0.87    0.000048           4         1           epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.005507           1      4201       200 total
";
        let metrics = calls(table, 2000);
        let found: Vec<_> = metrics
            .iter()
            .map(|metric| (metric.unit.as_str(), metric.value))
            .collect();
        let expected = [
            (CALLS, 2.1005),
            ("sendto / request", 1.0),
            ("recvfrom / request", 1.1),
        ];
        assert_eq!(found, expected);
    }
}
