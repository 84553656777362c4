//! Queries to several servers in turn. Identical queries are sent only once, and answers are
//! cached.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_lock::Semaphore;
use futures_util::future::{FutureExt as _, Shared};
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{DnsResponse, Message, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::CNAME;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use hickory_resolver::proto::serialize::binary::BinEncodable as _;
use hickory_resolver::{ResponseCache, TtlConfig};

use super::config::{ServerOrder, Settings};
use super::error::{Failure, Reason};
use super::exchange::Server;
use super::names::special;
use crate::time::now;

/// Bound, in questions: the most that a resolver has in flight. Further questions wait. Each uses
/// at most two descriptors (`SENDINGS_MAX`), so all of them stay well below the usual limit of 1024
/// per process.
const QUESTIONS_MAX: usize = 128;

/// Bound, in answers: the most that are requested to resolve a chain of aliases. A lookup that
/// would need more fails.
const HOPS_MAX: usize = 8;

/// Bound, in bytes: the largest answer in memory that is cached, about fifty addresses. Larger
/// answers are requested again. A full cache of such answers takes 128 MiB at the default cache
/// size.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// A client that queries the servers of a resolver.
pub(super) struct Client {
    servers: Vec<Server>,
    order: ServerOrder,
    /// The number of queries, for choosing the first server in rotation.
    turn: AtomicUsize,
    attempts: usize,
    questions: Semaphore,
    /// `None` if caching is disabled.
    cache: Option<ResponseCache>,
    /// The questions in flight.
    asking: Mutex<HashMap<Query, Asking>>,
}

/// A question in flight. Its waiters poll it, and the last one drops it.
struct Asking {
    answer: Shared<Answering>,
    waiting: usize,
}

type Answering = Pin<Box<dyn Future<Output = Result<Message, Failure>> + Send>>;

impl Client {
    pub(super) fn new(settings: &Settings) -> Self {
        let timeout = settings.timeout;
        let servers = settings.servers.iter();
        let kept = settings.cache_size;
        Self {
            servers: servers
                .map(|&address| Server { address, timeout })
                .collect(),
            order: settings.order,
            turn: AtomicUsize::new(0),
            attempts: settings.attempts,
            questions: Semaphore::new(QUESTIONS_MAX),
            cache: (kept > 0).then(|| ResponseCache::new(kept, TtlConfig::default())),
            asking: Mutex::default(),
        }
    }

    /// Returns the records of one type for a full name, at least one, and their validity in
    /// seconds.
    pub(super) async fn lookup(
        self: &Arc<Self>,
        name: &Name,
        record_type: RecordType,
    ) -> Result<(Vec<Record>, u32), Failure> {
        let here = |reason| Failure {
            server: None,
            reason,
        };
        let mut query = Query::query(name.clone(), record_type);
        let mut ttl = u32::MAX;
        for _ in 0..HOPS_MAX {
            if let Some(known) = special(query.name(), record_type) {
                return known.map(|record| (vec![record], ttl)).map_err(here);
            }
            let answer = self.answer(&query).await?;
            ttl = answer.answers.iter().map(|it| it.ttl).fold(ttl, u32::min);
            match answer.answers.first().map(|record| &record.data) {
                Some(RData::CNAME(CNAME(target))) => query.set_name(target.clone()),
                Some(_) => return Ok((answer.answers, ttl)),
                None if answer.metadata.response_code == ResponseCode::NXDomain => {
                    return Err(here(Reason::NoSuchName));
                }
                None => return Err(here(Reason::NoRecords)),
            };
        }
        let what = "the chain of aliases is too long".to_owned();
        Err(here(Reason::Malformed(what)))
    }

    /// Returns an answer from the cache or from a server. An answer without records means that none
    /// exist.
    async fn answer(self: &Arc<Self>, query: &Query) -> Result<Message, Failure> {
        if let Some(kept) = self.kept(query) {
            return Ok(kept);
        }
        let waiter = Waiter::new(self, query);
        waiter.answer.clone().await
    }

    fn asking(&self) -> MutexGuard<'_, HashMap<Query, Asking>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self, query: &Query) -> Option<Message> {
        match self.cache.as_ref()?.get(query, now())? {
            Ok(message) => Some(message),
            Err(NetError::Dns(DnsError::NoRecordsFound(none))) => {
                let mut message = Message::query();
                message.metadata.response_code = none.response_code;
                Some(message)
            }
            Err(_) => None,
        }
    }

    /// Caches an answer for as long as it is valid. An answer with a TTL of 0 goes only to the
    /// current waiters.
    fn keep(&self, query: &Query, message: &Message) {
        let Some(cache) = &self.cache else { return };
        if memory_bytes(message) > KEPT_BYTES_MAX {
            return;
        }
        if let Some(ttl) = message.answers.iter().map(|record| record.ttl).min() {
            if ttl > 0 {
                cache.insert(query.clone(), Ok(message.clone()), now());
            }
            return;
        }
        let response = DnsResponse::from_message(message.clone()).map(DnsError::from_response);
        if let Ok(Err(none)) = response
            && let DnsError::NoRecordsFound(found) = &none
            && found.negative_ttl.is_some_and(|ttl| ttl > 0)
        {
            cache.insert(query.clone(), Err(none.into()), now());
        }
    }

    /// Asks each server, as often as configured. Returns the first answer, or the last failure.
    async fn ask(&self, query: &Query) -> Result<Message, Failure> {
        let _place = self.questions.acquire().await;
        let first = match self.order {
            ServerOrder::Listed => 0,
            ServerOrder::Rotate => self.turn.fetch_add(1, Ordering::Relaxed),
        };
        let count = self.servers.len();
        let mut failure = None;
        for _ in 0..self.attempts {
            for place in 0..count {
                let server = self.servers[(first % count + place) % count];
                match server.ask(query).await {
                    Ok(message) => {
                        self.keep(query, &message);
                        return Ok(message);
                    }
                    Err(error) => failure = Some(error),
                }
            }
        }
        Err(failure.expect("there is a server, which is asked at least once"))
    }
}

