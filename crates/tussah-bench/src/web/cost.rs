//! Measures the cost of a request to a server: one file, or a file set, on many connections.

use std::time::Duration;

use super::bench::{self, Bench, Scratch, Server};
use super::client::{Clients, Plan, Until};
use super::figures::{Aim, Bound, Findings};
use super::load::Command;
use super::slice::Slice;
use super::{Common, Load, check};
use crate::metric::Metric;

/// The unit of the aims.
pub const CPU: &str = "CPU ms / 1000 requests";

/// Responses per second.
pub const RATE: &str = "requests/s";

/// The response time that one response in a hundred exceeds.
pub const P99: &str = "µs p99";

/// The number of requests on a connection for the file set.
pub const REQUESTS_PER_CONNECTION: u32 = 10;

/// The default number of rounds.
pub const ROUNDS: u32 = 40;

/// The uncounted time at the start of each slice, after connecting.
const WARM_UP: Duration = Duration::from_millis(100);

/// The peers whose cost tussah should not exceed.
pub const PEERS: [&str; 5] = ["hyper", "actix-web", "h2o", "lighttpd", "nginx"];

/// The requests of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The number of clients.
    pub connections: usize,
    /// The number of requests after which a client opens another connection.
    pub requests_per_connection: u32,
}

impl Shape {
    /// Returns clients that never close their connection.
    pub fn keep_alive(connections: usize) -> Shape {
        Shape {
            connections,
            requests_per_connection: u32::MAX,
        }
    }

    /// Returns clients of the file set.
    pub fn files(connections: usize) -> Shape {
        Shape {
            connections,
            requests_per_connection: REQUESTS_PER_CONNECTION,
        }
    }

    /// Returns the path for `tussah load`.
    fn path(&self, bench: &Bench) -> String {
        match &bench.site.pages[..] {
            [page] => page.path.clone(),
            _ => String::new(),
        }
    }

    /// Creates the clients of a server, and pins the calling OS thread to their CPUs.
    pub fn clients(&self, bench: &Bench, server: &Server, seed: u64) -> Clients {
        self.clients_of(bench, &[server], seed)
    }

    /// Creates clients divided among several servers.
    pub fn clients_of(&self, bench: &Bench, servers: &[&Server], seed: u64) -> Clients {
        crate::runtimes::pin_to_cpus(&bench.cpus.clients);
        let addresses = servers.iter().map(|server| server.process.address);
        Clients::new(Plan {
            addresses: addresses.collect(),
            site: bench.site.clone(),
            connections: self.connections,
            requests_per_connection: self.requests_per_connection,
            seed,
        })
    }
}

/// Runs `web one-file`.
pub fn one_file(common: &Common, connections: usize, bytes: u64) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let mut bench = common.one_file_of(&scratch, bytes)?;
    let servers = bench.start()?;
    for server in &servers {
        let checked = check::keeps_alive(server.process.address, &bench.site);
        checked.map_err(|error| format!("{}: {error}", server.peer.name))?;
    }
    let shape = Shape::keep_alive(connections);
    let mut aims = vec![aim(CPU, "floor", 1.1)];
    aims.extend(PEERS.map(|peer| aim(CPU, peer, 1.0)));
    Ok(Findings {
        about: format!(
            "one file of {bytes} bytes, {connections} keep-alive connections, workers: {}",
            common.workers
        ),
        base: common.base.clone(),
        series: measured(common, &bench, &servers, shape)?,
        missing: bench.missing,
        aims,
    })
}

/// Runs `web files`. The p99 should be at most 1.2 times that of the best peer, and therefore of
/// each peer.
pub fn files(common: &Common, clients: usize) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let mut bench = common.files(&scratch, common.workers)?;
    let servers = bench.start()?;
    let mut aims = vec![aim(CPU, "floor", 1.1)];
    aims.extend(
        ["floor"]
            .into_iter()
            .chain(PEERS)
            .map(|peer| aim(P99, peer, 1.2)),
    );
    Ok(Findings {
        about: format!(
            "100 MB of files like those of SPECweb99, {clients} clients, {REQUESTS_PER_CONNECTION} requests a connection, \
             workers: {}",
            common.workers
        ),
        base: common.base.clone(),
        series: measured(common, &bench, &servers, Shape::files(clients))?,
        missing: bench.missing,
        aims,
    })
}

