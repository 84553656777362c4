//! A support site: PHP pages, their images, and downloads that do not fit into memory.
//!
//! This is the measurement of section 5.1.1 of the Aspen paper (PPoPP 2007), whose load is the
//! Support part of SPECweb2005. The mix of pages resembles that part; the shares are not the
//! official ones. Sessions, line speeds and phases are left out: every client requests the next
//! page at once.
//!
//! nginx takes part twice. With kept connections to php-fpm, it serves as many clients as php-fpm
//! has processes again and again while the others wait. Besides, php-fpm leaves Nagle's algorithm
//! on, so a page that it writes in parts waits for an acknowledgment, which nginx delays by 40 ms.
//! With a new connection for each page, neither happens.

use std::path::Path;
use std::time::Duration;

use clap::Args;

use super::Common;
use super::bench::{self, Bench, Scratch, Server};
use super::cost::{CPU, P99, RATE};
use super::fastcgi::{self, CHILDREN, Php};
use super::figures::{Aim, Bound, Findings};
use super::load;
use super::peer;
use super::site::{Page, Site};
use crate::metric::Metric;

/// The options of `web support`.
#[derive(Args, Clone, Copy, Debug)]
pub struct Options {
    /// Exponent of the popularity of products and their downloads: the product of rank r gets a
    /// share of the requests that is proportional to 1 / r^ZIPF
    #[arg(long, default_value_t = 1.2, value_name = "ZIPF", value_parser = zipf)]
    pub zipf: f64,
    /// Number of clients
    #[arg(long, default_value_t = 64)]
    pub clients: usize,
    /// Measurement time per server and round, in seconds
    #[arg(long, default_value_t = 10)]
    pub seconds: u32,
    /// Warm-up before each measurement, in seconds, to fill the server's caches
    #[arg(long, default_value_t = 10)]
    pub warm_up_seconds: u32,
}

/// The products. Each has downloads of all lengths.
const PRODUCTS: usize = 40;

/// The lengths of downloads in bytes, with their shares.
const DOWNLOADS: [(usize, f64); 5] = [
    (100_000, 0.50),
    (500_000, 0.25),
    (1_000_000, 0.15),
    (4_000_000, 0.07),
    (10_000_000, 0.03),
];

/// The share of requests for downloads among those for pages and downloads.
const DOWNLOAD_SHARE: f64 = 0.06;

/// The PHP pages: their names, shares and numbers of lines.
const PAGES: [(&str, f64, usize); 6] = [
    ("home", 0.08, 60),
    ("search", 0.13, 120),
    ("catalog", 0.12, 80),
    ("product", 0.25, 160),
    ("files", 0.22, 200),
    ("file", 0.14, 100),
];

/// The images of each page, and their lengths in bytes.
const IMAGES: [usize; 3] = [2_000, 5_000, 12_000];

/// The memory of a server, and the bound on its file cache.
const MEMORY: u64 = 256 << 20;
const CACHE_MEGABYTES: usize = 64;

/// The default number of rounds.
const ROUNDS: u32 = 5;

const SERVERS: [&str; 4] = ["apache", "nginx", "nginx-anew", "tussah"];

/// Runs `web support`.
pub fn support(common: &Common, options: Options) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let files = Site::write(&scratch.path().join("site"), static_files());
    let mut bench = Bench::new(common, &scratch, common.site(files)?, common.workers)?;
    bench.cache_megabytes = Some(CACHE_MEGABYTES);
    bench.chosen = peer::ALL
        .iter()
        .filter(|peer| SERVERS.contains(&peer.name))
        .collect();
    for (name, _, lines) in PAGES {
        fastcgi::write(&bench, &format!("{name}.php"), &page(name, lines))?;
    }
    let list = scratch.path().join("paths");
    let written = std::fs::write(&list, paths(options.zipf));
    written.map_err(|error| format!("{}: {error}", list.display()))?;
    let series = bench::rounds_anew(
        &mut bench,
        common,
        common.rounds(ROUNDS),
        |bench, peer, seed| {
            let php = Php::start(&scratch, bench, CHILDREN)?;
            bench.fastcgi = Some((php.process.address, CHILDREN));
            let Some((_group, server)) = bench.start_in(peer, MEMORY)? else {
                return Ok(None);
            };
            measure(bench, &server, &options, &list, seed).map(Some)
        },
    )?;
    let at_least = |peer| Aim {
        unit: RATE,
        over: Some(peer),
        bound: Bound::Least(1.0),
    };
    Ok(Findings {
        about: format!(
            "PHP pages with {} images each, and downloads of 0.1 to 10 MB for {PRODUCTS} products, Zipf {}; \
             {} MB of files, {} MB of memory; {} clients; php-fpm with {CHILDREN} processes, whose CPU time \
             does not count; {} s, after {}; workers: {}",
            IMAGES.len(),
            options.zipf,
            bench.site.pages.iter().map(|page| page.len).sum::<usize>() / 1_000_000,
            MEMORY >> 20,
            options.clients,
            options.seconds,
            options.warm_up_seconds,
            common.workers
        ),
        base: common.base.clone(),
        series,
        missing: bench.missing,
        aims: SERVERS[..3].iter().copied().map(at_least).collect(),
    })
}

