//! `cargo xtask record`: measures the tables of the record, and writes one file for each.

use std::fs::File;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use clap::Args;

use crate::ci::cargo;
use crate::process::{self, End, Interrupt};

#[derive(Args)]
pub(crate) struct Options {
    /// Folder for the output files; created if it is missing
    #[arg(required_unless_present = "list")]
    folder: Option<PathBuf>,
    /// Tables to measure, such as 'echo --connections 1'; the name of a workload selects all of its
    /// tables [default: all]
    tables: Vec<String>,
    /// Measure the web servers, with `tussah-bench web` and its peers, instead of the workloads
    #[arg(long)]
    web: bool,
    /// Number of rounds for each table [default: 15; with `--web`, the number that the scenario
    /// sets]
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Flags to add to the command of each table, such as '--scale 0.4' or '--slice-ms 300'
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    flags: Option<String>,
    /// Additional features of tussah-bench: `compio` adds a peer to the workloads with I/O;
    /// `count-heap` measures the heap use of `echo` and `flow`, but makes allocations slower
    #[arg(long, value_name = "LIST")]
    features: Option<String>,
    /// Print the tables, then exit
    #[arg(long)]
    list: bool,
}

/// The tables of the workloads: a workload and its flags.
const WORKLOADS: &[&str] = &[
    "table2",
    "table2 --work 0",
    "table2 --work 0 --workers 1",
    "colors",
    "contended",
    "contended --yield",
    "with",
    "transfer",
    "readers",
    "spawn",
    "idle",
    "steal",
    "steal --memory",
    "wake",
    "mixed",
    "change",
    "burst",
    "cross",
    "cross --workers 1",
    "cross --pin",
    "yield",
    "timers",
    "churn",
    "echo --connections 1",
    "echo --connections 100",
    "echo --connections 1000",
    "echo --connections 8000",
    "echo --connections 10000",
    "connect",
    "connect --share-cpu",
    "fifo",
    "fifo --idle 100",
    "fifo --idle 4800",
    "fifo --idle 10000",
    "fifo --idle 100000",
    "disk --tasks 1",
    "disk --tasks 64",
    "disk --tasks 1024",
    "disk --tasks 16384",
    "disk --tasks 65536",
    "disk --tasks 1 --direct",
    "disk --tasks 64 --direct",
    "disk --tasks 1024 --direct",
    "disk --tasks 16384 --direct",
    "disk --tasks 65536 --direct",
    "bursts --connections 1",
    "bursts --connections 16",
    "bursts --connections 256",
    "bursts --connections 1024",
    "bursts --connections 8192",
    "senders",
    "stages --stages 1 --batch 1",
    "stages --stages 1 --batch 100",
    "stages --stages 1 --batch 1000",
    "stages --stages 4 --batch 1",
    "stages --stages 4 --batch 100",
    "stages --stages 4 --batch 1000",
    "stages --stages 16 --batch 1",
    "stages --stages 16 --batch 100",
    "stages --stages 16 --batch 1000",
    "stages --stages 4 --batch 100 --work-ns 1000",
    "flow",
    "flow --work-ns 1000",
    "fused",
    "gnutella",
    "gnutella --bottleneck-ms 20",
    "calls",
];

/// The tables of the web servers: a scenario and its flags.
const WEB: &[&str] = &[
    "instructions",
    "syscalls",
    "memory",
    "start",
    "one-file --connections 64",
    "one-file --connections 1024",
    "one-file --connections 8000",
    "one-file --bytes 100000",
    "one-file --bytes 1000000",
    "one-file --bytes 100000000 --connections 8",
    "files --clients 256",
    "files --clients 800",
    "speed-up",
    "n-copy",
    "fairness --connections 8000",
    "fairness --connections 1024 --workers 2",
    "clients",
    "big",
    "bottleneck --target-ms 5000 --honor-retry-after",
    "bottleneck --target-ms 5000",
    "bottleneck --target-ms 500 --honor-retry-after",
    "bottleneck --target-ms 500",
    "fastcgi --connections 64",
    "fastcgi --connections 256",
    "fastcgi-overload",
    "support --zipf 0.4",
    "support --zipf 1.2",
    "support --zipf 2.0",
    "video --disks 1",
    "video --disks 4",
    "video --disks 8",
];

/// The peers for which the instructions per thread are counted.
const SPAWNING: [&str; 5] = ["tokio", "smol", "smol-static", "actor", "tussah"];

