//! Looking up names.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hickory_resolver::proto::rr::{Name, RData, RecordType};
use tussah_core::{Handle, JoinHandle};

use super::answer::{IpAddresses, Mx, Records, Srv, Txt};
use super::config::ResolverBuilder;
use super::core::Core;
use super::error::{Error, Reason};

/// A DNS stub resolver (RFC 1034, section 5.3.1). It looks up names in the hosts file and in its
/// cache, and otherwise queries servers.
///
/// Clones share one cache. Functions that connect to a host name use [`Resolver::current`].
///
/// - Literal addresses and names in the domain `localhost` (RFC 6761, section 6.3) are resolved
///   without a server. Names in the domain `invalid` never exist.
/// - A name in the hosts file has only the addresses listed there.
/// - A name without a final dot is completed as described in resolv.conf(5), and may thus have
///   several candidate names. If a candidate does not exist or has no records of the requested
///   type, the resolver tries the next candidate. The resolver also tries the next candidate if the
///   last server that it queried reports a failure or refuses to answer. If the last server does
///   not answer, or its answer is unusable, the resolver tries no further candidate.
/// - Answers are cached for their TTL, and negative answers for the time that the zone specifies
///   (RFC 2308, section 5).
/// - Concurrent lookups that ask the same question share one query. The number of lookups is
///   unlimited; at most 128 queries are in flight.
/// - A query is sent over UDP from a random port with a random ID, and sent again if no answer
///   arrives within a third of a second. If the answer is truncated, the query is repeated over
///   TCP. Responses that come from other addresses or answer other queries are ignored (RFC 5452,
///   section 9). Only the requested records of an answer are used. If a server does not answer,
///   reports a failure, refuses to answer, or sends an unusable answer, the next server is queried.
/// - The first lookup reads the configuration files. To apply later changes to these files, create
///   a new resolver. DNSSEC is not supported.
///
/// # Cancellation
/// Dropping the future of a lookup closes its sockets immediately, unless another lookup is waiting
/// for the same answer. A lookup from outside the resolver's runtime runs as a thread in the
/// resolver's runtime; dropping the future of the lookup aborts this thread.
///
/// # Errors
/// All lookups return [`Error`].
///
/// # Panics
/// A lookup outside the resolver's runtime panics if that runtime is shutting down or has shut
/// down.
///
/// # Examples
/// ```
/// use tussah::dns::Resolver;
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let resolver = Resolver::new();
/// let addresses = resolver.lookup_ip("localhost").await?;
/// assert!(addresses.iter().all(|address| address.is_loopback()));
/// # Ok::<_, tussah::dns::Error>(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct Resolver {
    core: Arc<Core>,
    handle: Handle,
}

impl Resolver {
    /// Creates a resolver with the system's settings, in the current runtime. The resolver's first
    /// lookup reads `/etc/resolv.conf` and `/etc/hosts` on the blocking pool. Missing settings get
    /// the defaults of resolv.conf(5).
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it needs a runtime")]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Creates a resolver, as [`new`](Self::new) does, and reads the configuration files
    /// immediately.
    ///
    /// # Errors
    /// Returns an error if the blocking pool is full. Missing files are not an error.
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let resolver = tussah::dns::Resolver::from_system_conf().await?;
    /// assert!(!resolver.lookup_ip("localhost").await?.as_slice().is_empty());
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn from_system_conf() -> io::Result<Self> {
        let resolver = Self::new();
        resolver.core.ready().await?;
        Ok(resolver)
    }

    /// Creates a builder for a resolver with other settings.
    pub fn builder() -> ResolverBuilder {
        ResolverBuilder::new()
    }