fn measure(
    bench: &Bench,
    server: &Server,
    options: &Options,
    list: &Path,
    seed: u64,
) -> Result<Vec<Metric>, String> {
    let mut load = load::Command::load(bench, server, "/");
    load.clients(options.clients, u32::MAX)
        .flag("--paths", list.display());
    load.flag("--warm-up", format!("{}s", options.warm_up_seconds));
    load.time(Duration::from_secs(options.seconds.into()));
    let report = load.flag("--seed", seed % 1_000_000).run()?;
    let cpu = report.cpu.server.ok_or("tussah load reports no CPU time")?;
    Ok(vec![
        Metric::higher(RATE, report.served_per_s),
        Metric::info("MB/s", report.bytes_per_s / 1e6),
        Metric::lower(CPU, cpu.ms_per_1000_requests),
        Metric::lower(P99, report.latency.p99 as f64 / 1e3),
        Metric::higher("Jain", report.fairness.jain),
    ])
}

/// Returns the images and downloads. The popularity of each comes from [`paths`].
fn static_files() -> Vec<(Page, f64)> {
    let images = PAGES.iter().flat_map(|(name, ..)| {
        let lens = IMAGES.iter().enumerate();
        lens.map(move |(at, &len)| (image(name, at), len))
    });
    let downloads = (1..=PRODUCTS).flat_map(|product| {
        let lens = DOWNLOADS.iter().enumerate();
        lens.map(move |(at, &(len, _))| (download(product, at), len))
    });
    let files = images.chain(downloads);
    files.map(|(path, len)| (Page { path, len }, 1.0)).collect()
}

fn image(page: &str, at: usize) -> String {
    format!("/images/{page}{at}.png")
}

fn download(product: usize, at: usize) -> String {
    format!("/downloads/{product}/{at}.bin")
}

/// Returns the code of a page with a list.
fn page(name: &str, lines: usize) -> String {
    format!(
        "<?php $id = $_GET['id'] ?? '1'; echo '<h1>{name} ', htmlspecialchars($id), '</h1><ul>';
for ($i = 0; $i < {lines}; $i++) {{
    echo '<li><a href=\"file.php?id=', $i, '\">', htmlspecialchars(\"<Driver> $i of $id\"), '</a> ', md5(\"$id-$i\"), \"</li>\\n\";
}}
echo '</ul>';
"
    )
}

/// Returns the list of paths for `tussah load`, with the share of each.
fn paths(zipf: f64) -> String {
    let mut list = String::new();
    let mut add = |share: f64, path: &str| list.push_str(&format!("{share} {path}\n"));
    for (name, share, _) in PAGES {
        for (product, popularity) in popularities(zipf) {
            add(share * popularity, &format!("/{name}.php?id={product}"));
        }
        for at in 0..IMAGES.len() {
            add(share, &image(name, at));
        }
    }
    for (at, (_, share)) in DOWNLOADS.iter().enumerate() {
        for (product, popularity) in popularities(zipf) {
            add(DOWNLOAD_SHARE * share * popularity, &download(product, at));
        }
    }
    list
}

/// Returns the products, with their shares.
fn popularities(zipf: f64) -> impl Iterator<Item = (usize, f64)> {
    let weight = move |product: usize| (product as f64).powf(-zipf);
    let all: f64 = (1..=PRODUCTS).map(weight).sum();
    (1..=PRODUCTS).map(move |product| (product, weight(product) / all))
}

fn zipf(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(zipf) if (0.0..=5.0).contains(&zipf) => Ok(zipf),
        _ => Err("expected a number from 0 to 5".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_the_shares() {
        let list = paths(1.2);
        let sum = |begin: &str| -> f64 {
            let lines = list.lines().filter_map(|line| line.split_once(' '));
            let chosen = lines.filter(|(_, path)| path.starts_with(begin));
            chosen.map(|(share, _)| share.parse::<f64>().unwrap()).sum()
        };
        let near = |sum: f64, expected: f64| (sum - expected).abs() < 1e-6;
        assert!(near(sum("/product.php"), 0.25));
        assert!(near(sum("/downloads/"), 0.06));
        assert!(near(sum("/images/"), 3.0 * 0.94));
        assert!(sum("/downloads/1/") > 2.0 * sum("/downloads/2/"));
    }
}