/// Returns the aim that the base's value is at most `bound` times that of `peer`.
pub fn aim(unit: &'static str, peer: &'static str, bound: f64) -> Aim {
    Aim {
        unit,
        over: Some(peer),
        bound: Bound::Most(bound),
    }
}

/// Measures the costs of all servers in all rounds, and the kernel's share of them.
pub fn measured(
    common: &Common,
    bench: &Bench,
    servers: &[Server],
    shape: Shape,
) -> Result<Vec<super::figures::Series>, String> {
    let before: Vec<_> = servers
        .iter()
        .map(|server| server.process.ticks())
        .collect();
    let mut all = bench::rounds(
        servers,
        common,
        common.rounds(ROUNDS),
        |server, seed| match common.load {
            Load::Own => slice(common, &[server], shape.clients(bench, server, seed)),
            Load::Tussah => by_tussah(common, bench, server, shape, seed),
        },
    )?;
    for ((server, before), series) in servers.iter().zip(before).zip(&mut all) {
        let now = server.process.ticks();
        let (user, system) = (now.user - before.user, now.system - before.system);
        let share = 100.0 * system as f64 / (user + system).max(1) as f64;
        // Ticks are too coarse for one slice, so there is one value for all slices.
        if let Some(first) = series.rounds.first_mut() {
            first.push(Metric::info("% of CPU in the kernel", share));
        }
    }
    Ok(all)
}

/// Runs one slice with servers whose costs are added. Before the slice begins, all clients connect
/// and get one response each, and a short warm-up follows.
pub fn slice(
    common: &Common,
    servers: &[&Server],
    mut clients: Clients,
) -> Result<Vec<Metric>, String> {
    clients.once()?;
    clients.run(Until::Time(WARM_UP), None)?;
    let cpu = || {
        servers
            .iter()
            .map(|server| server.process.cpu())
            .sum::<Duration>()
    };
    let before = cpu();
    let slice = clients.run(Until::Time(common.slice()), None)?;
    Ok(metrics(&slice, cpu() - before))
}

/// Returns the metrics of a slice in which a server used `cpu` of CPU time.
fn metrics(slice: &Slice, cpu: Duration) -> Vec<Metric> {
    let quantile = |q: f64| slice.latency_ns.value_at_quantile(q) as f64 / 1e3;
    let seconds = slice.elapsed.as_secs_f64();
    let mut metrics = vec![
        Metric::lower(CPU, cpu.as_secs_f64() * 1e6 / slice.requests as f64),
        Metric::higher(RATE, slice.requests as f64 / seconds),
        Metric::info("% of a CPU used", 100.0 * cpu.as_secs_f64() / seconds),
        Metric::lower("µs p50", quantile(0.5)),
        Metric::lower(P99, quantile(0.99)),
    ];
    metrics.extend(slice.unusual());
    metrics
}

/// Runs the same slice with the command `tussah load`.
fn by_tussah(
    common: &Common,
    bench: &Bench,
    server: &Server,
    shape: Shape,
    seed: u64,
) -> Result<Vec<Metric>, String> {
    let mut load = Command::load(bench, server, &shape.path(bench));
    load.clients(shape.connections, shape.requests_per_connection)
        .time(common.slice());
    let report = load.flag("--seed", seed).run()?;
    let us = |ns: u64| ns as f64 / 1e3;
    let server = report.cpu.server.ok_or("tussah load reports no CPU time")?;
    Ok(vec![
        Metric::lower(CPU, server.ms_per_1000_requests),
        Metric::higher(RATE, report.served_per_s),
        Metric::info(
            "% of a CPU used",
            100.0 * server.seconds / report.measured_s,
        ),
        Metric::lower("µs p50", us(report.response.p50)),
        Metric::lower(P99, us(report.response.p99)),
    ])
}
