//! A resolver with complete settings, which tries the candidates for a name in turn.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use async_lock::OnceCell;
use futures_util::future::join;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, Record, RecordType};

use super::answer::{IpAddresses, TTL_MAX};
use super::client::Client;
use super::config::{ResolverBuilder, Settings};
use super::error::{Error, Reason, type_name};
use super::names::candidates;
use super::plan::families;

/// A resolver without its runtime, so that a runtime can own it.
pub(super) struct Core {
    pub(super) config: ResolverBuilder,
    ready: OnceCell<Ready>,
}

/// A resolver whose settings have been read.
pub(super) struct Ready {
    pub(super) settings: Settings,
    client: Arc<Client>,
}

impl Core {
    pub(super) fn new(config: ResolverBuilder) -> Self {
        let ready = OnceCell::new();
        Self { config, ready }
    }

    /// Reads the files on first use.
    pub(super) async fn ready(&self) -> io::Result<&Ready> {
        let make = async || {
            let config = self.config.clone();
            let read = crate::try_spawn_blocking(move || Ready::new(config.read()));
            let read = read.map_err(|error| io::Error::other(error.to_string()))?;
            read.await.map_err(io::Error::other)
        };
        self.ready.get_or_try_init(make).await
    }

    pub(super) async fn ready_for(
        &self,
        name: &str,
        record_type: RecordType,
    ) -> Result<&Ready, Error> {
        self.ready().await.map_err(|error| {
            let reason = Reason::Io(Arc::new(error));
            Error::here(name, type_name(record_type), reason)
        })
    }

    pub(super) async fn addresses(&self, name: &str) -> Result<IpAddresses, Error> {
        let ready = self.ready_for(name, RecordType::A).await?;
        let families = families(ready.settings.strategy);
        let (first, second) = match *families {
            [first, second] => (first, second),
            _ => return self.family(name, families[0]).await,
        };
        if let Some(addresses) = ready.known(name, families)? {
            return Ok(addresses);
        }
        let mut failed = None;
        for full in ready.candidates(name, "A, AAAA")? {
            let both = join(
                ready.ask_family(name, &full, first),
                ready.ask_family(name, &full, second),
            );
            match both.await {
                (Ok(first), Ok(second)) => return Ok(first.join(second)),
                (Ok(addresses), Err(_)) | (Err(_), Ok(addresses)) => return Ok(addresses),
                (Err(one), Err(other)) => {
                    let goes_on = one.allows_next() && other.allows_next();
                    failed = Error::worst(failed.iter().chain(&[one, other]));
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        Err(failed.expect("a name has a candidate"))
    }

    pub(super) async fn family(
        &self,
        name: &str,
        family: RecordType,
    ) -> Result<IpAddresses, Error> {
        let ready = self.ready_for(name, family).await?;
        if let Some(addresses) = ready.known(name, &[family])? {
            return Ok(addresses);
        }
        let (records, ttl) = ready.search(name, family).await?;
        Ok(addresses_of(&records, ttl))
    }
}

impl Ready {
    fn new(settings: Settings) -> Self {
        let client = Arc::new(Client::new(&settings));
        Self { settings, client }
    }

    /// Returns the records that are known without asking: a literal address, or an entry of the
    /// hosts file.
    ///
    /// # Errors
    /// Returns an error if the file contains the name, but no address of these families. No server
    /// is asked in that case.
    pub(super) fn known(
        &self,
        name: &str,
        families: &[RecordType],
    ) -> Result<Option<IpAddresses>, Error> {
        if let Ok(address) = name.parse::<IpAddr>() {
            let family = match address {
                IpAddr::V4(_) => RecordType::A,
                IpAddr::V6(_) => RecordType::AAAA,
            };
            let wanted = families.contains(&family);
            return Ok(wanted.then(|| IpAddresses::new(vec![address], TTL_MAX)));
        }
        let Ok(full) = super::names::parse(name) else {
            return Ok(None);
        };
        let in_file = |family: RecordType| {
            let query = Query::query(full.clone(), family);
            let lookup = self.settings.hosts.lookup_static_host(&query)?;
            Some(addresses_of(lookup.answers(), TTL_MAX))
        };
        let found = families.iter().filter_map(|&family| in_file(family));
        let found = found.reduce(IpAddresses::join);
        let has_other = || {
            [RecordType::A, RecordType::AAAA]
                .into_iter()
                .any(|family| in_file(family).is_some())
        };
        if found.is_none() && has_other() {
            let asked = type_name(families[0]);
            return Err(Error::here(name, asked, Reason::NoRecords));
        }
        Ok(found)
    }

    pub(super) fn candidates(&self, name: &str, asked: &'static str) -> Result<Vec<Name>, Error> {
        let literal = name.parse::<IpAddr>().is_ok();
        let Settings { ndots, search, .. } = &self.settings;
        match candidates(name, *ndots, search) {
            _ if literal => Err(Error::here(name, asked, Reason::NoRecords)),
            Ok(names) => Ok(names),
            Err(what) => Err(Error::here(name, asked, Reason::NoName(what))),
        }
    }

    /// Returns the records of the first full name that has any.
    pub(super) async fn search(
        &self,
        name: &str,
        record_type: RecordType,
    ) -> Result<(Vec<Record>, u32), Error> {
        let mut failed = None;
        for full in self.candidates(name, type_name(record_type))? {
            match self.ask(name, &full, record_type).await {
                Ok(found) => return Ok(found),
                Err(error) => {
                    let goes_on = error.allows_next();
                    failed = Error::worst(failed.iter().chain(&[error]));
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        Err(failed.expect("a name has a candidate"))
    }

    pub(super) async fn ask_family(
        &self,
        name: &str,
        full: &Name,
        family: RecordType,
    ) -> Result<IpAddresses, Error> {
        let (records, ttl) = self.ask(name, full, family).await?;
        Ok(addresses_of(&records, ttl))
    }

    /// Returns the records of one full name, at least one, and their TTL in seconds.
    async fn ask(
        &self,
        name: &str,
        full: &Name,
        record_type: RecordType,
    ) -> Result<(Vec<Record>, u32), Error> {
        // Addresses of hosts have already been looked up. The file also contains the names of
        // addresses.
        if record_type == RecordType::PTR {
            let query = Query::query(full.clone(), record_type);
            if let Some(known) = self.settings.hosts.lookup_static_host(&query) {
                return Ok((known.answers().to_vec(), TTL_MAX));
            }
        }
        let found = self.client.lookup(full, record_type).await;
        found.map_err(|failure| Error::new(name, type_name(record_type), failure))
    }
}

fn addresses_of(records: &[Record], ttl: u32) -> IpAddresses {
    let addresses = records.iter().filter_map(|record| record.data.ip_addr());
    IpAddresses::new(addresses.collect(), ttl)
}
