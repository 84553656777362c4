//! The information about a host that is available without querying a server, for connecting.

use std::net::IpAddr;

use hickory_resolver::proto::rr::{Name, RecordType};

use super::answer::IpAddresses;
use super::config::IpStrategy;
use super::error::Error;
use super::resolver::Resolver;

/// The way to find the addresses of a host.
#[derive(Debug)]
pub(crate) enum Plan {
    /// Known addresses, in order: a literal address, or an entry of the hosts file.
    Known(Vec<IpAddr>),
    /// The names to look up, one after the other.
    Names(Vec<FullName>),
}

/// A complete name, and the families to look up.
#[derive(Clone, Debug)]
pub(crate) struct FullName {
    name: Name,
    strategy: IpStrategy,
}

/// An address family, by its record type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressType(RecordType);

impl FullName {
    /// Returns the families to look up, the preferred one first.
    pub(crate) fn families(&self) -> impl Iterator<Item = AddressType> {
        families(self.strategy).iter().copied().map(AddressType)
    }
}

/// Returns the record types to look up, the preferred one first.
pub(super) fn families(strategy: IpStrategy) -> &'static [RecordType] {
    match strategy {
        IpStrategy::Ipv4Only => &[RecordType::A],
        IpStrategy::Ipv6Only => &[RecordType::AAAA],
        IpStrategy::Ipv4First => &[RecordType::A, RecordType::AAAA],
        IpStrategy::Ipv6First => &[RecordType::AAAA, RecordType::A],
    }
}

impl Resolver {
    pub(crate) async fn plan(&self, host: &str) -> Result<Plan, Error> {
        self.run(host, |core, host| async move {
            let ready = core.ready_for(&host, RecordType::A).await?;
            let strategy = ready.settings.strategy;
            if let Some(addresses) = ready.known(&host, families(strategy))? {
                return Ok(Plan::Known(addresses.into_iter().collect()));
            }
            let names = ready.candidates(&host, "A, AAAA")?.into_iter();
            Ok(Plan::Names(
                names.map(|name| FullName { name, strategy }).collect(),
            ))
        })
        .await
    }

    /// Looks up the addresses of one family for a full name. Errors show the name as the user gave
    /// it.
    pub(crate) async fn ask_family(
        &self,
        host: &str,
        name: &FullName,
        AddressType(family): AddressType,
    ) -> Result<IpAddresses, Error> {
        let full = name.name.clone();
        self.run(host, move |core, host| async move {
            let ready = core.ready_for(&host, family).await?;
            ready.ask_family(&host, &full, family).await
        })
        .await
    }
}
