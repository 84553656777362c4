//! Output that nobody reads, or that has no room.

use std::fs::File;
use std::process::Command;

use super::{lines, tussah};

const TEST: &str = "
test \"a line\" of LinePrinter(file: \"no file\") {
  send lines \"one\"
  expect print \"two\"
}
";

#[test]
fn output_that_cannot_be_written_causes_no_panic() {
    let directory = lines();
    let path = directory.path();
    let text = super::LINES.to_owned() + TEST;
    std::fs::write(path.join("test.weave"), text).expect("a file");
    std::fs::write(path.join("wrong.weave"), "graph A {").expect("a file");
    let full = || {
        File::options()
            .write(true)
            .open("/dev/full")
            .expect("it is there")
    };
    let code = |arguments: &[&str], is_stdout_full: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tussah"));
        command.args(arguments).current_dir(path).stderr(full());
        if is_stdout_full {
            command.stdout(full());
        }
        command.output().expect("the command starts").status.code()
    };
    assert_eq!(code(&["test", "test.weave"], true), Some(2));
    for (command, expected) in [
        ("test", 2),
        ("run", 2),
        ("check", 1),
        ("fmt", 1),
        ("draw", 1),
    ] {
        assert_eq!(
            code(&[command, "wrong.weave"], false),
            Some(expected),
            "{command}"
        );
    }
    assert_eq!(code(&["test", "test.weave"], false), Some(1));
    assert_eq!(code(&["run", "none.weave"], false), Some(2));
    assert_eq!(tussah(path, &["test", "test.weave"]).0, 1);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let directory = lines();
    let text = super::LINES.to_owned() + &TEST.replace("two", "one");
    std::fs::write(directory.path().join("test.weave"), text).expect("a file");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tussah"));
    command.args(["test", "test.weave"]).stdout(writer);
    let status = command.current_dir(directory.path()).status();
    assert_eq!(status.expect("the command starts").code(), Some(0));
}
