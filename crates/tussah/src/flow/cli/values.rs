//! The values of a graph's parameters: from options, the environment, or a file, in this order.

use std::collections::BTreeMap;
use std::ffi::OsString;

use toml::de::{DeTable, DeValue};
use tussah_weave::{Graph, Kind, Param, Value};

use super::options::OWN;

/// The places that a value can come from. All values are text.
pub(super) struct Given<'a> {
    pub(super) options: BTreeMap<String, String>,
    pub(super) environment: &'a dyn Fn(&str) -> Option<OsString>,
    pub(super) file: Option<ValuesFile>,
}

/// A TOML file with values.
pub(super) struct ValuesFile {
    /// The keys with their places in the file, and their values.
    keys: BTreeMap<String, (String, FileValue)>,
}

/// A value in a file.
enum FileValue {
    Text(String),
    /// A value of another kind, which no parameter takes: its text and its kind.
    Other(String, &'static str),
}

impl ValuesFile {
    /// Parses a file of this name.
    ///
    /// # Errors
    /// Returns an error with an excerpt if the text is not TOML.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, String> {
        let table = DeTable::parse(text)
            .map_err(|error| format!("{file}: {}", error.to_string().trim_end()))?;
        let keys = table.get_ref().iter().map(|(key, value)| {
            let line = text[..key.span().start].matches('\n').count() + 1;
            let name = key.get_ref().to_string();
            let place = format!("`{name}` in {file}:{line}");
            // A user types a number as in the file.
            let written = text[value.span()].to_owned();
            let value = match value.get_ref() {
                DeValue::String(text) => FileValue::Text(text.to_string()),
                DeValue::Datetime(_) => FileValue::Other(written, "date or a time"),
                DeValue::Array(_) => FileValue::Other(written, "list"),
                DeValue::Table(_) => FileValue::Other(written, "table"),
                _ => FileValue::Text(written),
            };
            (name, (place, value))
        });
        Ok(Self {
            keys: keys.collect(),
        })
    }
}

/// Returns the values from the user. Parameters with a default may be omitted.
///
/// # Errors
/// Returns an error that lists all wrong values and all missing values.
pub(super) fn values(
    graph: &Graph,
    given: &Given<'_>,
) -> Result<BTreeMap<String, Value>, Vec<String>> {
    let (mut values, mut errors) = (BTreeMap::new(), Vec::new());
    for param in &graph.params {
        match value(graph, param, given) {
            Ok(value) => values.extend(value.map(|value| (param.name.clone(), value))),
            Err(error) => errors.push(error),
        }
    }
    if let Some(file) = &given.file {
        let is_known = |key: &str| graph.params.iter().any(|param| param.name == key);
        let unknown = file.keys.iter().filter(|(key, _)| !is_known(key));
        let known: Vec<&str> = graph.params.iter().map(|it| it.name.as_str()).collect();
        errors.extend(unknown.map(|(_, (place, _))| {
            let (graph, known) = (&graph.name, known.join(", "));
            format!("{place} is not a parameter of {graph} (parameters: {known})")
        }));
    }
    match errors.is_empty() {
        true => Ok(values),
        false => Err(errors),
    }
}

fn value(graph: &Graph, param: &Param, given: &Given<'_>) -> Result<Option<Value>, String> {
    let (name, kind) = (&param.name, &param.kind);
    let (option, variable) = (option(name), variable(&graph.name, name));
    let (place, text) = if let Some(text) = given.options.get(name) {
        (option, text.clone())
    } else if let Some(text) = (given.environment)(&variable) {
        let text = text.into_string();
        let text = text.map_err(|_| format!("{variable} in the environment is not UTF-8"))?;
        (format!("{variable} in the environment"), text)
    } else if let Some((place, value)) = given.file.as_ref().and_then(|file| file.keys.get(name)) {
        match value {
            FileValue::Text(text) => (place.clone(), text.clone()),
            FileValue::Other(text, found) => return Err(other(place, text, found, kind)),
        }
    } else if param.default.is_some() {
        return Ok(None);
    } else if let Kind::Rust(ty) = kind {
        return Err(format!(
            "only a program can give `{name}` its value, a {ty}"
        ));
    } else if OWN.contains(&name.as_str()) {
        return Err(format!(
            "`{name}: {kind}` is missing, and has no option: give it in the environment \
             ({variable}), or in a file of --params"
        ));
    } else {
        return Err(format!(
            "{option} <{kind}> is missing: give it on the command line, in the environment \
             ({variable}), or in a file of --params"
        ));
    };
    let value = Value::parse(&text, kind).map_err(|error| {
        let error = error.to_string();
        match kind.example() {
            Some(example) if error.contains("expected") && !error.contains(example) => {
                format!("{place}: {error}, for example {example}")
            }
            _ => format!("{place}: {error}"),
        }
    })?;
    Ok(Some(value))
}

/// Returns the error for a value of a file that no parameter takes.
fn other(place: &str, text: &str, found: &str, kind: &Kind) -> String {
    let error = format!("{place}: {text} is a {found}, expected a {kind}");
    match kind.example() {
        Some(example) => format!("{error}, for example {example}"),
        None => error,
    }
}

