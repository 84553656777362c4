//! The modules for files.

use std::fs;
use std::path::PathBuf;

use tussah::flow::Params;

use super::{Given, Notes, all, graph, messages};
use crate::runtime;

/// Runs a graph to its end, and returns its notes, or the reason why it could not start.
#[track_caller]
fn run(text: &str, params: Params) -> Result<Vec<String>, String> {
    let notes = Notes::default();
    let graph = graph(text, &all(), &params.typed("to", notes.clone()));
    runtime(2).block_on(async {
        let running = graph.start().map_err(|error| error.to_string())?;
        running.drain().await;
        Ok(notes.sorted())
    })
}

fn root() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().expect("there is room for temporary files");
    let path = root.path().to_owned();
    (root, path)
}

#[test]
fn the_lines_of_a_file_are_appended_to_another() {
    let (_root, path) = root();
    let (from, to) = (path.join("from"), path.join("to"));
    let lines: String = (0..30_000).map(|line| format!("line {line}\n")).collect();
    fs::write(&from, format!("{lines}the end")).expect("it can be written");
    fs::write(&to, "before\n").expect("it can be written");
    let text = format!(
        "use FileLines, FileAppend, Note
        graph Copy(to: Notes) {{
          lines = FileLines({from:?})
          copy  = FileAppend({to:?})
          error = Note(to)
          lines -> copy
          lines.error -> error
        }}"
    );
    assert_eq!(run(&text, Params::new()), Ok(Vec::new()));
    let copy = fs::read_to_string(to).expect("it is there");
    assert!(copy == format!("before\n{lines}the end\n"));
}

#[test]
fn a_line_that_is_too_long_ends_the_source() {
    let (_root, path) = root();
    let file = path.join("file");
    fs::write(&file, "short\nfar too long\nshort\n").expect("it can be written");
    let text = format!(
        "use FileLines, Note
        graph Read(to: Notes) {{
          lines = FileLines({file:?}, longest: 5 B)
          note  = Note(to)
          error = Note(to)
          lines -> note
          lines.error -> error
        }}"
    );
    let notes = run(&text, Params::new()).expect("the file exists");
    let error = format!(
        "{:?}",
        format!("{}: a message has more than 5 bytes", file.display())
    );
    assert_eq!(notes, [error, r#"Message("short")"#.to_owned()]);
}

#[test]
fn what_cannot_be_opened_stops_the_whole_graph() {
    let (_root, path) = root();
    let made = path.join("made");
    let check = |module: &str, expected: String| {
        let text = format!(
            "use FileLines, FileAppend, DirectoryList, ReadFile, Logger
            graph Fails() {{
              good  = FileAppend({made:?})
              lines = FileLines(\"/dev/null\")
              bad   = {module}
              lines -> good
              bad -> log
              log = Logger()
            }}"
        );
        let error = run_without_notes(&text).expect_err("it cannot be opened");
        assert_eq!(
            error,
            format!("the instance `bad` at test.weave:5:15 could not be made: {expected}")
        );
    };
    let none = path.join("none");
    let missing = format!("{}: No such file or directory (os error 2)", none.display());
    check(
        &format!("FileLines({none:?})"),
        format!("cannot read {missing}"),
    );
    check(
        &format!("DirectoryList({none:?})"),
        format!("cannot list {missing}"),
    );
    let folder = format!("cannot read {}: is a directory", path.display());
    check(&format!("FileLines({path:?})"), folder);
    // What was opened before is closed.
    assert!(tussah::flow::OpenFile::create(&made).is_ok());
}

fn run_without_notes(text: &str) -> Result<(), String> {
    let graph = graph(text, &all(), &Params::new());
    runtime(1).block_on(async { graph.start().map(|_| ()).map_err(|error| error.to_string()) })
}

#[test]
fn a_failed_line_goes_to_the_port_for_it() {
    let text = "
        use Items, FileAppend, Note
        graph Full(given: Given, to: Notes) {
          items = Items(given)
          full  = FileAppend(\"/dev/full\")
          error = Note(to)
          items -> full
          full.failed -> error
        }";
    let params = Params::new().typed("given", Given::new(messages(&["lost"])));
    let notes = run(text, params).expect("the device can be opened");
    let expected = r#"Attempt { item: Message("lost"), failures: 1, why: "cannot write /dev/full: No space left on device (os error 28)" }"#;
    assert_eq!(notes, [expected]);
}

#[test]
fn the_files_of_a_directory_are_read_whole() {
    let (_root, path) = root();
    for (name, text) in [("a", "one"), ("b", "two"), ("c", "too long")] {
        fs::write(path.join(name), text).expect("it can be written");
    }
    fs::create_dir(path.join("folder")).expect("it can be made");
    let text = format!(
        "use DirectoryList, ReadFile, Note
        graph Read(to: Notes) {{
          files = DirectoryList({path:?})
          read  = ReadFile(longest: 3 B)
          note  = Note(to)
          error = Note(to)
          files -> read -> note
          read.failed -> error
        }}"
    );
    let notes = run(&text, Params::new()).expect("the directory exists");
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes[0].contains("has more than 3 bytes"), "{}", notes[0]);
    let contents = |name: &str, bytes: &[u8]| {
        let path = path.join(name);
        format!("Contents {{ path: {path:?}, bytes: {bytes:?} }}")
    };
    assert_eq!(notes[1..], [contents("a", b"one"), contents("b", b"two")]);
}

#[test]
fn a_path_out_of_the_root_is_refused() {
    let (_root, path) = root();
    fs::write(path.join("a"), "one").expect("it can be written");
    let text = format!(
        "use Items, ReadFile, Note
        graph Read(given: Given, to: Notes) {{
          files = Items(given)
          read  = ReadFile(root: {path:?})
          note  = Note(to)
          error = Note(to)
          files -> read -> note
          read.failed -> error
        }}"
    );
    let items = ["a", "./a", "../a", "x/../../a", "/etc/passwd"].map(PathBuf::from);
    let params = Params::new().typed("given", Given::new(items.to_vec()));
    let notes = run(&text, params).expect("the directory exists");
    let refused = notes.iter().filter(|note| note.contains("leads out of"));
    assert_eq!((refused.count(), notes.len()), (3, 5), "{notes:?}");
}

#[test]
fn conflicting_uses_of_a_file_are_refused_with_both_instances() {
    let (_root, path) = root();
    let file = path.join("file");
    fs::write(&file, "text\n").expect("it can be written");
    // Another name for the same file.
    let link = path.join("link");
    std::os::unix::fs::symlink(&file, &link).expect("it can be made");
    let text = |append: &str| {
        format!(
            "use FileLines, FileAppend
            graph Loop() {{
              lines = FileLines({file:?})
              copy  = FileAppend({append:?})
              again = FileAppend({append:?})
              lines -> copy
              lines -> again
            }}"
        )
    };
    let error = run_without_notes(&text(&link.display().to_string()));
    let expected = format!(
        "the instance `copy` at test.weave:4:15 could not be made: cannot append to {}: the \
         instance `lines` reads it already, which conflicts with the instance `copy`",
        link.display()
    );
    assert_eq!(error, Err(expected));
    let other = path.join("other").display().to_string();
    assert_eq!(run_without_notes(&text(&other)), Ok(()));
}
