//! Names.

use std::net::IpAddr;

use tussah::dns::Resolver;

use super::futures;

futures! {
    "dns/resolver::from_system_conf" () { Resolver::from_system_conf().await }
    "dns/resolver::lookup_ip" (resolver: Resolver, name: String) {
        let _ = resolver.lookup_ip("static").await;
        let _ = resolver.lookup_ip(&name).await;
    }
    "dns/resolver::lookup_a" (resolver: Resolver, name: String) {
        let _ = resolver.lookup_a("static").await;
        let _ = resolver.lookup_a(&name).await;
    }
    "dns/resolver::lookup_aaaa" (resolver: Resolver, name: String) {
        let _ = resolver.lookup_aaaa("static").await;
        let _ = resolver.lookup_aaaa(&name).await;
    }
    "dns/resolver::lookup_srv" (resolver: Resolver, name: String) {
        let _ = resolver.lookup_srv("static").await;
        let _ = resolver.lookup_srv(&name).await;
    }
    "dns/resolver::lookup_mx" (resolver: Resolver, name: String) {
        let _ = resolver.lookup_mx("static").await;
        let _ = resolver.lookup_mx(&name).await;
    }
    "dns/resolver::lookup_txt" (resolver: Resolver, name: String) {
        let _ = resolver.lookup_txt("static").await;
        let _ = resolver.lookup_txt(&name).await;
    }
    "dns/resolver::reverse" (resolver: Resolver, address: IpAddr) { resolver.reverse(address).await }
}
