//! The words of `wg`, and what it shows.
//!
//! Follows: wireguard-tools 1.0.20210914 `src/config.c`, `src/set.c`, `src/setconf.c`, `src/show.c`, `src/showconf.c`, `src/encoding.c`.
//! Differs: the name of an endpoint is not looked up; an address is to be written.

mod parse;
mod show;

pub use parse::{Configured, config, set};
pub use show::{DeviceView, PeerView, View, dump, field, pretty, showconf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::net::{IpAddr, SocketAddr};

/// A key, 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u8; 32]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

impl Key {
    /// In base64, as `wg` writes it: 44 characters.
    pub fn text(&self) -> String {
        STANDARD.encode(self.0)
    }
    /// Reads 44 characters of base64.
    pub fn read(text: &str) -> Option<Key> {
        let bytes = STANDARD.decode(text).ok().filter(|_| text.len() == 44)?;
        bytes.try_into().ok().map(Key)
    }
}

/// What is asked of a device. What is not said stays as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Set {
    /// `private-key`; a key of zeros takes it away.
    pub private_key: Option<Option<Key>>,
    /// `listen-port`; 0: any that is free.
    pub listen_port: Option<u16>,
    /// `fwmark`; 0: none.
    pub fwmark: Option<u32>,
    /// All peers go first.
    pub replace_peers: bool,
    /// Peers that change, come or go.
    pub peers: Vec<PeerSet>,
}

/// What is asked of a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerSet {
    /// Its public key, by which it is known.
    pub key: Key,
    /// It goes.
    pub remove: bool,
    /// Only if it is there.
    pub update_only: bool,
    /// `preshared-key`; a key of zeros takes it away.
    pub preshared_key: Option<Option<Key>>,
    /// `endpoint`.
    pub endpoint: Option<SocketAddr>,
    /// What was allowed goes first.
    pub replace_allowed: bool,
    /// `allowed-ips`: address and length of a prefix.
    pub allowed_ips: Vec<(IpAddr, u8)>,
    /// `persistent-keepalive`, seconds; 0: off.
    pub persistent_keepalive: Option<u16>,
}

impl PeerSet {
    /// Nothing but a key.
    pub fn new(key: Key) -> PeerSet {
        PeerSet {
            key,
            remove: false,
            update_only: false,
            preshared_key: None,
            endpoint: None,
            replace_allowed: false,
            allowed_ips: Vec::new(),
            persistent_keepalive: None,
        }
    }
}
