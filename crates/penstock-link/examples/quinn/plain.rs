//! A handshake of QUIC without cryptography: two endpoints tell each other their transport parameters, and packets get a tag as long as that of AES-GCM.
//! For two endpoints in one program, and for nothing else.

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey,
    KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};
use std::any::Any;
use std::sync::Arc;

/// Bytes behind a packet, as AES-GCM has them.
const TAG: usize = 16;
/// The server's answer in its first packet, and the client's last word.
const HELLO: u8 = b'S';
const FINISHED: u8 = b'F';

/// All keys and configurations: there is nothing to know.
#[derive(Clone, Copy)]
pub struct Plain;

fn tag(packet: u64) -> [u8; TAG] {
    let mut tag = [0; TAG];
    tag[..8].copy_from_slice(&packet.to_be_bytes());
    tag
}

impl PacketKey for Plain {
    fn encrypt(&self, packet: u64, buf: &mut [u8], _: usize) {
        let at = buf.len() - TAG;
        buf[at..].copy_from_slice(&tag(packet));
    }
    fn decrypt(&self, packet: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let at = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        if payload[at..] != tag(packet) {
            return Err(CryptoError);
        }
        payload.truncate(at);
        Ok(())
    }
    fn tag_len(&self) -> usize {
        TAG
    }
    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }
    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for Plain {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}
    fn encrypt(&self, _: usize, _: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        16
    }
}

impl HmacKey for Plain {
    fn sign(&self, data: &[u8], out: &mut [u8]) {
        // FNV-1a, one byte of it for each of the signature.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in data {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
        for byte in out {
            hash = (hash ^ 1).wrapping_mul(0x100_0000_01b3);
            *byte = (hash >> 32) as u8;
        }
    }
    fn signature_len(&self) -> usize {
        32
    }
    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut own = [0; 32];
        self.sign(data, &mut own);
        if own[..] == *signature { Ok(()) } else { Err(CryptoError) }
    }
}

impl HandshakeTokenKey for Plain {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Plain)
    }
}

impl AeadKey for Plain {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Ok(data)
    }
}

fn pair<T>(key: fn() -> T) -> KeyPair<T> {
    KeyPair { local: key(), remote: key() }
}

fn keys() -> Keys {
    Keys { header: pair(|| Box::new(Plain)), packet: pair(|| Box::new(Plain)) }
}

impl ClientConfig for Plain {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Handshake::new(Side::Client, params)))
    }
}

impl ServerConfig for Plain {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }
    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }
    fn start_session(self: Arc<Self>, _: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(Handshake::new(Side::Server, params))
    }
}

/// Where a handshake is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The client says its parameters; the server waits for them.
    Begin,
    /// The client has said them; the server has got them.
    Told,
    /// There are keys for the handshake.
    Keys,
    /// There are keys for data; the server waits for the client's last word.
    Data,
    Done,
}

/// One side of a handshake: the client's parameters, [`HELLO`], the server's parameters, [`FINISHED`].
struct Handshake {
    side: Side,
    step: Step,
    own: Vec<u8>,
    /// What has come and is not used yet.
    came: Vec<u8>,
    theirs: Option<TransportParameters>,
}

impl Handshake {
    fn new(side: Side, params: &TransportParameters) -> Handshake {
        // Their length first.
        let mut own = vec![0, 0];
        params.write(&mut own);
        let length = (own.len() - 2) as u16;
        own[..2].copy_from_slice(&length.to_be_bytes());
        Handshake { side, step: Step::Begin, own, came: Vec::new(), theirs: None }
    }

    /// The other side's parameters, once they have come whole.
    fn parameters(&mut self) -> Result<bool, TransportError> {
        let Some(length) = self.came.get(..2).map(|b| usize::from(u16::from_be_bytes([b[0], b[1]]))) else {
            return Ok(false);
        };
        let Some(mut bytes) = self.came.get(2..2 + length) else { return Ok(false) };
        self.theirs = Some(TransportParameters::read(self.side, &mut bytes)?);
        self.came.drain(..2 + length);
        Ok(true)
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.came.first() == Some(&byte);
        if there {
            self.came.remove(0);
        }
        there
    }
}

impl Session for Handshake {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }
    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }
    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }
    fn early_data_accepted(&self) -> Option<bool> {
        None
    }
    fn is_handshaking(&self) -> bool {
        self.step != Step::Done
    }
    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.came.extend_from_slice(buf);
        match (self.side, self.step) {
            (Side::Server, Step::Begin) if self.parameters()? => self.step = Step::Told,
            (Side::Server, Step::Data) if self.take(FINISHED) => self.step = Step::Done,
            (Side::Client, Step::Told) if self.take(HELLO) => self.step = Step::Keys,
            (Side::Client, Step::Data) => {
                self.parameters()?;
            }
            _ => {}
        }
        Ok(false)
    }
    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.theirs)
    }
    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match (self.side, self.step) {
            (Side::Client, Step::Begin) => {
                buf.extend_from_slice(&self.own);
                self.step = Step::Told;
                None
            }
            (Side::Client, Step::Keys) => {
                self.step = Step::Data;
                Some(keys())
            }
            (Side::Client, Step::Data) if self.theirs.is_some() => {
                buf.push(FINISHED);
                self.step = Step::Done;
                Some(keys())
            }
            (Side::Server, Step::Told) => {
                buf.push(HELLO);
                self.step = Step::Keys;
                Some(keys())
            }
            (Side::Server, Step::Keys) => {
                buf.extend_from_slice(&self.own);
                self.step = Step::Data;
                Some(keys())
            }
            _ => None,
        }
    }
    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(pair(|| Box::new(Plain)))
    }
    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        true
    }
    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
