//! A list of paths to request, each with a weight.

/// The paths of a list.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::load) struct Paths {
    pub(in crate::load) paths: Vec<String>,
    /// The weight of each path, more than 0.
    pub(in crate::load) weights: Vec<f64>,
}

impl Paths {
    /// Parses a list: in each line a path that begins with `/`, after an optional weight and a
    /// space. The default weight is 1. Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// Returns a sentence that names the line, and states what was expected.
    pub(in crate::load) fn parse(text: &str) -> Result<Self, String> {
        let mut list = Self {
            paths: Vec::new(),
            weights: Vec::new(),
        };
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (weight, path) = match line.split_once([' ', '\t']) {
                Some((weight, path)) => (weight.parse().ok(), path.trim_start()),
                None => (Some(1.0), line),
            };
            let is_path = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
            match weight.filter(|weight: &f64| weight.is_finite() && *weight > 0.0) {
                Some(weight) if is_path => {
                    list.paths.push(path.to_owned());
                    list.weights.push(weight);
                }
                _ => {
                    return Err(format!(
                        "line {}: expected a path such as `/a?b=c`, or a weight above 0 and a path \
                         such as `0.5 /a`, not `{line}`",
                        at + 1
                    ));
                }
            }
        }
        if list.paths.is_empty() {
            return Err("expected at least one line with a path".to_owned());
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_and_without_weights() {
        let list = Paths::parse("# a mix\n/a?b\n\n2.5 /c\n\t3\t /d\n").expect("a list");
        assert_eq!(list.paths, ["/a?b", "/c", "/d"]);
        assert_eq!(list.weights, [1.0, 2.5, 3.0]);
    }

    #[test]
    fn wrong_lines_are_named() {
        let wrong = |text: &str| Paths::parse(text).expect_err("it is wrong");
        for line in ["a", "0 /a", "-1 /a", "inf /a", "x /a", "2 a", "/a b", "/ä"] {
            let error = wrong(&format!("/good\n{line}\n"));
            assert!(error.starts_with("line 2: "), "{line}: {error}");
            assert!(error.ends_with(&format!("`{line}`")), "{error}");
        }
        assert!(wrong("# nothing\n").contains("at least one line"));
    }
}
