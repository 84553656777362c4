//! The fully qualified names that a name may stand for.

use std::net::{Ipv4Addr, Ipv6Addr};

use hickory_resolver::proto::rr::domain::usage;
use hickory_resolver::proto::rr::rdata::{A, AAAA, PTR};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};

use super::answer::TTL_MAX;
use super::error::Reason;

/// Bound, in names: the longest search list that is used. Each domain may cost one question per
/// name.
pub(super) const SEARCH_MAX: usize = 16;

/// Returns the full names to try, in order, as defined in resolv.conf(5) for `search` and `ndots`.
///
/// A name with a final dot is complete, and so is `localhost` (RFC 6761, section 6.3). Any other
/// name is tried with each domain of the search list, and also as it is: first if it has at least
/// `ndots` dots, otherwise last.
///
/// # Errors
/// Returns the reason why the name is invalid.
pub(super) fn candidates(name: &str, ndots: usize, search: &[Name]) -> Result<Vec<Name>, String> {
    let parsed = parse(name)?;
    let mut full = parsed.clone();
    full.set_fqdn(true);
    if parsed.is_fqdn() || full.is_localhost() {
        return Ok(vec![full]);
    }
    let dots = usize::from(parsed.num_labels()).saturating_sub(1);
    let mut names = Vec::with_capacity(search.len() + 1);
    if dots >= ndots {
        names.push(full.clone());
    }
    for domain in search.iter().take(SEARCH_MAX) {
        // A name that is too long with the domain does not exist.
        if let Ok(mut longer) = parsed.clone().append_domain(domain) {
            longer.set_fqdn(true);
            if !names.contains(&longer) {
                names.push(longer);
            }
        }
    }
    if !names.contains(&full) {
        names.push(full);
    }
    Ok(names)
}

/// Parses a name as users write it, including non-ASCII letters (RFC 5891) and underscores.
pub(super) fn parse(name: &str) -> Result<Name, String> {
    if name.is_empty() {
        return Err("it is empty".to_owned());
    }
    Name::from_str_relaxed(name).map_err(|error| error.to_string())
}

/// Returns the record that is known for a name without asking. This covers names of this machine
/// (RFC 6761, section 6.3; their addresses are those of `localhost`) and names that never exist
/// (RFC 6761, section 6.4, and RFC 7686, section 2).
pub(super) fn special(name: &Name, record_type: RecordType) -> Option<Result<Record, Reason>> {
    if usage::INVALID.zone_of(name) || usage::ONION.zone_of(name) {
        return Some(Err(Reason::NoSuchName));
    }
    let of_this_machine = usage::LOCALHOST.zone_of(name);
    let reverse = usage::IN_ADDR_ARPA_127.zone_of(name) || usage::IP6_ARPA_1.zone_of(name);
    let data = match record_type {
        RecordType::A if of_this_machine => RData::A(A(Ipv4Addr::LOCALHOST)),
        RecordType::AAAA if of_this_machine => RData::AAAA(AAAA(Ipv6Addr::LOCALHOST)),
        RecordType::PTR if reverse => {
            let localhost = Name::from_ascii("localhost.").expect("it is a name");
            RData::PTR(PTR(localhost))
        }
        _ if of_this_machine || reverse => return Some(Err(Reason::NoRecords)),
        _ => return None,
    };
    Some(Ok(Record::from_rdata(name.clone(), TTL_MAX, data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_table() {
        let search = ["corp.example", "example"].map(|domain| parse(domain).expect("a name"));
        let check = |name: &str, ndots: usize, expected: &[&str]| {
            let names = candidates(name, ndots, &search).expect("a name");
            let names: Vec<_> = names.iter().map(|name| name.to_ascii()).collect();
            assert_eq!(names, expected, "{name}, ndots {ndots}");
        };
        check("www", 1, &["www.corp.example.", "www.example.", "www."]);
        check("www", 0, &["www.", "www.corp.example.", "www.example."]);
        check("a.b", 1, &["a.b.", "a.b.corp.example.", "a.b.example."]);
        check("a.b", 2, &["a.b.corp.example.", "a.b.example.", "a.b."]);
        check("a.b.", 2, &["a.b."]);
        check("www.", 1, &["www."]);
        check(".", 1, &["."]);
        check("localhost", 1, &["localhost."]);
        check("db.localhost", 5, &["db.localhost."]);
        check(
            "_http._tcp.www",
            1,
            &[
                "_http._tcp.www.",
                "_http._tcp.www.corp.example.",
                "_http._tcp.www.example.",
            ],
        );
        check(
            "bücher.example",
            1,
            &[
                "xn--bcher-kva.example.",
                "xn--bcher-kva.example.corp.example.",
                "xn--bcher-kva.example.example.",
            ],
        );
    }

    #[test]
    fn special_names() {
        let check = |name: &str, record_type, expected: &str| {
            let known = special(&parse(name).expect("a name"), record_type);
            let known = match known {
                None => "ask".to_owned(),
                Some(Ok(record)) => record.data.to_string(),
                Some(Err(reason)) => format!("{reason:?}"),
            };
            assert_eq!(known, expected, "{name}");
        };
        use RecordType::{A, AAAA, MX, PTR};
        check("localhost.", A, "127.0.0.1");
        check("a.LOCALHOST.", AAAA, "::1");
        check("localhost.", MX, "NoRecords");
        check("localhost.example.", A, "ask");
        check("1.0.0.127.in-addr.arpa.", PTR, "localhost.");
        check("1.0.0.128.in-addr.arpa.", PTR, "ask");
        check("a.invalid.", MX, "NoSuchName");
        check("a.onion.", A, "NoSuchName");
        check("a.example.", A, "ask");
    }

    #[test]
    fn invalid_names_are_refused() {
        let check = |name: &str| assert!(candidates(name, 1, &[]).is_err(), "{name:?}");
        check("");
        check("a..b");
        check(&"a".repeat(64));
        check(&"a.".repeat(200));
        check("a b");
    }

    #[test]
    fn a_name_that_a_domain_makes_too_long_is_tried_alone() {
        let name = format!("{0}.{0}.{0}.{1}", "a".repeat(60), "b".repeat(50));
        let domain = parse(&"c".repeat(40)).expect("a name");
        let names = candidates(&name, 1, &[domain]).expect("a name");
        assert_eq!(names.len(), 1);
    }
}
