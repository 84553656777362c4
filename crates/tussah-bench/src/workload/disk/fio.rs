//! The floor of `disk`, measured by fio, the usual disk benchmark, with its io_uring engine.

use std::process::{Command, Stdio};

use serde::Deserialize;

use super::file::{BLOCK, BlockFile};
use super::{CPU_S, MB_S, bytes, tasks};
use crate::cli::Options;
use crate::metric::Metric;

/// Bound, in requests: the capacity of a kernel ring.
const DEPTH_MAX: usize = 32 << 10;

/// The required part of fio's report.
#[derive(Debug, Deserialize)]
struct Report {
    jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
struct Job {
    error: i32,
    read: Reads,
    /// Percentage of the job's time.
    usr_cpu: f64,
    sys_cpu: f64,
    job_runtime: f64,
}

#[derive(Debug, Deserialize)]
struct Reads {
    io_bytes: u64,
    bw_bytes: f64,
}

/// Reads as many blocks as the peers, with as many in flight, and ignores their contents.
///
/// Without fio it prints a message and returns no metrics.
pub fn run(options: &Options) -> Vec<Metric> {
    let file = BlockFile::prepare(options);
    let bytes = bytes(options);
    let mut fio = Command::new("fio");
    fio.args([
        "--name=disk",
        "--readonly",
        "--rw=randread",
        "--norandommap=1",
    ])
    .args([
        "--ioengine=io_uring",
        "--output-format=json",
        "--gtod_reduce=1",
        "--invalidate=0",
    ])
    .arg(format!("--filename={}", file.path.display()))
    .arg(format!("--bs={BLOCK}"))
    .arg(format!("--direct={}", u8::from(options.direct)))
    .arg(format!("--iodepth={}", tasks(options).min(DEPTH_MAX)))
    .arg(format!("--size={}", file.blocks * BLOCK))
    .arg(format!("--io_size={bytes}"))
    .stdin(Stdio::null())
    .stderr(Stdio::inherit());
    let output = match fio.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!(
                "disk: NO FIGURES OF floor-fio: cannot start fio: {error}; install it for these figures"
            );
            return Vec::new();
        }
    };
    assert!(output.status.success(), "fio ended with {}", output.status);
    // Notes may precede the report.
    let start = output
        .stdout
        .iter()
        .position(|&byte| byte == b'{')
        .unwrap_or(0);
    let report: Report = serde_json::from_slice(&output.stdout[start..])
        .expect("the report of fio is as it was in version 3");
    let job = &report.jobs[0];
    assert_eq!(
        (job.error, job.read.io_bytes),
        (0, bytes as u64),
        "fio read another number of bytes"
    );
    let cpu_s = (job.usr_cpu + job.sys_cpu) / 100.0 * job.job_runtime / 1e3;
    vec![
        Metric::higher(MB_S, job.read.bw_bytes / 1e6),
        Metric::lower(CPU_S, cpu_s / bytes as f64 * 1e9),
    ]
}
