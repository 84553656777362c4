//! Runs every peer of every workload once through the command line, at a tiny scale. The tests
//! ignore the figures.

use std::process::{Command, Output};
use std::sync::Mutex;

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tussah-bench"))
        .args(arguments)
        .output()
        .expect("cargo has built the program")
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("the program prints UTF-8")
}

/// Returns the workloads that `list` prints, each with its peers.
fn workloads() -> Vec<(String, Vec<String>)> {
    let list = text(bench(&["list"]).stdout);
    let lines: Vec<&str> = list.lines().collect();
    let workload = |pair: &[&str]| {
        let name = pair[0]
            .split_whitespace()
            .next()
            .expect("a name comes first");
        let (_, peers) = pair[1]
            .split_once("peers: ")
            .expect("the second line has the peers");
        (
            name.to_owned(),
            peers.split(", ").map(str::to_owned).collect(),
        )
    };
    lines.chunks_exact(2).map(workload).collect()
}

/// The number of workloads that run at the same time: most of them wait.
const AT_ONCE: usize = 4;

#[test]
fn every_peer_of_every_workload_runs_and_loses_nothing() {
    let workloads = workloads();
    assert_eq!(workloads.len(), 28);
    let left = Mutex::new(workloads.into_iter());
    let next = || left.lock().expect("no iterator panics").next();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((workload, peers)) = next() {
                    every_peer_runs(&workload, &peers);
                }
            });
        }
    });
}

fn every_peer_runs(workload: &str, peers: &[String]) {
    let flags = [
        "--runs", "1", "--scale", "0.0005", "--json", "--base", "floor",
    ];
    let output = bench(&[&[workload], &flags[..]].concat());
    let errors = text(output.stderr);
    assert!(output.status.success(), "{workload}: {errors}");
    let lines: Vec<Value> = text(output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("one JSON object a line"))
        .collect();
    assert!(lines.iter().all(|line| line["workload"] == workload));
    // fio is a separate program and may be missing.
    for peer in peers.iter().filter(|peer| *peer != "floor-fio") {
        let mut figures = lines.iter().filter(|line| line["peer"] == peer.as_str());
        assert!(
            figures.any(|line| line["runs"] == 1),
            "{workload} has no figure of {peer}"
        );
    }
}

#[test]
fn unknown_names_are_refused_with_the_known_ones() {
    let output = bench(&["table2", "--peer", "nobody"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(output.stderr).contains("floor, tokio, smol, actor"));
    assert_eq!(bench(&["nothing"]).status.code(), Some(2));
}

#[test]
fn controllers_are_compared_and_drawn() {
    let folder = std::env::temp_dir().join(format!("tussah-controllers-{}", std::process::id()));
    let plots = folder.to_str().expect("the folder has a name in UTF-8");
    let output = bench(&[
        "controllers",
        "--seeds",
        "1",
        "--scenario",
        "step-2",
        "--controller",
        "auto,threshold",
        "--json",
        "--plots",
        plots,
    ]);
    let errors = text(output.stderr);
    assert!(output.status.success(), "{errors}");
    let lines: Vec<Value> = text(output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("one JSON object a line"))
        .collect();
    // Two contenders, each with free and with charged rejections.
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().all(|line| line["scenario"] == "step-2"));
    let drawn = std::fs::read_to_string(folder.join("step-2.svg"));
    assert!(drawn.expect("it was drawn").ends_with("</svg>\n"));
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

#[test]
fn unknown_controllers_are_refused_with_the_known_ones() {
    let output = bench(&["controllers", "--controller", "nobody"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(output.stderr).contains("but: auto, "));
}