/// Estimates the memory that an answer takes.
fn memory_bytes(message: &Message) -> usize {
    let records = message.all_sections();
    let bytes = records.map(|record| {
        // The names and data outside of the record are about as long as on the wire.
        let wire = record.to_bytes().map_or(usize::MAX, |bytes| bytes.len());
        wire.saturating_add(size_of::<Record>())
    });
    bytes.fold(0, usize::saturating_add)
}

/// A waiter for an answer.
struct Waiter<'a> {
    client: &'a Client,
    query: &'a Query,
    answer: Shared<Answering>,
}

impl<'a> Waiter<'a> {
    /// Joins the existing waiters, or sends the question.
    fn new(client: &'a Arc<Client>, query: &'a Query) -> Self {
        let mut asking = client.asking();
        let asking = match asking.entry(query.clone()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let (client, query) = (client.clone(), query.clone());
                let answer: Answering = Box::pin(async move { client.ask(&query).await });
                entry.insert(Asking {
                    answer: answer.shared(),
                    waiting: 0,
                })
            }
        };
        asking.waiting += 1;
        let answer = asking.answer.clone();
        Self {
            client,
            query,
            answer,
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut asking = self.client.asking();
        let mut over = None;
        // A later question may have replaced a question that has ended.
        if let Entry::Occupied(mut entry) = asking.entry(self.query.clone())
            && entry.get().answer.ptr_eq(&self.answer)
        {
            entry.get_mut().waiting -= 1;
            if entry.get().waiting == 0 || self.answer.peek().is_some() {
                over = Some(entry.remove());
            }
        }
        // Close sockets without holding a lock.
        mem::drop(asking);
        mem::drop(over);
    }
}
