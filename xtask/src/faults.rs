//! `cargo xtask faults`: makes the system calls of the programs fail, one at a time, with each of
//! their documented errors.

mod client;
mod outcome;
mod php;
mod program;
mod recorded;
mod running;
mod servent;
mod table;
mod trace;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context as _, bail, ensure};
use clap::Args;

use self::outcome::{Outcome, Seen, Step};
use self::program::{Phase, Place, Program};
use self::recorded::Report;
use crate::process::Interrupt;
use crate::record;

/// The numbers of the calls that fail in a run that is recorded.
const WHEN: [usize; 4] = [1, 2, 4, 40];

#[derive(Args)]
pub(crate) struct Options {
    /// Run only this program: core, pool, net, web, web-tls, web-php, small-web, run, load, echo,
    /// video or gnutella (repeatable, or a comma-separated list); the record keeps the earlier rows
    /// of all other programs
    #[arg(long, value_name = "PROGRAM", value_delimiter = ',')]
    only: Vec<String>,
    /// Make only this system call fail (repeatable, or a comma-separated list)
    #[arg(long, value_name = "CALL", value_delimiter = ',')]
    call: Vec<String>,
    /// Ordinal numbers of the matching calls that fail; each OS thread counts its calls from 1. In
    /// some runs, the count begins at the start of `main`; in the others, when the program is ready
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_values_t = WHEN
    )]
    when: Vec<usize>,
    /// Number of programs that run at the same time
    #[arg(long, value_name = "N", default_value_t = 4)]
    jobs: usize,
}

/// One run of a program in which a system call fails.
struct Trial {
    program: Program,
    call: &'static str,
    error: &'static str,
    phase: Phase,
    when: usize,
}

/// Runs the sweep, and returns whether it found no defect.
///
/// # Errors
///
/// Returns an error if strace, curl, openssl or php-fpm is missing, if the programs do not build or
/// fail even without injected errors, or if the record cannot be written.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<bool> {
    let programs = selected(options)?;
    needs("strace", "-V")?;
    needs("openssl", "version")?;
    needs("curl", "--version")?;
    crate::php::program()?;
    build(root)?;
    let interrupt = Interrupt::install()?;
    let mut place = prepare(root)?;
    let servers = place.serve()?;
    let mut trials = Vec::new();
    for &program in &programs {
        for phase in program.phases() {
            trials.extend(plan(&place, program, *phase, options)?);
        }
    }
    println!("{} trials", trials.len());
    let results = sweep(&place, &trials, options.jobs, &interrupt)?;
    drop(servers);
    let mut report = report(&results);
    let names = programs.iter().map(|program| program.name().to_owned());
    report.programs = names.collect();
    println!("{}", report.table());
    let defects = report.defects.len();
    let is_whole = options.call.is_empty() && options.when == WHEN && !interrupt.is_set();
    if is_whole {
        let (today, version, trials) = (record::today(), version(root), results.len());
        let run = format!("{today}, version {version}, {trials} trials");
        let old = fs::read_to_string(root.join("record/faults.txt")).unwrap_or_default();
        let body = report.recorded(&run, &old);
        record::write(root, "faults", "cargo xtask faults", &body)?;
    }
    Ok(defects == 0)
}

fn selected(options: &Options) -> anyhow::Result<Vec<Program>> {
    let names = Program::ALL.map(Program::name);
    for name in &options.only {
        ensure!(
            names.contains(&name.as_str()),
            "unknown program {name}; known are {}",
            names.join(", ")
        );
    }
    for call in &options.call {
        ensure!(
            table::CALLS.iter().any(|(name, _)| name == call),
            "the table has no system call {call} (xtask/src/faults/table.rs)"
        );
    }
    let is_selected = |program: &Program| {
        options.only.is_empty() || options.only.iter().any(|name| name == program.name())
    };
    Ok(Program::ALL.into_iter().filter(is_selected).collect())
}

