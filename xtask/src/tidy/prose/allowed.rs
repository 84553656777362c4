//! The number of places in each file that may break a writing rule; the counts may only shrink.

use std::collections::BTreeMap;

use super::super::Finding;
use super::{Breach, Rule};

/// The path of the list.
pub(in super::super) const PATH: &str = "xtask/prose-exceptions.toml";

/// The comment above the list.
const HEADER: &str = "\
# How many places of each file may break a writing rule of `cargo xtask tidy`. The counts may only
# shrink: `cargo xtask tidy --bless` lowers them, and moves them to other files of the same crate
# when text has moved. It never raises their sum for a crate. After a merge conflict, keep either
# side and run it.
";

/// The number of places by rule and file.
type Counts = BTreeMap<(Rule, String), usize>;

/// The list of exceptions.
#[derive(Debug, Default, PartialEq)]
pub(in super::super) struct Allowed {
    counts: Counts,
}

impl Allowed {
    /// # Errors
    ///
    /// Returns a finding that says what is wrong with the list.
    pub(in super::super) fn parse(text: &str) -> Result<Self, Finding> {
        let broken = |what: String| Finding::new(PATH, 1, what);
        let tables: BTreeMap<String, BTreeMap<String, usize>> = toml::from_str(text)
            .map_err(|error| broken(format!("does not parse: {}", error.message())))?;
        let mut counts = Counts::new();
        for (name, files) in tables {
            let Some(rule) = Rule::ALL.into_iter().find(|rule| rule.name() == name) else {
                let names = Rule::ALL.map(Rule::name).join(", ");
                return Err(broken(format!(
                    "`{name}` is no rule, expected one of {names}"
                )));
            };
            counts.extend(files.into_iter().map(|(path, count)| ((rule, path), count)));
        }
        Ok(Self { counts })
    }

    /// Returns the list as the text of a file.
    pub(in super::super) fn write(&self) -> String {
        let mut text = HEADER.to_owned();
        for rule in Rule::ALL {
            let mut files = self
                .counts
                .iter()
                .filter(|((of, _), _)| *of == rule)
                .peekable();
            if files.peek().is_some() {
                text.push_str(&format!("\n[{}]\n", rule.name()));
            }
            for ((_, path), count) in files {
                text.push_str(&format!("\"{path}\" = {count}\n"));
            }
        }
        text
    }

    /// Returns the places in files that have more of them than the list allows.
    pub(in super::super) fn check(&self, breaches: &[Breach]) -> Vec<Finding> {
        let needed = count(breaches);
        let mut findings = Vec::new();
        for ((rule, path), &found) in &needed {
            let allowed = self.count(*rule, path);
            if found <= allowed {
                continue;
            }
            let places = breaches
                .iter()
                .filter(|breach| breach.rule == *rule && breach.finding.path == *path);
            findings.extend(places.map(|breach| {
                let mut finding = breach.finding.clone();
                if allowed > 0 {
                    finding.what += &format!(" ({found} such places, {allowed} are excepted)");
                }
                finding
            }));
        }
        findings
    }

    /// Returns the list that allows only what was found.
    ///
    /// # Errors
    ///
    /// Returns the new places as an error if a crate has more of them than the list allows for the
    /// whole crate.
    pub(in super::super) fn bless(&self, breaches: &[Breach]) -> Result<Self, Vec<Finding>> {
        let counts = count(breaches);
        let (before, after) = (by_crate(&self.counts), by_crate(&counts));
        let grown = |rule: Rule, path: &str| {
            let key = (rule, crate_of(path).to_owned());
            after.get(&key) > before.get(&key)
        };
        let new: Vec<_> = breaches
            .iter()
            .filter(|breach| {
                let Breach { rule, finding } = breach;
                let found = counts.get(&(*rule, finding.path.clone())).copied();
                grown(*rule, &finding.path) && found > Some(self.count(*rule, &finding.path))
            })
            .map(|breach| breach.finding.clone())
            .collect();
        if new.is_empty() {
            Ok(Self { counts })
        } else {
            Err(new)
        }
    }

    fn count(&self, rule: Rule, path: &str) -> usize {
        let key = (rule, path.to_owned());
        self.counts.get(&key).copied().unwrap_or(0)
    }
}

