//! What `wg show` and `wg showconf` print.

use super::Key;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

/// A device as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceView {
    /// Its name.
    pub name: String,
    /// Its private and its public key.
    pub identity: Option<(Key, Key)>,
    /// Its port; 0: it has none yet.
    pub port: u16,
    /// Its mark; 0: none.
    pub fwmark: u32,
    /// Its peers, in the order they came.
    pub peers: Vec<PeerView>,
}

/// A peer as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerView {
    /// Its public key.
    pub key: Key,
    /// Its key shared before.
    pub psk: Option<Key>,
    /// Where it is.
    pub endpoint: Option<SocketAddr>,
    /// What it may send, and what is sent to it.
    pub allowed: Vec<(IpAddr, u8)>,
    /// When the last handshake was: seconds since 1970, and how many seconds ago.
    pub handshake: Option<(i64, u64)>,
    /// Bytes received, sent.
    pub transfer: (u64, u64),
    /// Seconds between keepalives; 0: off.
    pub keepalive: u16,
}

/// What of a device is asked for (`ugly_print`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// `public-key`.
    PublicKey,
    /// `private-key`.
    PrivateKey,
    /// `listen-port`.
    ListenPort,
    /// `fwmark`.
    Fwmark,
    /// `peers`.
    Peers,
    /// `preshared-keys`.
    PresharedKeys,
    /// `endpoints`.
    Endpoints,
    /// `allowed-ips`.
    AllowedIps,
    /// `latest-handshakes`.
    LatestHandshakes,
    /// `transfer`.
    Transfer,
    /// `persistent-keepalive`.
    PersistentKeepalive,
}

impl View {
    /// By the word that asks for it.
    pub fn named(word: &str) -> Option<View> {
        Some(match word {
            "public-key" => View::PublicKey,
            "private-key" => View::PrivateKey,
            "listen-port" => View::ListenPort,
            "fwmark" => View::Fwmark,
            "peers" => View::Peers,
            "preshared-keys" => View::PresharedKeys,
            "endpoints" => View::Endpoints,
            "allowed-ips" => View::AllowedIps,
            "latest-handshakes" => View::LatestHandshakes,
            "transfer" => View::Transfer,
            "persistent-keepalive" => View::PersistentKeepalive,
            _ => return None,
        })
    }
}

fn some(key: Option<&Key>) -> String {
    key.map_or_else(|| "(none)".to_owned(), Key::text)
}

fn place(endpoint: Option<SocketAddr>) -> String {
    endpoint.map_or_else(|| "(none)".to_owned(), |e| e.to_string())
}

fn off_or(number: u16) -> String {
    if number == 0 { "off".to_owned() } else { number.to_string() }
}

fn mark(fwmark: u32) -> String {
    if fwmark == 0 { "off".to_owned() } else { format!("{fwmark:#x}") }
}

fn prefixes(peer: &PeerView, between: &str) -> String {
    let all: Vec<String> = peer.allowed.iter().map(|(ip, len)| format!("{ip}/{len}")).collect();
    if all.is_empty() { "(none)".to_owned() } else { all.join(between) }
}

/// A span in words: `1 minute, 3 seconds`.
fn span(seconds: u64) -> String {
    let parts = [
        (seconds / (365 * 86_400), "year"),
        (seconds % (365 * 86_400) / 86_400, "day"),
        (seconds % 86_400 / 3600, "hour"),
        (seconds % 3600 / 60, "minute"),
        (seconds % 60, "second"),
    ];
    let words = parts.iter().filter(|(n, _)| *n > 0);
    let words: Vec<String> =
        words.map(|(n, unit)| format!("{n} {unit}{}", if *n == 1 { "" } else { "s" })).collect();
    words.join(", ")
}

fn bytes(n: u64) -> String {
    const K: f64 = 1024.0;
    let size = n as f64;
    match n {
        0..1024 => format!("{n} B"),
        1024..0x10_0000 => format!("{:.2} KiB", size / K),
        0x10_0000..0x4000_0000 => format!("{:.2} MiB", size / (K * K)),
        0x4000_0000..0x100_0000_0000 => format!("{:.2} GiB", size / (K * K * K)),
        _ => format!("{:.2} TiB", size / (K * K * K) / K),
    }
}