fn needs(program: &str, argument: &str) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    command
        .arg(argument)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if !command.status().is_ok_and(|status| status.success()) {
        bail!("cannot run {program}; on Debian: apt-get install {program}");
    }
    Ok(())
}

fn build(root: &Path) -> anyhow::Result<()> {
    println!("==> building");
    for arguments in [
        "--package tussah-services --bin tussah --example small_web",
        "--package tussah --example exercise --example echo_stages",
    ] {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo
            .current_dir(root)
            .args(["build", "--quiet"])
            .args(arguments.split(' '));
        ensure!(cargo.status()?.success(), "the programs do not build");
    }
    Ok(())
}

/// Creates the folder with the files to serve and with the certificate.
fn prepare(root: &Path) -> anyhow::Result<Place> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let folder = target.join("faults");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot clear the folder of the sweep")?;
    }
    fs::create_dir_all(folder.join("site"))?;
    // Otherwise `tussah video` warns that it has to assume the rate.
    fs::write(folder.join("site/film.webm.rate"), "8Mbit/s\n")?;
    fs::create_dir_all(folder.join("far"))?;
    fs::write(folder.join("far/far.txt"), "far away\n")?;
    fs::create_dir_all(folder.join("php"))?;
    for (name, content) in client::files() {
        fs::write(folder.join("php").join(name), &content)?;
        fs::write(folder.join("site").join(name), content)?;
    }
    let mut openssl = Command::new("openssl");
    let arguments = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost";
    openssl.args(arguments.split(' ')).current_dir(&folder);
    openssl.stdout(Stdio::null()).stderr(Stdio::null());
    ensure!(
        openssl.status()?.success(),
        "openssl failed to make a certificate"
    );
    Ok(Place {
        root: root.to_owned(),
        target,
        folder,
        url: String::new(),
        router: String::new(),
    })
}

/// Returns the trials of a program: those for the calls that it makes when nothing fails, as often
/// as it makes them.
fn plan(
    place: &Place,
    program: Program,
    phase: Phase,
    options: &Options,
) -> anyhow::Result<Vec<Trial>> {
    let trace = place
        .folder
        .join(format!("{}-{phase}-undisturbed", program.name()));
    // Some kernels and architectures lack some of the calls; a question mark makes strace accept
    // them anyway.
    let names: Vec<_> = table::CALLS
        .iter()
        .map(|(name, _)| format!("?{name}"))
        .collect();
    let strace = ["-e".to_owned(), format!("trace={}", names.join(","))];
    let seen = place.run(program, &strace, phase, &trace)?;
    let is_well = seen.answers
        && seen.exit.is_some_and(|status| status.success())
        && seen.steps.iter().all(|step| *step == Step::Right);
    ensure!(
        is_well,
        "{} fails without an injected error: {seen:#?}",
        program.name()
    );
    let text = fs::read_to_string(&trace)?;
    let most = trace::most_calls(&text);
    let skipped = match phase {
        Phase::Start => trace::loader_calls(&text),
        Phase::Ready => BTreeMap::new(),
    };
    let is_selected = |call: &str| {
        (call != table::LOG_CALL || program.has_log())
            && (options.call.is_empty() || options.call.iter().any(|name| name == call))
    };
    let mut trials = Vec::new();
    for &(call, errors) in table::CALLS.iter().filter(|(call, _)| is_selected(call)) {
        let made = most.get(call).copied().unwrap_or(0);
        let skipped = skipped.get(call).copied().unwrap_or(0);
        for &error in errors {
            let whens = options.when.iter().map(|when| skipped + when);
            trials.extend(whens.filter(|when| *when <= made).map(|when| Trial {
                program,
                call,
                error,
                phase,
                when,
            }));
        }
    }
    Ok(trials)
}

type Results<'a> = Vec<(&'a Trial, Outcome, Seen)>;

