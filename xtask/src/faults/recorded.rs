//! The record of the sweep. A run of some programs replaces their rows, and keeps those of others.

use std::fmt::Write as _;

/// The result of a run.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// The names of the programs that were run.
    pub(super) programs: Vec<String>,
    /// One row for each program, call and phase, which begins with the name of the program.
    pub(super) rows: Vec<String>,
    /// One line for each defect: the outcome, a colon, the program, and more.
    pub(super) defects: Vec<String>,
}

impl Report {
    /// Returns the table, and the defects below it.
    pub(super) fn table(&self) -> String {
        let mut table = format!(
            "{:9} {:18} {:6} outcome of each error\n",
            "program", "call", "from"
        );
        for row in &self.rows {
            let _ = writeln!(table, "{row}");
        }
        let _ = writeln!(table, "\n{} defects", self.defects.len());
        for defect in &self.defects {
            let _ = writeln!(table, "{defect}");
        }
        table
    }

    /// Returns the text of the record: that of `old`, in which this run replaces what it has
    /// repeated. `run` is the date and the version of this run.
    pub(super) fn recorded(mut self, run: &str, old: &str) -> String {
        let is_kept = |program: &str| self.programs.iter().all(|name| name != program);
        let mut runs = String::new();
        let (mut rows, mut defects) = (Vec::new(), Vec::new());
        for line in old.lines() {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap_or_default();
            if let Some((run, programs)) = line.split_once(": ").filter(|it| is_run(it.0)) {
                let kept: Vec<_> = programs.split(", ").filter(|name| is_kept(name)).collect();
                if !kept.is_empty() {
                    let _ = writeln!(runs, "{run}: {}", kept.join(", "));
                }
            } else if line.contains(" start ") || line.contains(" ready ") {
                rows.extend(is_kept(first).then(|| line.to_owned()));
            } else if first.ends_with(':') && words.next().is_some_and(is_kept) {
                defects.push(line.to_owned());
            }
        }
        let _ = writeln!(runs, "{run}: {}", self.programs.join(", "));
        rows.append(&mut self.rows);
        // A run has the rows of a program in order.
        rows.sort_by(|a, b| program(a).cmp(program(b)));
        defects.append(&mut self.defects);
        (self.rows, self.defects) = (rows, defects);
        format!("{runs}\n{}", self.table())
    }
}

fn program(row: &str) -> &str {
    row.split_whitespace().next().unwrap_or_default()
}

/// Returns whether the start of a line is that of a run, such as `2026-11-25, version 1, 9 trials`.
fn is_run(text: &str) -> bool {
    text.contains(", version ") && text.ends_with(" trials")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(programs: &[&str], call: &str, defects: &[&str]) -> Report {
        let owned = |all: &[&str]| all.iter().map(|&it| it.to_owned()).collect();
        let rows = programs
            .iter()
            .map(|it| format!("{it:9} {call} start EIO refused"));
        Report {
            programs: owned(programs),
            rows: rows.collect(),
            defects: owned(defects),
        }
    }

    #[test]
    fn a_run_of_some_programs_keeps_the_rows_of_the_others() {
        let defects = ["DEAF: web read EIO", "WRONG: load read EIO"];
        let first = report(&["load", "web"], "read", &defects);
        let first = first.recorded("2026-11-25, version 1, 9 trials", "");
        let second = report(&["echo", "web"], "bind", &["SILENT: echo bind EIO"]);
        let second = second.recorded("2026-11-28, version 2, 5 trials", &first);
        let expected = "\
2026-11-25, version 1, 9 trials: load
2026-11-28, version 2, 5 trials: echo, web

program   call               from   outcome of each error
echo      bind start EIO refused
load      read start EIO refused
web       bind start EIO refused

2 defects
WRONG: load read EIO
SILENT: echo bind EIO
";
        assert_eq!(second, expected);
    }
}