    /// Returns the current runtime's shared resolver, which also resolves host names for
    /// connections. This resolver is created with [`new`](Self::new) when it is first used.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let addresses = tussah::dns::Resolver::current().lookup_ip("localhost").await?;
    /// assert!(addresses.iter().all(|address| address.is_loopback()));
    /// # Ok::<_, tussah::dns::Error>(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn current() -> Self {
        let handle = Handle::current();
        let core = handle.extension(|| Core::new(Self::builder()));
        Self { core, handle }
    }

    pub(super) fn with_config(config: ResolverBuilder, handle: &Handle) -> Self {
        Self {
            core: Arc::new(Core::new(config)),
            handle: handle.clone(),
        }
    }

    /// Looks up the addresses of a name. By default, IPv4 and IPv6 addresses are looked up in
    /// parallel.
    ///
    /// # Errors
    /// See [`Resolver`]. If the lookup of only one family fails, the addresses of the other family
    /// are returned.
    pub async fn lookup_ip(&self, name: &str) -> Result<IpAddresses, Error> {
        self.run(
            name,
            |core, name| async move { core.addresses(&name).await },
        )
        .await
    }

    /// Looks up the IPv4 addresses of a name (A records).
    ///
    /// # Errors
    /// See [`Resolver`].
    pub async fn lookup_a(&self, name: &str) -> Result<IpAddresses, Error> {
        self.one_family(name, RecordType::A).await
    }

    /// Looks up the IPv6 addresses of a name (AAAA records: RFC 3596).
    ///
    /// # Errors
    /// See [`Resolver`].
    pub async fn lookup_aaaa(&self, name: &str) -> Result<IpAddresses, Error> {
        self.one_family(name, RecordType::AAAA).await
    }

    /// Looks up a service, such as `_imaps._tcp.example.com` (RFC 2782). Returns the records sorted
    /// by priority and, for equal priorities, by decreasing weight. The caller must make the
    /// weighted random choice among records of equal priority.
    ///
    /// # Errors
    /// See [`Resolver`].
    pub async fn lookup_srv(&self, name: &str) -> Result<Records<Srv>, Error> {
        let records = self
            .records(name, RecordType::SRV, |data| match data {
                RData::SRV(srv) => Some(Srv {
                    priority: srv.priority,
                    weight: srv.weight,
                    port: srv.port,
                    target: srv.target.to_ascii(),
                }),
                _ => None,
            })
            .await?;
        Ok(records.sorted_by_key(|srv| (srv.priority, u16::MAX - srv.weight)))
    }

    /// Looks up the mail servers of a domain, in order of preference (RFC 5321, section 5.1).
    ///
    /// # Errors
    /// See [`Resolver`].
    pub async fn lookup_mx(&self, name: &str) -> Result<Records<Mx>, Error> {
        let records = self
            .records(name, RecordType::MX, |data| match data {
                RData::MX(mx) => Some(Mx {
                    preference: mx.preference,
                    exchange: mx.exchange.to_ascii(),
                }),
                _ => None,
            })
            .await?;
        Ok(records.sorted_by_key(|mx| mx.preference))
    }

    /// Looks up the TXT records of a name.
    ///
    /// # Errors
    /// See [`Resolver`].
    pub async fn lookup_txt(&self, name: &str) -> Result<Records<Txt>, Error> {
        self.records(name, RecordType::TXT, |data| match data {
            RData::TXT(txt) => Some(Txt {
                strings: txt.txt_data.iter().map(|text| text.to_vec()).collect(),
            }),
            _ => None,
        })
        .await
    }

    /// Looks up the host names of an IP address (PTR records: RFC 1035, section 3.5; RFC 3596,
    /// section 2.5), each with a final dot. The owner of an address can claim any name. Before you
    /// trust a name, check that it resolves to the address.
    ///
    /// # Errors
    /// See [`Resolver`].
    pub async fn reverse(&self, address: IpAddr) -> Result<Records<String>, Error> {
        let name = Name::from(address).to_ascii();
        self.records(&name, RecordType::PTR, |data| match data {
            RData::PTR(name) => Some(name.to_ascii()),
            _ => None,
        })
        .await
    }

    async fn one_family(&self, name: &str, family: RecordType) -> Result<IpAddresses, Error> {
        self.run(name, move |core, name| async move {
            core.family(&name, family).await
        })
        .await
    }

    async fn records<T: Send + 'static>(
        &self,
        name: &str,
        record_type: RecordType,
        parse: fn(&RData) -> Option<T>,
    ) -> Result<Records<T>, Error> {
        self.run(name, move |core, name| async move {
            let ready = core.ready_for(&name, record_type).await?;
            let (records, ttl) = ready.search(&name, record_type).await?;
            let parsed = records.iter().filter_map(|record| parse(&record.data));
            Ok(Records::new(parsed.collect(), ttl))
        })
        .await
    }

    /// Runs a lookup in the runtime of its sockets and timers.
    pub(super) async fn run<T, F>(
        &self,
        name: &str,
        lookup: impl FnOnce(Arc<Core>, String) -> F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let lookup = lookup(self.core.clone(), name.to_owned());
        if Handle::try_current().is_ok_and(|here| here == self.handle) {
            return lookup.await;
        }
        let ended = || {
            let error = io::Error::other("the runtime is shut down");
            Error::here(name, "any", Reason::Io(Arc::new(error)))
        };
        Elsewhere(self.handle.spawn(lookup))
            .await
            .unwrap_or_else(|| Err(ended()))
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver")
            .field("config", &self.core.config)
            .finish_non_exhaustive()
    }
}

/// Waits for a lookup in another runtime. Aborts it when dropped.
struct Elsewhere<T>(JoinHandle<T>);

impl<T> Future for Elsewhere<T> {
    /// `None` if its runtime has ended.
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        match ready!(Pin::new(&mut self.0).poll(context)) {
            Ok(output) => Poll::Ready(Some(output)),
            Err(error) if error.is_panic() => error.resume(),
            Err(_) => Poll::Ready(None),
        }
    }
}

impl<T> Drop for Elsewhere<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
