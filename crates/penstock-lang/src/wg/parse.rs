//! What is asked of a device, in the words of `wg set` and in its configuration files.

use super::{Key, PeerSet, Set};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What was read, and the warnings on the way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Configured {
    /// What is asked.
    pub set: Set,
    /// Warnings, a line each.
    pub warnings: String,
}

/// `config_read_cmd`: the words behind `wg set DEVICE`. `read` gives a key file's text, or says why not.
///
/// # Errors
/// What `wg` prints; its exit code is 1.
pub fn set(
    words: &[&str],
    read: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Configured, String> {
    let mut out = Configured::default();
    let mut rest = words;
    while let Some((&word, behind)) = rest.split_first() {
        let (set, value) = (&mut out.set, behind.first().copied());
        let taken = match (word, value, set.peers.last_mut()) {
            ("listen-port", Some(v), None) => {
                set.listen_port = Some(port(v)?);
                2
            }
            ("fwmark", Some(v), None) => {
                set.fwmark = Some(fwmark(v)?);
                2
            }
            ("private-key", Some(v), None) => {
                set.private_key = Some(key_file(&read(v)?)?);
                2
            }
            ("peer", Some(v), _) => {
                set.peers.push(PeerSet::new(key(v)?));
                2
            }
            ("remove", _, Some(peer)) => {
                peer.remove = true;
                1
            }
            ("endpoint", Some(v), Some(peer)) => {
                peer.endpoint = Some(endpoint(v)?);
                2
            }
            ("allowed-ips", Some(v), Some(peer)) => {
                let line: String = v.chars().filter(|c| !c.is_ascii_whitespace()).collect();
                allowed_ips(peer, &line, &mut out.warnings)?;
                2
            }
            ("persistent-keepalive", Some(v), Some(peer)) => {
                peer.persistent_keepalive = Some(keepalive(v)?);
                2
            }
            ("preshared-key", Some(v), Some(peer)) => {
                peer.preshared_key = Some(key_file(&read(v)?)?);
                2
            }
            _ => return Err(format!("Invalid argument: {word}\n")),
        };
        rest = &rest[taken..];
    }
    Ok(out)
}

/// `config_read_line` for each line of a file. `append`: what the file does not say stays as it is, and so do other peers.
///
/// # Errors
/// What `wg` prints; its exit code is 1.
pub fn config(text: &str, append: bool) -> Result<Configured, String> {
    enum Section {
        None,
        Interface,
        Peer,
    }
    let mut out = Configured::default();
    if !append {
        let set = &mut out.set;
        (set.replace_peers, set.private_key, set.fwmark, set.listen_port) =
            (true, Some(None), Some(0), Some(0));
    }
    let (mut section, mut known) = (Section::None, Vec::new());
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let line: String = line.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        if line.is_empty() {
            continue;
        }
        if line.eq_ignore_ascii_case("[Interface]") {
            section = Section::Interface;
            continue;
        }
        if line.eq_ignore_ascii_case("[Peer]") {
            section = Section::Peer;
            out.set.peers.push(PeerSet { replace_allowed: true, ..PeerSet::new(Key([0; 32])) });
            known.push(false);
            continue;
        }
        let value = |name: &str| {
            let (said, value) = line.split_once('=')?;
            (said.eq_ignore_ascii_case(name) && !value.is_empty()).then_some(value)
        };
        let bad = |why: String| format!("{why}Configuration parsing error\n");
        let read = match section {
            Section::Interface => interface(&mut out.set, value),
            Section::Peer => match (out.set.peers.last_mut(), known.last_mut()) {
                (Some(peer), Some(known)) => peer_line(peer, known, value, &mut out.warnings),
                _ => Ok(false),
            },
            Section::None => Ok(false),
        };
        if !read.map_err(bad)? {
            return Err(bad(format!("Line unrecognized: `{line}'\n")));
        }
    }
    if known.contains(&false) {
        return Err("A peer is missing a public key\nInvalid configuration\n".to_owned());
    }
    Ok(out)
}

