//! Connecting to host names.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::connect::ConnectOptions;
use super::stream::TcpStream;
use crate::OpError;
use crate::dns::{self, Plan, Resolver};
use crate::io_error::context;
use crate::net::eyeballs::{ATTEMPT_DELAY, Eyeballs, Family};
use crate::net::race::{Lookup, Lost, race};
use crate::time::{add, now, timeout_at};

/// Bound, in seconds: the default timeout for connecting to a host, about as long as the system
/// tries a single address.
const LIMIT_SECONDS: u64 = 120;

/// Bound, in milliseconds: the minimum attempt delay (RFC 8305, section 5). Shorter delays are
/// increased to it.
const ATTEMPT_DELAY_MS_MIN: u64 = 10;

impl ConnectOptions {
    /// Sets the resolver for host names. Default: [`Resolver::current`].
    ///
    /// # Examples
    /// ```
    /// use tussah::dns::Resolver;
    /// use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let port = listener.local_addr()?.port();
    /// let resolver = Resolver::builder().no_hosts_file().build();
    /// TcpStream::builder().resolver(&resolver).connect(("localhost", port)).await?;
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn resolver(mut self, resolver: &Resolver) -> Self {
        self.resolver = Some(resolver.clone());
        self
    }

    /// Sets how long a connection attempt may run before the next attempt starts in parallel.
    /// Default: 250 ms; minimum: 10 ms (RFC 8305, section 5).
    pub fn attempt_delay(mut self, delay: Duration) -> Self {
        self.attempt_delay = Some(delay.max(Duration::from_millis(ATTEMPT_DELAY_MS_MIN)));
        self
    }

    pub(super) async fn connect_host(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let failed = |lost: Lost| ConnectError(lost).into_io(host, port);
        let limit = self.limit.unwrap_or(Duration::from_secs(LIMIT_SECONDS));
        let deadline = add(now(), limit);
        let resolver = self.resolver.clone().unwrap_or_else(Resolver::current);
        let plan = match timeout_at(deadline, resolver.plan(host)).await {
            Ok(Ok(plan)) => plan,
            Ok(Err(error)) => return Err(failed(Lost::of(error))),
            Err(_) => return Err(failed(Lost::late())),
        };
        let race = |lookups, known| self.race(deadline, limit, lookups, known);
        match &plan {
            Plan::Known(addresses) => {
                let known = addresses.iter().map(|ip| SocketAddr::new(*ip, port));
                race(Vec::new(), known.collect()).await.map_err(failed)
            }
            Plan::Names(names) => {
                let mut earlier = Vec::new();
                for name in names {
                    let lookups = lookups(&resolver, host, name, port);
                    let mut lost = match race(lookups, Vec::new()).await {
                        Ok(stream) => return Ok(stream),
                        Err(lost) => lost,
                    };
                    let next = lost.attempts.is_empty()
                        && !lost.timed_out
                        && lost.lookups.iter().all(dns::Error::allows_next);
                    earlier.append(&mut lost.lookups);
                    if !next {
                        lost.lookups = earlier;
                        return Err(failed(lost));
                    }
                }
                Err(failed(Lost {
                    lookups: earlier,
                    ..Lost::default()
                }))
            }
        }
    }

    /// Connects to the known addresses, preferred family first, and to those found by the lookups.
    async fn race(
        &self,
        deadline: Instant,
        limit: Duration,
        lookups: Vec<(Family, Lookup<'_>)>,
        known: Vec<SocketAddr>,
    ) -> Result<TcpStream, Lost> {
        let delay = self.attempt_delay.unwrap_or(ATTEMPT_DELAY);
        let mut eyeballs = Eyeballs::new(delay, deadline);
        let preferred = known.first().copied();
        let of_preferred =
            |to: &SocketAddr| preferred.is_some_and(|first| first.is_ipv6() == to.is_ipv6());
        let (first, second): (Vec<_>, Vec<_>) = known.into_iter().partition(of_preferred);
        for (family, addresses) in [(Family::Preferred, first), (Family::Other, second)] {
            if lookups.iter().all(|(asked, _)| *asked != family) {
                eyeballs.answer(now(), family, addresses);
            }
        }
        race(eyeballs, limit, lookups, |to| self.connect_one(to)).await
    }
}

fn lookups<'a>(
    resolver: &'a Resolver,
    host: &'a str,
    name: &'a dns::FullName,
    port: u16,
) -> Vec<(Family, Lookup<'a>)> {
    let places = [Family::Preferred, Family::Other];
    let families = places.into_iter().zip(name.families());
    families
        .map(|(place, family)| {
            let lookup: Lookup<'_> = Box::pin(async move {
                let addresses = resolver.ask_family(host, name, family).await?;
                Ok(addresses
                    .iter()
                    .map(|ip| SocketAddr::new(*ip, port))
                    .collect())
            });
            (place, lookup)
        })
        .collect()
}

