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

use super::answer::{Addresses, Mx, Records, Srv, Txt};
use super::config::ResolverBuilder;
use super::core::Core;
use super::error::{Error, Reason};

/// Looks up names: in the file of hosts, in its cache, and by asking servers (a stub resolver: RFC 1034, section 5.3.1).
///
/// A clone is the same resolver with the same cache. [`Resolver::current`] is the one that connecting by name uses.
///
/// - Literal addresses, and names in `localhost` (RFC 6761, section 6.3), are answered at once; names in `invalid` never exist.
/// - A name in the file of hosts has the addresses that it has there, and no others.
/// - A name without a dot at its end is completed as resolv.conf(5) says. The next candidate is tried if one does not
///   exist, or has no such records, or if all servers fail or refuse; not if none answers.
/// - Answers are kept as long as their time to live says, and "no such name" as long as the zone says (RFC 2308, section 5).
/// - Equal questions at the same time are asked once; any number of lookups may go on, and at most 128 questions.
/// - A question is sent by UDP from a random port with a random number, and once more after a third of a second; by TCP if the
///   answer is too long. What comes from elsewhere, or answers another question, is ignored (RFC 5452, section 9). Of an answer
///   only what was asked for is believed. A server that says nothing, or nothing of use, is followed by the next one.
/// - The files are read once, by the first lookup; later changes need another resolver. There is no DNSSEC.
///
/// # Cancellation
/// Dropping the future of a lookup closes its sockets at once, unless somebody else waits for the same answer. Called from outside
/// of the resolver's runtime, a lookup runs as a thread there, which is aborted.
///
/// # Errors
/// All lookups fail with an [`Error`].
///
/// # Panics
/// Lookups from outside of the resolver's runtime panic if that is shut down.
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
    /// A resolver that does as the system says, in the runtime that the caller runs in. Its first lookup reads
    /// `/etc/resolv.conf` and `/etc/hosts`, on the blocking pool; what is missing is as resolv.conf(5) says by default.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it needs a runtime")]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// As [`new`](Self::new), with the files read when it is there.
    ///
    /// # Errors
    /// If the blocking pool is full. Files that are missing are no error.
    ///
    /// # Panics
    /// Outside of a runtime.
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

    /// A builder, for a resolver that does not do as the system says.
    pub fn builder() -> ResolverBuilder {
        ResolverBuilder::new()
    }

    /// The resolver of the runtime that the caller runs in, which all share who connect by name there; made as
    /// [`new`](Self::new) when it is first used.
    ///
    /// # Panics
    /// Outside of a runtime.
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

    /// The addresses of a name, of both families unless the builder said otherwise, which are asked for at the same time.
    ///
    /// # Errors
    /// See [`Resolver`]. What is found of one family is given also if asking for the other one fails.
    pub async fn lookup_ip(&self, name: &str) -> Result<Addresses, Error> {
        self.run(
            name,
            |core, name| async move { core.addresses(&name).await },
        )
        .await
    }

    /// The IPv4 addresses of a name (A records).
    ///
    /// # Errors
    /// See [`Resolver`].
    pub async fn lookup_a(&self, name: &str) -> Result<Addresses, Error> {
        self.one_family(name, RecordType::A).await
    }

    /// The IPv6 addresses of a name (AAAA records: RFC 3596).
    ///
    /// # Errors
    /// See [`Resolver`].
    pub async fn lookup_aaaa(&self, name: &str) -> Result<Addresses, Error> {
        self.one_family(name, RecordType::AAAA).await
    }

    /// Where a service is, as in `_imaps._tcp.example.com` (RFC 2782): by priority, and by weight, the heaviest first.
    /// Choosing at random by weight is left to the caller.
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

    /// Where mail for a domain goes, in the order of preference (RFC 5321, section 5.1).
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

    /// The texts of a name.
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

    /// The names of an address (PTR records: RFC 1035, section 3.5; RFC 3596, section 2.5), each with a dot at its end.
    /// Anybody can say that an address has any name: look up the addresses of the name before you trust it.
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

    async fn one_family(&self, name: &str, family: RecordType) -> Result<Addresses, Error> {
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

    /// Runs a lookup where its sockets and timers belong.
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

/// Waits for a lookup that runs as a thread of another runtime; aborts it when it is no longer wanted.
struct Elsewhere<T>(JoinHandle<T>);

impl<T> Future for Elsewhere<T> {
    /// `None`: its runtime has ended.
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
