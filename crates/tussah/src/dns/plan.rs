//! What is known of a host before anybody is asked, for those who connect to it.

use std::net::IpAddr;

use hickory_resolver::proto::rr::{Name, RecordType};

use super::answer::Addresses;
use super::config::IpStrategy;
use super::error::Error;
use super::resolver::Resolver;

/// How to come to the addresses of a host.
#[derive(Debug)]
pub(crate) enum Plan {
    /// They are known, in their order: a literal address, or a host of the file.
    Known(Vec<IpAddr>),
    /// These names are to be asked for, one after the other.
    Names(Vec<FullName>),
}

/// A complete name, and what is to be asked for.
#[derive(Clone, Debug)]
pub(crate) struct FullName {
    name: Name,
    strategy: IpStrategy,
}

/// A family of addresses, by the type of its records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressType(RecordType);

impl FullName {
    /// The families to ask for, the preferred one first.
    pub(crate) fn families(&self) -> impl Iterator<Item = AddressType> {
        families(self.strategy).iter().copied().map(AddressType)
    }
}

/// The types of records to ask for, the preferred one first.
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

    /// The addresses that a full name has of one family; errors call it as it was given.
    pub(crate) async fn ask_family(
        &self,
        host: &str,
        name: &FullName,
        AddressType(family): AddressType,
    ) -> Result<Addresses, Error> {
        let full = name.name.clone();
        self.run(host, move |core, host| async move {
            let ready = core.ready_for(&host, family).await?;
            ready.ask_family(&host, &full, family).await
        })
        .await
    }
}