/// Returns the option of a parameter: `--at-once` for `at_once`, and `--_at-once` for `_at_once`,
/// because the name of an option does not begin with a hyphen.
pub(super) fn option(param: &str) -> String {
    let words = param.trim_start_matches('_');
    let (underscores, _) = param.split_at(param.len() - words.len());
    format!("--{underscores}{}", words.replace('_', "-"))
}

/// Returns the variable of a parameter: `WEB_SERVER_AT_ONCE` for `at_once` of `WebServer`.
pub(super) fn variable(graph: &str, param: &str) -> String {
    let mut variable = String::new();
    let mut is_lower = false;
    for c in graph.chars() {
        if is_lower && c.is_ascii_uppercase() {
            variable.push('_');
        }
        is_lower = !c.is_ascii_uppercase();
        variable.push(c.to_ascii_uppercase());
    }
    format!("{variable}_{}", param.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: &str = "
        graph WebServer(root: path, at_once: count = 8, wait: duration = 5 ms, quiet: flag = false) {}
    ";

    /// Returns the values, or else the errors.
    fn resolve(options: &[(&str, &str)], variables: &[(&str, &str)], file: &str) -> String {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, text)| OsString::from(text))
        };
        let given = Given {
            options: options.iter().map(owned).collect(),
            environment: &find,
            file: Some(ValuesFile::parse("web.toml", file).expect("TOML")),
        };
        let checked = tussah_weave::check(&tussah_weave::parse(GRAPH).file, None);
        match values(&checked.graphs[0], &given) {
            Ok(values) => {
                let shown = values.iter().map(|(name, value)| format!("{name}={value}"));
                shown.collect::<Vec<_>>().join(" ")
            }
            Err(errors) => errors.join("\n"),
        }
    }

    #[test]
    fn an_option_comes_before_the_environment_and_that_before_the_file() {
        let check = |options: &[_], variables: &[_], file: &str, expected: &str| {
            assert_eq!(resolve(options, variables, file), expected);
        };
        let (option, variable) = (("root", "a"), ("WEB_SERVER_ROOT", "b"));
        let file = "root = 'c'";
        check(&[option], &[variable], file, r#"root="a""#);
        check(&[], &[variable], file, r#"root="b""#);
        check(&[], &[], file, r#"root="c""#);
        let file = "root = 'c'\nat_once = 10\nwait = '1 s'\nquiet = true";
        let all = r#"at_once=10 quiet=true root="c" wait=1 s"#;
        check(&[], &[], file, all);
    }

    #[test]
    fn all_wrong_values_are_reported_at_once() {
        let errors = resolve(
            &[("at_once", "x")],
            &[("WEB_SERVER_WAIT", "5 MiB")],
            "quiet = 1\nrot = 'a'",
        );
        let expected = [
            "--root <path> is missing: give it on the command line, in the environment \
             (WEB_SERVER_ROOT), or in a file of --params",
            "--at-once: \"x\" is not a count, expected for example 10 or 2 k",
            "WEB_SERVER_WAIT in the environment: 5 MiB is a size, expected a duration, for example 50 ms",
            "`quiet` in web.toml:1: 1 is a count, expected a flag, for example true",
            "`rot` in web.toml:2 is not a parameter of WebServer (parameters: root, at_once, wait, quiet)",
        ];
        assert_eq!(errors, expected.join("\n"));
    }

    #[test]
    fn dates_lists_and_tables_of_a_file_are_no_values() {
        let check = |file: &str, expected: &str| {
            let errors = resolve(&[("root", "a")], &[], file);
            assert_eq!(errors, format!("`{expected}"));
        };
        check(
            "at_once = 1979-05-27",
            "at_once` in web.toml:1: 1979-05-27 is a date or a time, expected a count, for \
             example 10 or 2 k",
        );
        check(
            "wait = 07:32:00",
            "wait` in web.toml:1: 07:32:00 is a date or a time, expected a duration, for example \
             50 ms",
        );
        check(
            "at_once = [1, 2]",
            "at_once` in web.toml:1: [1, 2] is a list, expected a count, for example 10 or 2 k",
        );
        let errors = resolve(&[], &[], "root = [1]\nwait = { a = 1 }");
        let expected = [
            "`root` in web.toml:1: [1] is a list, expected a path, for example \"directory/file\"",
            "`wait` in web.toml:2: { a = 1 } is a table, expected a duration, for example 50 ms",
        ];
        assert_eq!(errors, expected.join("\n"));
    }

    #[test]
    fn options_do_not_begin_with_a_hyphen() {
        let check = |param: &str, expected: &str| assert_eq!(option(param), expected);
        check("at_once", "--at-once");
        check("_at_once", "--_at-once");
        check("__a", "--__a");
        check("_", "--_");
    }

    #[test]
    fn variables_have_the_words_of_the_graph() {
        let check = |graph: &str, expected: &str| assert_eq!(variable(graph, "a_b"), expected);
        check("Web", "WEB_A_B");
        check("WebServer", "WEB_SERVER_A_B");
        check("web_server", "WEB_SERVER_A_B");
        check("HTTP", "HTTP_A_B");
    }
}