/// Measures the tables, and returns whether all of them were written.
///
/// # Errors
///
/// Returns an error if a table is unknown, the benchmarks do not build, or a file cannot be
/// written.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<bool> {
    let all = if options.web { WEB } else { WORKLOADS };
    let Some(folder) = options.folder.as_ref().filter(|_| !options.list) else {
        all.iter().for_each(|table| println!("{table}"));
        return Ok(true);
    };
    let chosen = choose(all, &options.tables)?;
    std::fs::create_dir_all(folder)
        .and_then(|()| folder.canonicalize())
        .with_context(|| format!("cannot create {}", folder.display()))
        .and_then(|folder| Recorder::new(root, &folder, options)?.tables(&chosen))
}

/// Returns the tables that are named, or whose workload is named.
fn choose(all: &[&'static str], named: &[String]) -> anyhow::Result<Vec<&'static str>> {
    let is_named = |table: &str, name: &String| table == name || workload(table) == name;
    if let Some(name) = named
        .iter()
        .find(|name| !all.iter().any(|table| is_named(table, name)))
    {
        bail!("expected a table or a workload, not `{name}`; `--list` prints the tables");
    }
    let is_chosen = |table: &&&str| named.is_empty() || named.iter().any(|n| is_named(table, n));
    Ok(all.iter().filter(is_chosen).copied().collect())
}

fn workload(table: &str) -> &str {
    table.split(' ').next().unwrap_or(table)
}

/// Returns the name of a table's file: the words of the table, joined by dashes.
fn file_name(table: &str) -> String {
    let words = table.split([' ', '-']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

struct Recorder<'a> {
    root: &'a Path,
    folder: &'a Path,
    options: &'a Options,
    interrupt: Interrupt,
    /// The arguments for cargo that select the benchmarks.
    bench: Vec<String>,
}

impl<'a> Recorder<'a> {
    fn new(root: &'a Path, folder: &'a Path, options: &'a Options) -> anyhow::Result<Self> {
        let mut bench = vec!["--release".to_owned(), "-p".into(), "tussah-bench".into()];
        let web = options.web.then_some("web-peers");
        let features: Vec<&str> = web.into_iter().chain(options.features.as_deref()).collect();
        if !features.is_empty() {
            bench.extend(["--features".into(), features.join(",")]);
        }
        Ok(Self {
            root,
            folder,
            options,
            interrupt: Interrupt::install()?,
            bench,
        })
    }

    fn tables(&self, tables: &[&str]) -> anyhow::Result<bool> {
        self.build(&self.bench)?;
        if self.options.web {
            self.build(&["--release".into(), "-p".into(), "tussah-services".into()])?;
        }
        let mut failed = Vec::new();
        for table in tables {
            if !self.table(table)? {
                failed.push(*table);
            }
            if self.interrupt.is_set() {
                return Ok(false);
            }
        }
        if tables.contains(&"spawn") && has_valgrind() {
            self.instructions()?;
        }
        failed.iter().for_each(|table| println!("failed: {table}"));
        Ok(failed.is_empty())
    }

    fn build(&self, package: &[String]) -> anyhow::Result<()> {
        let mut build = cargo();
        build.current_dir(self.root).args(["build", "--quiet"]);
        match self.wait(build.args(package))? {
            end if end.is_success() => Ok(()),
            _ => bail!("`cargo build {}` failed", package.join(" ")),
        }
    }

    /// Measures a table and returns whether its file was written.
    fn table(&self, table: &str) -> anyhow::Result<bool> {
        let name = match self.options.web {
            true => format!("web-{}", file_name(table)),
            false => file_name(table),
        };
        let mut arguments: Vec<String> = table.split(' ').map(str::to_owned).collect();
        match (self.options.web, workload(table)) {
            (true, "speed-up") => arguments.extend(words("--variant one-color=--colors=one")),
            (true, "clients") => {
                let plot = self.folder.join(format!("{name}.svg"));
                arguments.extend(["--plot".into(), plot.display().to_string()]);
            }
            _ => {}
        }
        let rounds = match (self.options.web, self.options.rounds) {
            (true, rounds) => rounds.map(|rounds| format!("--rounds {rounds}")),
            (false, rounds) => Some(format!("--runs {}", rounds.unwrap_or(15))),
        };
        if self.options.web {
            arguments.insert(0, "web".into());
            arguments.extend(rounds.iter().flat_map(|rounds| words(rounds)));
            arguments.extend(self.options.flags.iter().flat_map(|flags| words(flags)));
        } else {
            arguments.extend(self.options.flags.iter().flat_map(|flags| words(flags)));
            arguments.extend(rounds.iter().flat_map(|rounds| words(rounds)));
        }
        // The record must not contain paths of this machine.
        let shown = arguments.join(" ");
        let shown = shown.replace(&format!("{}/", self.folder.display()), "");
        println!("{shown}");
        let mut bench = cargo();
        bench.current_dir(self.root).args(["run", "--quiet"]);
        bench.args(&self.bench).arg("--").args(arguments);
        self.write(&name, |mut file| {
            let command = self.bench.join(" ");
            write!(file, "$ cargo run {command} -- {shown}\n\n")?;
            Ok(self.wait(bench.stdout(file))?.is_success())
        })
    }

    /// Writes the number of instructions per thread: the difference between two runs of different
    /// lengths, of two rounds each.
    fn instructions(&self) -> anyhow::Result<()> {
        println!("instructions of spawn");
        self.write("spawn-instructions", |mut file| {
            write!(
                file,
                "$ valgrind --tool=callgrind target/release/tussah-bench spawn --workers 1 --scale SCALE --child PEER\n\n\
                 instructions a thread: spawn, one yield, the end and the join; SCALE 0.03 less 0.01, over 40,000 threads\n\n"
            )?;
            for peer in SPAWNING {
                let (fewer, more) = (self.collected("0.01", peer)?, self.collected("0.03", peer)?);
                let each = more.saturating_sub(fewer) / 40_000;
                writeln!(file, "{peer:<12} {each:6}")?;
            }
            Ok(true)
        })?;
        Ok(())
    }

    /// Returns the number of instructions that valgrind counts in a run of `spawn`.
    fn collected(&self, scale: &str, peer: &str) -> anyhow::Result<u64> {
        let arguments = format!(
            "--tool=callgrind --callgrind-out-file=/dev/null target/release/tussah-bench spawn \
             --workers 1 --scale {scale} --child {peer}"
        );
        let mut valgrind = Command::new("valgrind");
        let output = valgrind
            .current_dir(self.root)
            .args(words(&arguments))
            .output();
        let output = output.context("cannot start valgrind")?;
        let text = String::from_utf8_lossy(&output.stderr);
        let counted = text.split("Collected : ").nth(1);
        let counted = counted.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        counted.with_context(|| format!("valgrind counted nothing for {peer}"))
    }

    /// Writes a file under a temporary name, and renames it if the result is true.
    fn write(
        &self,
        name: &str,
        fill: impl FnOnce(File) -> anyhow::Result<bool>,
    ) -> anyhow::Result<bool> {
        let path = self.folder.join(format!("{name}.txt"));
        let part = self.folder.join(format!("{name}.txt.part"));
        let context = || format!("cannot write {}", part.display());
        let is_whole = fill(File::create(&part).with_context(context)?)?;
        if is_whole {
            std::fs::rename(&part, path).with_context(context)?;
        }
        Ok(is_whole)
    }

    fn wait(&self, command: &mut Command) -> anyhow::Result<End> {
        process::run(
            command,
            None,
            &self.interrupt,
            |_| ControlFlow::Continue(()),
        )
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().map(str::to_owned)
}

fn has_valgrind() -> bool {
    let mut valgrind = Command::new("valgrind");
    let valgrind = valgrind.arg("--version").stdout(Stdio::null()).status();
    valgrind.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_chooses_all_of_its_tables() {
        let check = |named: &[&str], expected: usize| {
            let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(choose(WORKLOADS, &named).unwrap().len(), expected);
        };
        check(&[], WORKLOADS.len());
        check(&["table2"], 3);
        check(&["table2 --work 0"], 1);
        check(&["calls", "connect"], 3);
        assert!(choose(WEB, &["table2".into()]).is_err());
    }

    #[test]
    fn a_file_has_the_words_of_its_table() {
        let check = |table, expected| assert_eq!(file_name(table), expected);
        check("table2 --work 0 --workers 1", "table2-work-0-workers-1");
        check("one-file --connections 64", "one-file-connections-64");
        check(
            "bottleneck --target-ms 500 --honor-retry-after",
            "bottleneck-target-ms-500-honor-retry-after",
        );
    }
}