/// `wg show DEVICE`, for people. Those whose handshake was last come first.
pub fn pretty(d: &DeviceView, out: &mut String) {
    let _ = writeln!(out, "interface: {}", d.name);
    if let Some((_, public)) = &d.identity {
        let _ = writeln!(out, "  public key: {}\n  private key: (hidden)", public.text());
    }
    if d.port != 0 {
        let _ = writeln!(out, "  listening port: {}", d.port);
    }
    if d.fwmark != 0 {
        let _ = writeln!(out, "  fwmark: {:#x}", d.fwmark);
    }
    let mut peers: Vec<&PeerView> = d.peers.iter().collect();
    peers.sort_by_key(|p| std::cmp::Reverse(p.handshake.map(|h| h.0)));
    for p in peers {
        let _ = writeln!(out, "\npeer: {}", p.key.text());
        if p.psk.is_some() {
            out.push_str("  preshared key: (hidden)\n");
        }
        if let Some(endpoint) = p.endpoint {
            let _ = writeln!(out, "  endpoint: {endpoint}");
        }
        let _ = writeln!(out, "  allowed ips: {}", prefixes(p, ", "));
        match p.handshake {
            Some((_, 0)) => out.push_str("  latest handshake: Now\n"),
            Some((_, ago)) => {
                let _ = writeln!(out, "  latest handshake: {} ago", span(ago));
            }
            None => {}
        }
        if p.transfer != (0, 0) {
            let _ =
                writeln!(out, "  transfer: {} received, {} sent", bytes(p.transfer.0), bytes(p.transfer.1));
        }
        if p.keepalive != 0 {
            let _ = writeln!(out, "  persistent keepalive: every {}", span(p.keepalive.into()));
        }
    }
}

/// `wg show DEVICE dump`; `named` for `wg show all dump`, with the device's name before each line.
pub fn dump(d: &DeviceView, named: bool, out: &mut String) {
    let name = if named { format!("{}\t", d.name) } else { String::new() };
    let keys = d.identity.as_ref();
    let (private, public) = (some(keys.map(|k| &k.0)), some(keys.map(|k| &k.1)));
    let _ = writeln!(out, "{name}{private}\t{public}\t{}\t{}", d.port, mark(d.fwmark));
    for p in &d.peers {
        let _ = writeln!(
            out,
            "{name}{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            p.key.text(),
            some(p.psk.as_ref()),
            place(p.endpoint),
            prefixes(p, ","),
            p.handshake.map_or(0, |h| h.0),
            p.transfer.0,
            p.transfer.1,
            off_or(p.keepalive)
        );
    }
}

/// `wg show DEVICE WORD`; `named` as for [`dump`].
pub fn field(d: &DeviceView, what: View, named: bool, out: &mut String) {
    let name = if named { format!("{}\t", d.name) } else { String::new() };
    let own = match what {
        View::PublicKey => Some(some(d.identity.as_ref().map(|k| &k.1))),
        View::PrivateKey => Some(some(d.identity.as_ref().map(|k| &k.0))),
        View::ListenPort => Some(d.port.to_string()),
        View::Fwmark => Some(mark(d.fwmark)),
        _ => None,
    };
    if let Some(own) = own {
        let _ = writeln!(out, "{name}{own}");
        return;
    }
    for p in &d.peers {
        let value = match what {
            View::PresharedKeys => some(p.psk.as_ref()),
            View::Endpoints => place(p.endpoint),
            View::AllowedIps => prefixes(p, " "),
            View::LatestHandshakes => p.handshake.map_or(0, |h| h.0).to_string(),
            View::Transfer => format!("{}\t{}", p.transfer.0, p.transfer.1),
            View::PersistentKeepalive => off_or(p.keepalive),
            _ => {
                let _ = writeln!(out, "{name}{}", p.key.text());
                continue;
            }
        };
        let _ = writeln!(out, "{name}{}\t{value}", p.key.text());
    }
}

/// `wg showconf DEVICE`.
pub fn showconf(d: &DeviceView, out: &mut String) {
    out.push_str("[Interface]\n");
    if d.port != 0 {
        let _ = writeln!(out, "ListenPort = {}", d.port);
    }
    if d.fwmark != 0 {
        let _ = writeln!(out, "FwMark = {:#x}", d.fwmark);
    }
    if let Some((private, _)) = &d.identity {
        let _ = writeln!(out, "PrivateKey = {}", private.text());
    }
    out.push('\n');
    for (n, p) in d.peers.iter().enumerate() {
        if n > 0 {
            out.push('\n');
        }
        let _ = writeln!(out, "[Peer]\nPublicKey = {}", p.key.text());
        if let Some(psk) = &p.psk {
            let _ = writeln!(out, "PresharedKey = {}", psk.text());
        }
        if !p.allowed.is_empty() {
            let _ = writeln!(out, "AllowedIPs = {}", prefixes(p, ", "));
        }
        if let Some(endpoint) = p.endpoint {
            let _ = writeln!(out, "Endpoint = {endpoint}");
        }
        if p.keepalive != 0 {
            let _ = writeln!(out, "PersistentKeepalive = {}", p.keepalive);
        }
    }
}