/// A line of an interface; false for one that is none.
fn interface<'a>(set: &mut Set, value: impl Fn(&str) -> Option<&'a str>) -> Result<bool, String> {
    if let Some(v) = value("ListenPort") {
        set.listen_port = Some(port(v)?);
    } else if let Some(v) = value("FwMark") {
        set.fwmark = Some(fwmark(v)?);
    } else if let Some(v) = value("PrivateKey") {
        set.private_key = Some(some_key(key(v)?));
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// A line of a peer; false for one that is none.
fn peer_line<'a>(
    peer: &mut PeerSet,
    known: &mut bool,
    value: impl Fn(&str) -> Option<&'a str>,
    warnings: &mut String,
) -> Result<bool, String> {
    if let Some(v) = value("Endpoint") {
        peer.endpoint = Some(endpoint(v)?);
    } else if let Some(v) = value("PublicKey") {
        (peer.key, *known) = (key(v)?, true);
    } else if let Some(v) = value("AllowedIPs") {
        allowed_ips(peer, v, warnings)?;
    } else if let Some(v) = value("PersistentKeepalive") {
        peer.persistent_keepalive = Some(keepalive(v)?);
    } else if let Some(v) = value("PresharedKey") {
        peer.preshared_key = Some(some_key(key(v)?));
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// A key of zeros is none.
fn some_key(key: Key) -> Option<Key> {
    (key.0 != [0; 32]).then_some(key)
}

fn key(text: &str) -> Result<Key, String> {
    Key::read(text).ok_or_else(|| format!("Key is not the correct length or format: `{text}'\n"))
}

/// `parse_keyfile`: an empty file takes a key away.
fn key_file(text: &str) -> Result<Option<Key>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let Some((first, rest)) = text.split_at_checked(44) else {
        return Err("Invalid length key in key file\n".to_owned());
    };
    if let Some(c) = rest.chars().find(|c| !c.is_ascii_whitespace()) {
        return Err(format!("Found trailing character in key file: `{c}'\n"));
    }
    key(first).map(some_key)
}

/// `parse_port`, as `getaddrinfo` reads it: digits, of which 16 bits count.
fn port(text: &str) -> Result<u16, String> {
    if text.is_empty() {
        return Err("Unable to parse empty port\n".to_owned());
    }
    service(text).ok_or_else(|| format!("Servname not supported for ai_socktype: `{text}'\n"))
}

fn service(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse::<u64>().unwrap_or(u64::MAX) as u16)
}

fn fwmark(text: &str) -> Result<u32, String> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(0);
    }
    let read = match text.strip_prefix("0x").filter(|hex| !hex.is_empty()) {
        Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => u32::from_str_radix(hex, 16).ok(),
        Some(_) => None,
        None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        None => None,
    };
    read.ok_or_else(|| format!("Fwmark is neither 0/off nor 0-0xffffffff: `{text}'\n"))
}

fn keepalive(text: &str) -> Result<u16, String> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(0);
    }
    let read = text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    read.ok_or_else(|| format!("Persistent keepalive interval is neither 0/off nor 1-65535: `{text}'\n"))
}

/// `parse_endpoint`: an address and a port.
fn endpoint(text: &str) -> Result<SocketAddr, String> {
    if text.is_empty() {
        return Err("Unable to parse empty endpoint\n".to_owned());
    }
    let no_port = || format!("Unable to find port of endpoint: `{text}'\n");
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let Some((host, port)) = rest.split_once(']') else {
                return Err(format!("Unable to find matching brace of endpoint: `{text}'\n"));
            };
            (host, port.strip_prefix(':').filter(|p| !p.is_empty()).ok_or_else(no_port)?)
        }
        None => text.rsplit_once(':').filter(|(_, port)| !port.is_empty()).ok_or_else(no_port)?,
    };
    let port = service(port).ok_or_else(|| format!("Servname not supported for ai_socktype: `{text}'\n"))?;
    let addr: Option<IpAddr> = host.parse().ok();
    addr.map(|addr| SocketAddr::new(addr, port))
        .ok_or_else(|| format!("Name or service not known: `{text}'\n"))
}

/// `parse_allowedips`: prefixes with commas between.
fn allowed_ips(peer: &mut PeerSet, text: &str, warnings: &mut String) -> Result<(), String> {
    peer.replace_allowed = true;
    if text.is_empty() {
        return Ok(());
    }
    for entry in text.split(',') {
        let (ip, len) = match entry.split_once('/') {
            Some((ip, len)) => (ip, Some(len)),
            None => (entry, None),
        };
        let addr = match ip.contains(':') {
            true => ip.parse::<Ipv6Addr>().map(IpAddr::V6).ok(),
            false => ip.parse::<Ipv4Addr>().map(IpAddr::V4).ok(),
        };
        let addr = addr.ok_or_else(|| format!("Unable to parse IP address: `{ip}'\n"))?;
        let most = if addr.is_ipv6() { 128 } else { 32 };
        let read = match len {
            None => Some(most),
            Some(len) if len.bytes().all(|b| b.is_ascii_digit()) => {
                len.parse().ok().filter(|&len| len <= most)
            }
            Some(_) => None,
        };
        let len: u8 = read.ok_or_else(|| format!("AllowedIP is not in the correct format: `{entry}'\n"))?;
        let whole = prefix(addr, len);
        if whole != addr {
            warnings.push_str(&format!("Warning: AllowedIP has nonzero host part: {ip}/{len}\n"));
        }
        peer.allowed_ips.push((whole, len));
    }
    Ok(())
}

