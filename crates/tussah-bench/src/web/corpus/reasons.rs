//! The reasons for the differences between tussah and the other servers.

use std::collections::BTreeMap;

/// The reason for differences of one kind.
struct Reason {
    title: &'static str,
    /// Prefixes of the names of the cases.
    cases: &'static [&'static str],
    text: &'static str,
}

const REASONS: &[Reason] = &[
    Reason {
        title: "Line ends",
        cases: &[
            "400-bare-",
            "400-cr-cr-lf",
            "400-five-empty-lines",
            "400-te-name-lf",
            "ok+400-chunk-extension-quoted-lf",
            "ok+400-second-request-bad",
        ],
        text: "RFC 9112, section 2.2, lets a server take LF alone for a line end. tussah does not: whoever is between \
               client and server and does not either sees other fields, or another request. CR alone must be refused \
               or be replaced (the same section). Of the empty lines before a request, of which one should be skipped, \
               four are.",
    },
    Reason {
        title: "Content-Length and Transfer-Encoding",
        cases: &["400-cl-", "400-te-cl", "400-length-twice-same"],
        text: "With both fields a server may refuse the request, or go by the coding and close the connection (RFC 9112, \
               section 6.1). tussah and nginx refuse it: nobody sends both who means well. A second Content-Length that \
               says the same may be taken for one or be refused (RFC 9110, section 8.6).",
    },
    Reason {
        title: "Transfer codings",
        cases: &["400-te-", "501-te-", "ok-te-"],
        text: "A coding that is not known should be answered with 501 (RFC 9112, section 6.1), and a request whose last coding \
               is not chunked must be answered with 400 (section 6.3), since its end can't be found. nginx knows only the \
               exact word, and answers 501 to all else, even to blanks around it that the grammar allows. hyper goes by the last word and \
               gives the application a body that is still coded.",
    },
    Reason {
        title: "Hosts",
        cases: &["400-host-", "ok-host-"],
        text: "A request of HTTP/1.1 without a Host, with two, or with an invalid one must be answered with 400 (RFC 9112, \
               section 3.2). What is valid says RFC 3986, section 3.2; an empty one is. hyper leaves all of that to the application.",
    },
    Reason {
        title: "Targets",
        cases: &[
            "400-absolute-",
            "400-target-",
            "400-connect-",
            "ok-connect",
            "ok-options-asterisk",
            "ok-path-escapes",
        ],
        text: "The four forms of RFC 9112, section 3.2, each for the methods that it is for, with the characters of RFC \
               3986; all else is 400. A user before the host is refused (RFC 9110, section 4.2.4), and so is a fragment. A server that is no \
               proxy answers CONNECT with 501, as a method that it does not have (RFC 9110, sections 9.1 and 9.3.6), and OPTIONS * for itself (section 9.3.7).",
    },
    Reason {
        title: "Names and values of fields",
        cases: &["400-name-", "400-no-colon", "400-value-"],
        text: "A name is a token (RFC 9110, section 5.1), and a value has no control characters but the tab (section 5.5). nginx \
               passes over a field whose name is none, and takes control characters other than NUL. In \
               `name-utf8-hyphen` the field that it passes over is one that others may take for Transfer-Encoding.",
    },
    Reason {
        title: "Versions, and what is around them",
        cases: &[
            "400-http09",
            "400-space-after-version",
            "400-two-spaces",
            "400-version-",
            "505-",
            "ok-http12",
            "ok+505-",
        ],
        text: "The request line has one space at each place, and a version of one digit, a dot and one digit (RFC 9112, \
               sections 2.3 and 3). Another major version is answered with 505 (RFC 9110, section 15.6.6). Later minor versions of 1 are \
               served (section 2.5). A request line without a version, as in HTTP/0.9, is malformed (RFC 9112, appendix C.1).",
    },
    Reason {
        title: "Limits",
        cases: &["414-", "431-", "501-method-long", "ok-target-longest"],
        text: "Each server has its own. That of a target is 414 (RFC 9110, section 15.5.15), of at least 8000 bytes (RFC 9112, \
               section 3); that of a head is 431 (RFC 6585, section 5), for which nginx says 400. A method that is longer than any known \
               one is 501 (RFC 9112, section 3).",
    },
    Reason {
        title: "Bodies that nobody wants",
        cases: &["ok+413-", "ok+400-length-", "ok+400-request-", "ok+ok"],
        text: "A POST to a file is 405. nginx and hyper read its body to drop it, and go on; tussah closes the connection and need \
               not read it (RFC 9112, section 9.3), so what comes after the body is not answered, and its length is not looked at.",
    },
    Reason {
        title: "Methods",
        cases: &["ok-method-", "ok-unknown-method"],
        text: "A method that is not known is 501, one that a file does not have is 405 (RFC 9110, section 9.1); names of methods \
               are case-sensitive. The message is all right, so the connection goes on. hyper leaves methods to the application.",
    },
];

/// Formats the differences in Markdown, a table for each reason.
///
/// # Errors
///
/// Returns an error if a difference has no reason.
pub fn tables(
    cases: usize,
    servers: &[&str],
    rows: &[(&str, Vec<String>)],
) -> Result<String, String> {
    let of = |name: &str| {
        let begins = |reason: &&Reason| reason.cases.iter().any(|start| name.starts_with(start));
        REASONS.iter().position(|reason| begins(&reason))
    };
    // Cases with the same reason and the same results share a row.
    let mut sorted: BTreeMap<(usize, &[String]), Vec<&str>> = BTreeMap::new();
    for (name, words) in rows {
        let reason =
            of(name).ok_or_else(|| format!("{name}: {words:?} of {servers:?} has no reason"))?;
        sorted.entry((reason, words)).or_default().push(name);
    }
    let mut text = format!(
        "{} of {cases} requests are answered otherwise by one of the others.\n",
        rows.len()
    );
    let mut before = None;
    for ((reason, words), names) in &sorted {
        if before.replace(reason) != Some(reason) {
            let Reason {
                title, text: why, ..
            } = &REASONS[*reason];
            let line = "|---".repeat(servers.len() + 1);
            text += &format!(
                "\n### {title}\n\n{why}\n\n| {} | requests |\n{line}|\n",
                servers.join(" | ")
            );
        }
        text += &format!("| {} | {} |\n", words.join(" | "), names.join(", "));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_has_a_reason() {
        let row = |name| (name, vec!["ok".to_owned(), "400".to_owned()]);
        let text = tables(
            9,
            &["a", "b"],
            &[row("400-bare-lf"), row("400-host-x"), row("400-bare-cr")],
        );
        let text = text.expect("all have one");
        assert!(text.starts_with("3 of 9 requests"), "{text}");
        assert!(
            text.contains(
                "| a | b | requests |\n|---|---|---|\n| ok | 400 | 400-bare-lf, 400-bare-cr |\n"
            ),
            "{text}"
        );
        assert!(
            tables(9, &["a", "b"], &[row("400-odd")])
                .unwrap_err()
                .contains("no reason")
        );
    }
}
