//! Which addresses a webhook may reach.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::time::timeout;

/// Addresses with a public form that belong to the host's own network: Azure's wire server. Those
/// of other clouds are link-local, private or behind carrier NAT.
const METADATA: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Networks of IPv4 that are not the public internet, by the number of leading bits.
const CLOSED_V4: [(Ipv4Addr, u32); 14] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, reserved and broadcast.
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// The part of IPv6 that is given out.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Networks in it that are not the public internet, or that carry an IPv4 address (Teredo, 6to4).
const CLOSED_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether the address belongs to the public internet. Loopback, private, link-local, multicast,
/// unspecified, carrier NAT, documentation and metadata addresses do not; nor do the forms of IPv6
/// that stand for an IPv4 address (mapped, NAT64, 6to4, Teredo), whichever it is.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let closed = CLOSED_V4.iter().any(|(network, bits)| {
                let mask = u32::MAX << (32 - bits);
                v4.to_bits() & mask == network.to_bits()
            });
            !closed && v4 != METADATA
        }
        IpAddr::V6(v6) => {
            let within = |(network, bits): &(Ipv6Addr, u32)| {
                let mask = u128::MAX << (128 - bits);
                v6.to_bits() & mask == network.to_bits()
            };
            within(&GLOBAL_V6) && !CLOSED_V6.iter().any(within)
        }
    }
}

/// Names as the system resolves them.
pub(super) struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Resolves names, and refuses those that lead to an address that is not public.
pub(super) struct Guard {
    allowed: HashSet<String>,
    names: Arc<dyn Resolve>,
    /// How long a name may take to resolve. It ends before the request does, so that a slow name
    /// server causes the same error as an unknown name.
    patience: Duration,
}

impl Guard {
    pub(super) fn new(allowed: Vec<String>, names: Arc<dyn Resolve>, patience: Duration) -> Self {
        let allowed = allowed.iter().map(|host| plain(host)).collect();
        Self {
            allowed,
            names,
            patience,
        }
    }

    fn allows(&self, host: &str) -> bool {
        self.allowed.contains(&plain(host))
    }

    /// Refuses a host that is an address and not a public one. It would never be resolved.
    pub(super) fn check_host(&self, host: &str) -> Result<(), String> {
        match plain(host).parse::<IpAddr>() {
            Ok(address) if !self.allows(host) && !is_public(address) => Err(format!(
                "`{host}` is not on the public internet; an administrator can add it to \
                 server.webhook_hosts"
            )),
            _ => Ok(()),
        }
    }
}

/// A host as it is compared: without brackets, a final dot or capitals.
fn plain(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// The one error for a name that is unknown, that resolves to an address that is not public, or that
/// does not resolve in time. Different errors would show which names the inner network knows.
fn unreachable(host: &str) -> String {
    format!(
        "`{host}` is unknown or not on the public internet; an administrator can add it to \
         server.webhook_hosts"
    )
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let is_allowed = self.allows(&host);
        let (found, patience) = (self.names.resolve(name), self.patience);
        Box::pin(async move {
            let found = timeout(patience, found).await;
            let found = found.map_err(Into::into).flatten();
            let found: Vec<SocketAddr> = match found {
                Err(error) if is_allowed => return Err(error),
                found => found.into_iter().flatten().collect(),
            };
            // One closed address among public ones is refused as well: the client chooses which of
            // them it uses.
            let is_public = !found.is_empty() && found.iter().all(|it| is_public(it.ip()));
            match is_allowed || is_public {
                true => Ok(Box::new(found.into_iter()) as Addrs),
                false => Err(unreachable(&host).into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        let closed = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "5f00::1",
        ];
        for address in closed {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        let open = [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "126.255.255.255",
            "128.0.0.1",
            "172.15.255.255",
            "172.32.0.1",
            "192.169.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450::1",
        ];
        for address in open {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