fn sweep<'a>(
    place: &Place,
    trials: &'a [Trial],
    jobs: usize,
    interrupt: &Interrupt,
) -> anyhow::Result<Results<'a>> {
    let rest = Mutex::new(trials.iter().enumerate());
    let results = Mutex::new(Ok(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                // If this were the condition of a loop, it would hold the lock for the whole body.
                let next = || {
                    rest.lock()
                        .expect("no panic")
                        .next()
                        .filter(|_| !interrupt.is_set())
                };
                loop {
                    let Some((number, trial)) = next() else {
                        return;
                    };
                    let tried = attempt(place, number, trial);
                    let mut results = results.lock().expect("no panic");
                    match (&mut *results, tried) {
                        (Ok(all), Ok((outcome, seen))) => {
                            progress(number, trials.len(), trial, outcome);
                            all.push((trial, outcome, seen));
                        }
                        (Ok(_), Err(error)) => *results = Err(error),
                        (Err(_), _) => return,
                    }
                }
            });
        }
    });
    results.into_inner().expect("no panic")
}

fn progress(number: usize, of: usize, trial: &Trial, outcome: Outcome) {
    let Trial {
        program,
        call,
        error,
        phase,
        when,
    } = trial;
    if number.is_multiple_of(50) || outcome.is_defect() {
        println!(
            "{number}/{of}: {} {call} {error} {when} from {phase}: {outcome}",
            program.name()
        );
    }
}

fn attempt(place: &Place, number: usize, trial: &Trial) -> anyhow::Result<(Outcome, Seen)> {
    let trace = place.folder.join(format!("{number}"));
    let Trial {
        call, error, when, ..
    } = trial;
    let mut strace = vec![
        "-e".to_owned(),
        // Only traced calls can fail, and some programs never get a pidfd.
        format!("trace={call},pidfd_open"),
        "-e".to_owned(),
        format!("inject={call}:error={error}:when={when}"),
    ];
    if *call == table::LOG_CALL {
        let log = program::log_path(&trace).display().to_string();
        strace.extend(["-P".to_owned(), log]);
    }
    let mut seen = place.run(trial.program, &strace, trial.phase, &trace)?;
    let traced = fs::read_to_string(&trace).unwrap_or_default();
    let is_injected = |line: &&str| line.contains("(INJECTED)") && line.contains(call);
    seen.injected = traced.lines().filter(is_injected).count();
    let outcome = Outcome::of(&seen, error);
    if !outcome.is_defect() {
        // Only the traces of defects are kept.
        fs::remove_file(&trace)?;
        fs::remove_file(trace.with_extension("err"))?;
    }
    Ok((outcome, seen))
}

/// Returns the worst outcome of each error, and the defects.
fn report(results: &Results<'_>) -> Report {
    let mut rows = BTreeMap::<(&str, &str, Phase), BTreeMap<&str, Outcome>>::new();
    let mut report = Report::default();
    for (trial, outcome, seen) in results {
        let row = rows
            .entry((trial.program.name(), trial.call, trial.phase))
            .or_default();
        let worst = row.entry(trial.error).or_insert(Outcome::NotReached);
        *worst = (*outcome).max(*worst);
        if outcome.is_defect() {
            let odd: Vec<_> = seen
                .steps
                .iter()
                .filter(|step| **step != Step::Right)
                .collect();
            report.defects.push(format!(
                "{outcome}: {} {} {} at call {} from {}: {odd:?} {:?}",
                trial.program.name(),
                trial.call,
                trial.error,
                trial.when,
                trial.phase,
                seen.said.lines().next().unwrap_or_default()
            ));
        }
    }
    for ((program, call, phase), outcomes) in rows {
        let outcomes: Vec<_> = outcomes
            .iter()
            .filter(|(_, outcome)| **outcome != Outcome::NotReached)
            .map(|(error, outcome)| format!("{error} {outcome}"))
            .collect();
        if !outcomes.is_empty() {
            let outcomes = outcomes.join(", ");
            let row = format!("{program:9} {call:18} {phase:6} {outcomes}");
            report.rows.push(row);
        }
    }
    report
}

/// Returns the tested commit, and whether the tree has uncommitted changes.
fn version(root: &Path) -> String {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty"])
        .current_dir(root);
    let output = git.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}
