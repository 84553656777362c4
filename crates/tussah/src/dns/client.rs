//! Questions to several servers, one after the other: each asked once, however many wait for the answer, which is kept.

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

/// Bound, in questions: how many a resolver has on the way at a time; more wait. Each has two descriptors at most (`SENDINGS_MAX`), so that
/// all of them stay well below the 1024 that systems give to a process by default.
const QUESTIONS_MAX: usize = 128;

/// Bound, in answers: how many are needed at most to come from a name to what it is an alias of.
const HOPS_MAX: usize = 8;

/// Bound, in bytes: how long an answer may be in memory to be kept, about fifty addresses; longer ones are asked for again. So a cache
/// of answers that servers make as long as they can takes 128 MiB, unless its builder says otherwise.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// Asks the servers of a resolver.
pub(super) struct Client {
    servers: Vec<Server>,
    order: ServerOrder,
    /// Which server is asked first, in turn.
    turn: AtomicUsize,
    attempts: usize,
    questions: Semaphore,
    /// `None` if nothing is to be kept.
    cache: Option<ResponseCache>,
    /// What is being asked for now.
    asking: Mutex<HashMap<Query, Asking>>,
}

/// A question on its way; polled by those who wait for it, and dropped with the last of them.
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

    /// The records that a full name has of a type, at least one, and for how many seconds they are valid.
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
        let what = "its aliases have no end".to_owned();
        Err(here(Reason::Malformed(what)))
    }

    /// An answer from the cache or from a server. One without records says that there are none.
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

    /// Keeps an answer as long as it is valid; one that is not valid for any time is for those who wait for it now.
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

    /// Asks each server, as often as is wanted; gives the first answer, or what the last one said.
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

/// About how much memory an answer takes.
fn memory_bytes(message: &Message) -> usize {
    let records = message.all_sections();
    let bytes = records.map(|record| {
        // The names and the data that are not in the record itself are about as long as they are on the way.
        let wire = record.to_bytes().map_or(usize::MAX, |bytes| bytes.len());
        wire.saturating_add(size_of::<Record>())
    });
    bytes.fold(0, usize::saturating_add)
}

/// One who waits for an answer.
struct Waiter<'a> {
    client: &'a Client,
    query: &'a Query,
    answer: Shared<Answering>,
}

impl<'a> Waiter<'a> {
    /// Joins those who wait already, or begins to ask.
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
        // Behind one that is over there may be a later one.
        if let Entry::Occupied(mut entry) = asking.entry(self.query.clone())
            && entry.get().answer.ptr_eq(&self.answer)
        {
            entry.get_mut().waiting -= 1;
            if entry.get().waiting == 0 || self.answer.peek().is_some() {
                over = Some(entry.remove());
            }
        }
        // Sockets are closed under no lock.
        mem::drop(asking);
        mem::drop(over);
    }
}