fn count(breaches: &[Breach]) -> Counts {
    let mut counts = Counts::new();
    for Breach { rule, finding } in breaches {
        *counts.entry((*rule, finding.path.clone())).or_default() += 1;
    }
    counts
}

fn by_crate(counts: &Counts) -> Counts {
    let mut sums = Counts::new();
    for ((rule, path), count) in counts {
        *sums.entry((*rule, crate_of(path).to_owned())).or_default() += count;
    }
    sums
}

/// Returns the directory of the file's crate, or the first directory in the path if the file is in
/// no crate.
fn crate_of(path: &str) -> &str {
    let depth = if path.starts_with("crates/") { 2 } else { 1 };
    let end = path.match_indices('/').nth(depth - 1);
    end.map_or("", |(end, _)| &path[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a place in each of these files that breaks the rule on columns.
    fn places(paths: &[&str]) -> Vec<Breach> {
        let breach = |(line, path): (usize, &&str)| Breach {
            rule: Rule::Columns,
            finding: Finding::new(*path, line + 1, "columns: too wide"),
        };
        paths.iter().enumerate().map(breach).collect()
    }

    fn list(counts: &[(&str, usize)]) -> Allowed {
        let mut text = "[columns]\n".to_owned();
        for (path, count) in counts {
            text.push_str(&format!("\"{path}\" = {count}\n"));
        }
        Allowed::parse(&text).unwrap()
    }

    fn shown(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let list = list(&[("a.rs", 2), ("docs/b.md", 1)]);
        let text = list.write();
        assert!(
            text.ends_with("\n[columns]\n\"a.rs\" = 2\n\"docs/b.md\" = 1\n"),
            "{text}"
        );
        assert_eq!(Allowed::parse(&text).unwrap(), list);
        assert_eq!(
            Allowed::parse(&Allowed::default().write()).unwrap(),
            Allowed::default()
        );
    }

    #[test]
    fn a_list_that_cannot_be_read_is_a_finding() {
        let check = |text: &str, expected: &str| {
            let finding = Allowed::parse(text).unwrap_err().to_string();
            assert!(finding.contains(expected), "{finding}");
        };
        check(
            "[colums]\n\"a.rs\" = 2\n",
            "`colums` is no rule, expected one of sentence",
        );
        check("[columns]\n\"a.rs\" = -1\n", "does not parse");
    }

    #[test]
    fn excepted_places_are_no_findings() {
        let allowed = list(&[("a.rs", 2)]);
        assert_eq!(allowed.check(&places(&["a.rs", "a.rs"])), []);
        let found = shown(&allowed.check(&places(&["a.rs", "a.rs", "a.rs"])));
        assert_eq!(found.len(), 3);
        assert!(found[0].starts_with("a.rs:1: columns: too wide (3 such places, 2 are excepted)"));
        let found = shown(&allowed.check(&places(&["a.rs", "a.rs", "b.rs"])));
        assert_eq!(found, ["b.rs:3: columns: too wide"]);
    }

    #[test]
    fn bless_lowers_counts_and_follows_moves_but_raises_no_crate() {
        let (one, two, other) = (
            "crates/a/src/a.rs",
            "crates/a/src/b.rs",
            "crates/b/src/a.rs",
        );
        let before = list(&[(one, 2), (other, 1)]);
        assert_eq!(before.bless(&places(&[one])), Ok(list(&[(one, 1)])));
        assert_eq!(before.bless(&[]), Ok(Allowed::default()));
        assert_eq!(
            before.bless(&places(&[one, two])),
            Ok(list(&[(one, 1), (two, 1)]))
        );
        let refused = before.bless(&places(&[one, one, two])).unwrap_err();
        assert_eq!(shown(&refused), ["crates/a/src/b.rs:3: columns: too wide"]);
        assert_eq!(before.bless(&places(&[other, other])).unwrap_err().len(), 2);
    }

    #[test]
    fn a_file_belongs_to_its_crate() {
        let check = |path: &str, expected: &str| assert_eq!(crate_of(path), expected, "{path}");
        check("crates/a/src/b.rs", "crates/a");
        check("docs/a/b.md", "docs");
        check("xtask/src/main.rs", "xtask");
        check("README.md", "");
    }
}