impl Lost {
    fn of(error: dns::Error) -> Self {
        Self {
            lookups: vec![error],
            ..Self::default()
        }
    }

    fn late() -> Self {
        Self {
            timed_out: true,
            ..Self::default()
        }
    }
}

/// The reasons why connecting to a host failed: the error for each address and each lookup.
///
/// If an attempt to connect by name fails, the returned [`io::Error`] contains this error. The
/// [`io::Error`] has the kind `TimedOut` if the time limit was exceeded. Otherwise, the
/// [`io::Error`] has the same kind as the last attempt's error or, if no address was found, as the
/// [`dns::Error`].
///
/// # Examples
/// ```
/// use tussah::net::{ConnectError, TcpStream};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let error = TcpStream::connect("nosuch.invalid:80").await.expect_err("it does not exist");
/// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
/// assert_eq!(
///     error.to_string(),
///     "connect to nosuch.invalid:80: resolve nosuch.invalid (A, AAAA): no such name"
/// );
/// let error = ConnectError::of(&error).expect("it was by name");
/// assert_eq!(error.attempts().count(), 0);
/// assert!(error.lookups().iter().all(|error| error.is_not_found()));
/// # })).expect("no panic");
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct ConnectError(Lost);

impl ConnectError {
    /// Returns the `ConnectError` inside `error`, if there is one.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        let inside = OpError::of(error)?.source()?.downcast_ref::<io::Error>()?;
        inside.get_ref()?.downcast_ref()
    }

    /// Returns the addresses that were tried and their errors, in the order in which they failed.
    pub fn attempts(&self) -> impl Iterator<Item = (SocketAddr, &io::Error)> {
        self.0
            .attempts
            .iter()
            .map(|(address, error)| (*address, error))
    }

    /// Returns the errors of the lookups, if any.
    #[must_use]
    pub fn lookups(&self) -> &[dns::Error] {
        &self.0.lookups
    }

    /// Returns whether the time limit for the whole operation was exceeded.
    #[must_use]
    pub fn is_timed_out(&self) -> bool {
        self.0.timed_out
    }

    fn into_io(self, host: &str, port: u16) -> io::Error {
        let kind = self.kind();
        let to = format_args!("{host}:{port}").to_string();
        context(io::Error::new(kind, self), "connect to", to)
    }

    fn kind(&self) -> io::ErrorKind {
        let kind = match (self.0.timed_out, self.0.attempts.last()) {
            (true, _) => Some(io::ErrorKind::TimedOut),
            (false, Some((_, error))) => Some(error.kind()),
            (false, None) => {
                let worst = dns::Error::worst(&self.0.lookups);
                worst.map(|error| io::Error::from(error).kind())
            }
        };
        kind.unwrap_or(io::ErrorKind::Other)
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lost {
            lookups,
            attempts,
            timed_out,
        } = &self.0;
        let mut parts: Vec<_> = attempts
            .iter()
            .map(|(address, error)| format!("{address}: {error}"))
            .collect();
        // A missing address family is not worth reporting if the other family has addresses.
        let told = dns::Error::worst(lookups);
        let told = told.filter(|error| attempts.is_empty() || !error.is_not_found());
        parts.extend(told.map(|error| error.to_string()));
        if *timed_out && attempts.is_empty() {
            parts.push("the timeout elapsed".to_owned());
        }
        f.write_str(&parts.join("; "))
    }
}

impl Error for ConnectError {}