/// The address with zeros behind its prefix.
fn prefix(addr: IpAddr, len: u8) -> IpAddr {
    match addr {
        IpAddr::V4(a) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
            Ipv4Addr::from(u32::from(a) & mask).into()
        }
        IpAddr::V6(a) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
            Ipv6Addr::from(u128::from(a) & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "swyyLblxjNna0JyaXXEDtwPsDw4V6tmqhC3Akh3t4zA=";

    fn words(line: &str) -> Result<Configured, String> {
        let words: Vec<&str> = line.split(' ').collect();
        set(&words, &mut |path| match path {
            "key" => Ok(format!("{ONE}\n")),
            "short" => Ok("abc".to_owned()),
            "more" => Ok(format!("{ONE}x")),
            "/dev/null" => Ok(String::new()),
            _ => Err("fopen: No such file or directory\n".to_owned()),
        })
    }

    #[test]
    fn words_of_set_are_read() {
        let read = words(&format!(
            "listen-port 51820 fwmark 0x1f private-key key peer {ONE} allowed-ips 10.0.0.2/24,fd00::/64 endpoint [fd00::9]:999 persistent-keepalive 25"
        ))
        .unwrap();
        assert_eq!(read.warnings, "Warning: AllowedIP has nonzero host part: 10.0.0.2/24\n");
        assert_eq!((read.set.listen_port, read.set.fwmark), (Some(51820), Some(31)));
        let peer = &read.set.peers[0];
        assert_eq!(peer.allowed_ips, [("10.0.0.0".parse().unwrap(), 24), ("fd00::".parse().unwrap(), 64)]);
        assert_eq!((peer.endpoint, peer.persistent_keepalive), ("[fd00::9]:999".parse().ok(), Some(25)));
        assert_eq!(words("private-key /dev/null").unwrap().set.private_key, Some(None));
    }

    /// What wg 1.0.20210914 prints, as it was seen.
    #[test]
    fn faults_have_wgs_own_words() {
        let peer = |rest: &str| words(&format!("peer {ONE} {rest}")).unwrap_err();
        let cases = [
            (words("listen-porty 3").unwrap_err(), "Invalid argument: listen-porty\n"),
            (words("listen-port abc").unwrap_err(), "Servname not supported for ai_socktype: `abc'\n"),
            (words("fwmark abc").unwrap_err(), "Fwmark is neither 0/off nor 0-0xffffffff: `abc'\n"),
            (words("peer abc").unwrap_err(), "Key is not the correct length or format: `abc'\n"),
            (words("private-key none").unwrap_err(), "fopen: No such file or directory\n"),
            (words("private-key short").unwrap_err(), "Invalid length key in key file\n"),
            (words("private-key more").unwrap_err(), "Found trailing character in key file: `x'\n"),
            (peer("fwmark 3"), "Invalid argument: fwmark\n"),
            (peer("endpoint 10.0.0.1"), "Unable to find port of endpoint: `10.0.0.1'\n"),
            (peer("allowed-ips 10.0.0.0/33"), "AllowedIP is not in the correct format: `10.0.0.0/33'\n"),
            (peer("allowed-ips 10.0.0.300"), "Unable to parse IP address: `10.0.0.300'\n"),
            (
                peer("persistent-keepalive 65536"),
                "Persistent keepalive interval is neither 0/off nor 1-65535: `65536'\n",
            ),
        ];
        for (got, want) in cases {
            assert_eq!(got, want);
        }
        assert_eq!(words("listen-port 70000").unwrap().set.listen_port, Some(4464));
    }

    #[test]
    fn files_are_read() {
        let text = format!(
            "[interface]\nListenPort=7777 # all\n[Peer]\nPublicKey = {ONE}\nAllowedIPs = 10.1.0.0/24, ::/0\n"
        );
        let read = config(&text, false).unwrap().set;
        assert_eq!((read.listen_port, read.fwmark, read.private_key), (Some(7777), Some(0), Some(None)));
        assert_eq!((read.peers.len(), read.peers[0].allowed_ips.len(), read.replace_peers), (1, 2, true));
        let refused = config(&format!("{text}Foo = bar"), true).unwrap_err();
        assert_eq!(refused, "Line unrecognized: `Foo=bar'\nConfiguration parsing error\n");
        let nobody = config("[Peer]\nAllowedIPs = 10.1.0.0/24", true).unwrap_err();
        assert_eq!(nobody, "A peer is missing a public key\nInvalid configuration\n");
    }
}
