//! The links of the documents: each has to lead to a file, and to a heading if it names one.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::Finding;

/// Directories that hold no documents of the project.
const SKIPPED: [&str; 3] = [".git", "target", "fuzz"];

/// Checks the links of every Markdown file of the tree.
///
/// # Errors
///
/// Returns an error if a file cannot be read.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries =
            std::fs::read_dir(&directory).with_context(|| directory.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if path.is_dir() && !path.is_symlink() && !SKIPPED.contains(&name) {
                directories.push(path);
            } else if name.ends_with(".md") {
                findings.extend(check_file(root, &path)?);
            }
        }
    }
    Ok(findings)
}

fn check_file(root: &Path, path: &Path) -> anyhow::Result<Vec<Finding>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let shown = path
        .strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string();
    let mut findings = Vec::new();
    for (line, link) in links(&text) {
        let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
        let target = if file.is_empty() {
            path.to_owned()
        } else {
            beside(path, file)
        };
        if !target.exists() {
            findings.push(Finding::new(
                &shown,
                line,
                format!("links to `{link}`, which does not exist"),
            ));
        } else if !fragment.is_empty()
            && target
                .extension()
                .is_some_and(|extension| extension == "md")
        {
            let text =
                std::fs::read_to_string(&target).with_context(|| target.display().to_string())?;
            if !anchors(&text).any(|anchor| anchor == fragment) {
                let what = format!("links to `{link}`, but that file has no such heading");
                findings.push(Finding::new(&shown, line, what));
            }
        }
    }
    Ok(findings)
}

fn beside(path: &Path, file: &str) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).join(file)
}

/// Returns the lines outside of code blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        (!in_code && !fence).then_some((number, line))
    })
}

/// Returns the targets of the links to files, with their lines.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(number, line)| {
        let targets = line
            .split("](")
            .skip(1)
            .filter_map(|rest| Some(rest.split_once(')')?.0));
        let local = targets.filter(|target| !target.contains(':') && !target.contains(' '));
        local.map(move |target| (number, target))
    })
}

/// Returns the headings in the form in which links name them.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter_map(|(_, line)| {
        let heading = line.strip_prefix('#')?.trim_start_matches('#').trim();
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        Some(
            kept.flat_map(char::to_lowercase)
                .map(|c| if c == ' ' { '-' } else { c })
                .collect(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "[a](a.md) and [b](b.md#c)\n```text\n[no](no.md)\n```\n[web](https://example.org)\n[d](#d)";
        let found: Vec<_> = links(text).collect();
        assert_eq!(found, [(1, "a.md"), (1, "b.md#c"), (6, "#d")]);
    }

    #[test]
    fn headings_become_anchors() {
        let text = "# Two words\n## `code`, and more\n```sh\n# no heading\n```";
        let found: Vec<_> = anchors(text).collect();
        assert_eq!(found, ["two-words", "code-and-more"]);
    }

    #[test]
    fn links_to_nothing_are_found() {
        let root = std::env::temp_dir().join(format!("xtask-links-{}", std::process::id()));
        std::fs::create_dir_all(root.join("docs")).unwrap();
        std::fs::write(
            root.join("docs/a.md"),
            "# One\n[b](../b.md)\n[c](c.md)\n[two](#two)\n",
        )
        .unwrap();
        std::fs::write(root.join("b.md"), "[one](docs/a.md#one)\n").unwrap();
        let found = check(&root).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        let expected = [
            Finding::new("docs/a.md", 3, "links to `c.md`, which does not exist"),
            Finding::new(
                "docs/a.md",
                4,
                "links to `#two`, but that file has no such heading",
            ),
        ];
        assert_eq!(found, expected);
    }
}
