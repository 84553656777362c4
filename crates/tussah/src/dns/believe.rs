//! Filtering of answers from servers: only requested records are trusted.

use hickory_resolver::proto::op::{Message, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::CNAME;
use hickory_resolver::proto::rr::{Name, RData, Record};

/// Bound, in aliases: the most that are followed within one answer. A longer chain counts as a loop
/// (as in BIND), and the lookup fails.
const ALIASES_MAX: usize = 16;

/// Bound, in records: the most that are taken from one answer, so that a single name cannot fill
/// the cache. A datagram has room for about 80.
const RECORDS_MAX: usize = 256;

/// Reduces an answer to the requested records, under the requested name.
///
/// The function follows the alias chain from the question on (RFC 1034, section 3.6.2), regardless
/// of the order of the records. Only the records of its last name remain. They are renamed to the
/// first name and get the shortest TTL of the chain. If there are none, an alias to the last name
/// remains, for the next question. Everything else is dropped, including the other sections,
/// because a server may only speak for the name it was asked about (RFC 5452, section 6). One
/// exception is an SOA of a zone above the name, which says how long a negative answer is valid
/// (RFC 2308, section 5).
///
/// Returns `None` if the aliases form a loop.
pub(super) fn believe(mut message: Message, query: &Query) -> Option<Message> {
    let answers = std::mem::take(&mut message.answers);
    let mut last = query.name().clone();
    let mut ttl = u32::MAX;
    let mut aliases = 0;
    while let Some((target, alias_ttl)) = alias(&answers, query, &last) {
        aliases += 1;
        if aliases > ALIASES_MAX || *target == *query.name() {
            return None;
        }
        ttl = ttl.min(alias_ttl);
        last = target.clone();
    }
    message.authorities.retain(|record| {
        matches!(record.data, RData::SOA(_))
            && (record.name.zone_of(&last) || record.name.zone_of(query.name()))
    });
    message.additionals.clear();
    let asked_for = answers.into_iter().filter(|record| {
        record.name == last
            && record.record_type() == query.query_type()
            && record.dns_class == query.query_class()
    });
    message.answers = asked_for
        .take(RECORDS_MAX)
        .map(|mut record| {
            record.name = query.name().clone();
            record.ttl = record.ttl.min(ttl);
            record
        })
        .collect();
    // NXDOMAIN refers to the last name of the chain (RFC 2308, section 2.1), so no further question
    // is needed.
    let exists = message.metadata.response_code != ResponseCode::NXDomain;
    if message.answers.is_empty() && aliases > 0 && exists {
        let data = RData::CNAME(CNAME(last));
        message.answers = vec![Record::from_rdata(query.name().clone(), ttl, data)];
    }
    Some(message)
}

/// Returns the target and TTL of an alias.
fn alias<'a>(answers: &'a [Record], query: &Query, name: &Name) -> Option<(&'a Name, u32)> {
    answers.iter().find_map(|record| match &record.data {
        RData::CNAME(CNAME(target))
            if record.name == *name && record.dns_class == query.query_class() =>
        {
            Some((target, record.ttl))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hickory_resolver::proto::op::OpCode;
    use hickory_resolver::proto::rr::RecordType;
    use hickory_resolver::proto::rr::rdata::{A, SOA};

    use super::*;

    fn name(text: &str) -> Name {
        Name::from_ascii(text).expect("a name")
    }

    fn a(owner: &str, last: u8, ttl: u32) -> Record {
        let address = Ipv4Addr::new(192, 0, 2, last);
        Record::from_rdata(name(owner), ttl, RData::A(A(address)))
    }

    fn cname(owner: &str, target: &str, ttl: u32) -> Record {
        Record::from_rdata(name(owner), ttl, RData::CNAME(CNAME(name(target))))
    }

    fn soa(zone: &str) -> Record {
        let data = SOA::new(name("ns."), name("admin."), 1, 2, 3, 4, 5);
        Record::from_rdata(name(zone), 60, RData::SOA(data))
    }

    fn query() -> Query {
        Query::query(name("www.example."), RecordType::A)
    }

    fn message(answers: Vec<Record>) -> Message {
        let mut message = Message::response(1, OpCode::Query);
        message.add_query(query());
        message.add_answers(answers);
        message
    }

    #[test]
    fn only_records_of_the_question_remain() {
        let check = |answers: Vec<Record>, expected: Option<Vec<Record>>| {
            let text = format!("{answers:?}");
            let believed = believe(message(answers), &query());
            assert_eq!(believed.map(|message| message.answers), expected, "{text}");
        };
        check(vec![], Some(vec![]));
        let plain = a("www.example.", 1, 60);
        check(vec![plain.clone()], Some(vec![plain.clone()]));
        // The case of names makes no difference.
        check(vec![a("WWW.Example.", 1, 60)], Some(vec![plain.clone()]));
        // Records of another name and of another type.
        let other = a("evil.example.", 66, 60);
        check(vec![other.clone()], Some(vec![]));
        check(
            vec![other.clone(), plain.clone()],
            Some(vec![plain.clone()]),
        );
        check(vec![soa("www.example.")], Some(vec![]));
        // A chain, in any order, with the TTL of its shortest link.
        let first = cname("www.example.", "b.example.", 30);
        let second = cname("b.example.", "c.example.", 20);
        let end = a("c.example.", 1, 90);
        let joined = Some(vec![a("www.example.", 1, 20)]);
        check(
            vec![first.clone(), second.clone(), end.clone()],
            joined.clone(),
        );
        check(vec![end, other, second.clone(), first.clone()], joined);
        // A chain that leads elsewhere counts as one alias.
        let shorter = cname("www.example.", "c.example.", 20);
        check(vec![first, second], Some(vec![shorter]));
        // An address beside an alias is of no use (RFC 1034, section 3.6.2: no other record may
        // stand beside an alias).
        let alias = cname("www.example.", "b.example.", 30);
        check(vec![plain, alias.clone()], Some(vec![alias.clone()]));
        // Loops of aliases.
        check(vec![cname("www.example.", "www.example.", 1)], None);
        check(
            vec![alias.clone(), cname("b.example.", "www.example.", 1)],
            None,
        );
        check(vec![alias, cname("b.example.", "b.example.", 1)], None);
    }

    #[test]
    fn an_alias_of_nothing_is_followed_no_further() {
        let mut answer = message(vec![cname("www.example.", "b.example.", 30)]);
        answer.metadata.response_code = ResponseCode::NXDomain;
        let believed = believe(answer, &query()).expect("no circle");
        assert!(believed.answers.is_empty());
    }

    #[test]
    fn other_sections_say_only_how_long_nothing_is_there() {
        let mut answer = message(vec![]);
        answer.add_authority(soa("example."));
        answer.add_authority(soa("elsewhere."));
        answer.add_authority(a("www.example.", 66, 60));
        answer.add_additional(a("www.example.", 67, 60));
        let believed = believe(answer, &query()).expect("no circle");
        assert_eq!(believed.authorities, [soa("example.")]);
        assert!(believed.additionals.is_empty() && believed.answers.is_empty());
    }

    #[test]
    fn an_answer_is_not_endless() {
        let many = (0..2000u32).map(|number| a("www.example.", number as u8, 60));
        let believed = believe(message(many.collect()), &query()).expect("no circle");
        assert_eq!(believed.answers.len(), RECORDS_MAX);
    }
}
