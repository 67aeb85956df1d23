//! `wg`: WireGuard devices and their peers.
//!
//! Follows: wireguard-tools 1.0.20210914 `src/wg.c`, `src/set.c`, `src/setconf.c`, `src/show.c`, `src/genkey.c`, `src/pubkey.c`.

use super::Files;
use super::programs::Call;
use crate::{Host, Output};
use penstock_lang::wg::{self, Configured, DeviceView, Key, PeerSet, PeerView, Set, View};
use penstock_model::{EPOCH, Time};
use std::collections::BTreeSet;

const USAGE: &str = "Usage: wg <cmd> [<args>]

Available subcommands:
  show: Shows the current configuration and device information
  showconf: Shows the current configuration of a given WireGuard interface, for use with `setconf'
  set: Change the current configuration, add peers, remove peers, or change peers
  setconf: Applies a configuration file to a WireGuard interface
  addconf: Appends a configuration file to a WireGuard interface
  syncconf: Synchronizes a configuration file to a WireGuard interface
  genkey: Generates a new private key and writes it to stdout
  genpsk: Generates a new preshared key and writes it to stdout
  pubkey: Reads a private key from stdin and writes a public key to stdout
You may pass `--help' to any of these subcommands to view usage.
";
const USAGE_SHOW: &str = "Usage: wg show { <interface> | all | interfaces } \
    [public-key | private-key | listen-port | fwmark | peers | preshared-keys | endpoints | allowed-ips \
    | latest-handshakes | transfer | persistent-keepalive | dump]\n";
const USAGE_SET: &str = "Usage: wg set <interface> [listen-port <port>] [fwmark <mark>] [private-key <file path>] \
    [peer <base64 public key> [remove] [preshared-key <file path>] [endpoint <ip>:<port>] \
    [persistent-keepalive <interval seconds>] [allowed-ips <ip1>/<cidr1>[,<ip2>/<cidr2>]...] ]...\n";
const VERSION: &str = "wireguard-tools v1.0.20210914 - https://git.zx2c4.com/wireguard-tools/\n";

fn fail(text: impl Into<String>) -> Output {
    Output::fail(text, 1, "wg show, wg set DEV listen-port N private-key FILE peer KEY allowed-ips PREFIX")
}

/// A file that a command names, as the shell lends it.
pub(super) fn read(files: &mut dyn Files, path: &str) -> Result<String, String> {
    let path = if path == "/dev/stdin" { "-" } else { path };
    match path {
        "/dev/null" => Ok(String::new()),
        _ => files.read(path).map_err(|why| format!("fopen: {why}\n")),
    }
}

impl Host {
    pub(super) fn wg_tool(&mut self, call: Call<'_>) -> Output {
        let words: Vec<&str> = call.line.words[1..].iter().map(|w| w.text.as_str()).collect();
        let said = |stdout: &str| Output { stdout: stdout.to_owned(), ..Output::default() };
        match words.as_slice() {
            [] => self.wg_show(&["all"], call.now),
            ["-v" | "--version", ..] => said(VERSION),
            ["-h" | "--help" | "help", ..] => said(USAGE),
            [
                command @ ("show" | "showconf" | "set" | "setconf" | "addconf" | "syncconf"),
                "-h" | "--help",
            ] => Output { stderr: usage(command), ..Output::default() },
            ["show", rest @ ..] => self.wg_show(rest, call.now),
            ["showconf", device] => match self.wg_view(device, call.now) {
                Ok(view) => {
                    let mut out = Output::default();
                    wg::showconf(&view, &mut out.stdout);
                    out
                }
                Err(why) => fail(format!("Unable to access interface: {why}\n")),
            },
            ["set", device, rest @ ..] if !rest.is_empty() => {
                let read = wg::set(rest, &mut |path| read(call.files, path));
                self.wg_carry_out(device, read, call.now)
            }
            [command @ ("setconf" | "addconf" | "syncconf"), device, file] => {
                let text = match read(call.files, file) {
                    Ok(text) => text,
                    Err(why) => return fail(why),
                };
                let mut read = wg::config(&text, *command == "addconf");
                if let (Ok(read), "syncconf") = (&mut read, *command) {
                    self.wg_sync(device, &mut read.set);
                }
                self.wg_carry_out(device, read, call.now)
            }
            ["genkey"] => {
                let mut key = self.wg_random();
                key.0[0] &= 248;
                key.0[31] = key.0[31] & 127 | 64;
                said(&format!("{}\n", key.text()))
            }
            ["genpsk"] => said(&format!("{}\n", self.wg_random().text())),
            ["pubkey"] => {
                let text = call.files.read("-").unwrap_or_default();
                match Key::read(text.trim_end()) {
                    Some(private) => said(&format!("{}\n", crate::wireguard::public_of(&private).text())),
                    None => fail("wg: Key is not the correct length or format\n"),
                }
            }
            [
                command @ ("showconf" | "set" | "setconf" | "addconf" | "syncconf" | "genkey" | "genpsk"
                | "pubkey"),
                ..,
            ] => fail(usage(command)),
            [other, ..] => fail(format!("Invalid subcommand: `{other}'\n{USAGE}")),
        }
    }
    fn wg_carry_out(&mut self, device: &str, read: Result<Configured, String>, now: Time) -> Output {
        let Configured { set, warnings } = match read {
            Ok(read) => read,
            Err(why) => return fail(why),
        };
        let refused = |why: &str| fail(format!("{warnings}Unable to modify interface: {why}\n"));
        let ifindex = match self.wg_device(device) {
            Ok(ifindex) => ifindex,
            Err(_) if self.wg_moved(device) => {
                let what = "wg on a device that was moved to another network namespace";
                return Output::not_simulated(what, "make the device in that namespace");
            }
            Err(why) => return refused(why),
        };
        match self.wireguard_set(ifindex, &set, now) {
            Ok(()) => Output { stderr: warnings, ..Output::default() },
            Err(_) => refused("Address already in use"),
        }
    }
    fn wg_device(&self, name: &str) -> Result<u32, &'static str> {
        let ifindex = self.ifindex(name).ok_or("No such device")?;
        match self.devices[ifindex].wireguard {
            Some(_) => Ok(ifindex),
            None => Err("Operation not supported"),
        }
    }
    fn wg_moved(&self, name: &str) -> bool {
        let device = self.ifindex(name).and_then(|i| self.devices.get(i));
        device.is_some_and(|d| d.class.kind == "wireguard" && d.wireguard.is_none())
    }
    /// 32 bytes that nobody foresees.
    fn wg_random(&mut self) -> Key {
        self.wg_keys += 1;
        let mut rng = penstock_model::Rng::named(self.seed, &format!("{} key {}", self.name, self.wg_keys));
        let mut key = [0; 32];
        key.chunks_exact_mut(8).for_each(|bytes| bytes.copy_from_slice(&rng.next_u64().to_le_bytes()));
        Key(key)
    }
    /// `sync_conf`: of the peers that are there those go that the file does not name; the others change.
    fn wg_sync(&mut self, device: &str, set: &mut Set) {
        set.replace_peers = false;
        let Ok(ifindex) = self.wg_device(device) else { return };
        let named: BTreeSet<Key> = set.peers.iter().map(|p| p.key).collect();
        let Some(wg) = self.devices[ifindex].wireguard.as_deref() else { return };
        for peer in wg.peers() {
            if !named.contains(&peer.key) {
                set.peers.push(PeerSet { remove: true, ..PeerSet::new(peer.key) });
                continue;
            }
            for p in set.peers.iter_mut().filter(|p| p.key == peer.key) {
                // What the file does not say of a peer that is there is taken away.
                p.preshared_key.get_or_insert(None);
                p.persistent_keepalive.get_or_insert(0);
            }
        }
    }

    fn wg_view(&self, name: &str, now: Time) -> Result<DeviceView, &'static str> {
        let ifindex = self.wg_device(name)?;
        let device = &self.devices[ifindex];
        let Some(wg) = device.wireguard.as_deref() else { return Err("Operation not supported") };
        let second = |t: Time| EPOCH + t.as_ns().div_euclid(1_000_000_000);
        let peers = wg.peers().map(|p| PeerView {
            key: p.key,
            psk: p.psk,
            endpoint: p.endpoint.map(|e| e.addr),
            allowed: p.allowed.clone(),
            handshake: p.last_handshake.map(|t| (second(t), (second(now) - second(t)).max(0) as u64)),
            transfer: (p.rx_bytes, p.tx_bytes),
            keepalive: p.keepalive,
        });
        Ok(DeviceView {
            name: device.name.clone(),
            identity: wg.identity,
            port: wg.port,
            fwmark: wg.fwmark,
            peers: peers.collect(),
        })
    }
    fn wg_show(&self, words: &[&str], now: Time) -> Output {
        let mut out = Output::default();
        let all = || self.devices.iter().filter(|d| d.wireguard.is_some()).map(|d| d.name.as_str());
        let (which, what) = match words {
            [] => ("all", None),
            [which] => (*which, None),
            [which, what] => (*which, Some(*what)),
            _ => return fail(USAGE_SHOW),
        };
        if which == "interfaces" {
            if what.is_some() {
                return fail(USAGE_SHOW);
            }
            let names: Vec<&str> = all().collect();
            if !names.is_empty() {
                out.stdout = format!("{}\n", names.join(" "));
            }
            return out;
        }
        let named = which == "all";
        let devices: Vec<&str> = if named { all().collect() } else { vec![which] };
        for (n, device) in devices.iter().enumerate() {
            let view = match self.wg_view(device, now) {
                Ok(view) => view,
                Err(why) => return fail(format!("Unable to access interface: {why}\n")),
            };
            match (what, what.and_then(View::named)) {
                (None, _) => {
                    if n > 0 {
                        out.stdout.push('\n');
                    }
                    wg::pretty(&view, &mut out.stdout);
                }
                (Some("dump"), _) => wg::dump(&view, named, &mut out.stdout),
                (Some(_), Some(what)) => wg::field(&view, what, named, &mut out.stdout),
                (Some(what), None) => return fail(format!("Invalid parameter: `{what}'\n{USAGE_SHOW}")),
            }
        }
        out
    }
}

fn usage(command: &str) -> String {
    match command {
        "show" => USAGE_SHOW.to_owned(),
        "set" => USAGE_SET.to_owned(),
        "showconf" => "Usage: wg showconf <interface>\n".to_owned(),
        "setconf" | "addconf" | "syncconf" => {
            format!("Usage: wg {command} <interface> <configuration filename>\n")
        }
        _ => format!("Usage: wg {command}\n"),
    }
}

#[cfg(test)]
mod tests {
    use crate::exec::FileError;
    use crate::{Files, Host};
    use penstock_model::{Kernel, Time};

    const ONE: &str = "6CfEgs6v9bfsFnxXCR4Rlk2Z0N4L5vcZ0l1M8sC5gXU=";
    const TWO: &str = "swyyLblxjNna0JyaXXEDtwPsDw4V6tmqhC3Akh3t4zA=";
    const THREE: &str = "j0DFrbaPJWJK5bIU6nZ6bslNgp09e14a0bpvPiE4KF8=";

    struct Lent;
    impl Files for Lent {
        fn read(&mut self, path: &str) -> Result<String, FileError> {
            let two =
                format!("PublicKey = {TWO}\nAllowedIPs = 10.1.0.0/24, 10.2.0.0/24\nAllowedIPs = ::/0\n");
            match path {
                "k1" => Ok(format!("{ONE}\n")),
                "c1" => Ok(format!(
                    "[Interface]\nPrivateKey = {ONE}   # comment\nListenPort=7777\nFwMark = 0x10\n[Peer]\n{two}Endpoint = 10.0.0.1:51820\nPersistentKeepalive = off\n"
                )),
                "c5" => Ok(format!("[Interface]\n[Peer]\nPublicKey = {THREE}\nAllowedIPs = 10.8.0.0/24\n")),
                _ => Err(FileError::NotFound),
            }
        }
    }
    /// Each command, what it prints (both outputs) and its status, as wireguard-tools 1.0.20210914 on Linux 6.12 was seen to.
    #[test]
    fn wg_says_what_the_real_one_says() {
        let mut host = Host::new("r", Kernel::V6_12, 1);
        let no_device = "Unable to modify interface: No such device\n";
        let none = format!("{THREE}\t(none)\n");
        let conf = format!(
            "[Interface]\nListenPort = 7777\nFwMark = 0x10\nPrivateKey = {ONE}\n\n[Peer]\nPublicKey = {TWO}\nAllowedIPs = 10.1.0.0/24, 10.2.0.0/24, ::/0\nEndpoint = 10.0.0.1:51820\n"
        );
        let synced = format!("[Interface]\n\n[Peer]\nPublicKey = {THREE}\nAllowedIPs = 10.8.0.0/24\n");
        let pretty = format!(
            "interface: wg0\n\npeer: {THREE}\n  endpoint: [fd00::9]:999\n  allowed ips: 10.9.0.0/16\n"
        );
        let dump =
            format!("(none)\t(none)\t0\toff\n{THREE}\t(none)\t[fd00::9]:999\t10.9.0.0/16\t0\t0\t0\toff\n");
        let cases: &[(&str, &str, i32)] = &[
            ("ip link add wg0 type wireguard", "", 0),
            ("wg show wg0", "interface: wg0\n", 0),
            (&format!("wg set wg0 peer {THREE} allowed-ips 10.9.0.0/16 endpoint [fd00::9]:999"), "", 0),
            ("wg show", &pretty, 0),
            ("wg show wg0 dump", &dump, 0),
            ("wg show interfaces", "wg0\n", 0),
            ("wg show wg0 public-key", "(none)\n", 0),
            ("wg show wg0 preshared-keys", &none, 0),
            ("wg show all endpoints", &format!("wg0\t{THREE}\t[fd00::9]:999\n"), 0),
            (&format!("wg set wg0 peer {THREE} allowed-ips 192.168.1.9/32"), "", 0),
            ("wg show wg0 allowed-ips", &format!("{THREE}\t192.168.1.9/32\n"), 0),
            (&format!("wg set wg0 peer {THREE} remove"), "", 0),
            ("wg set wg1 listen-port 3", no_device, 1),
            ("wg set wg0 private-key /nofile", "fopen: No such file or directory\n", 1),
            ("wg show wg9", "Unable to access interface: No such device\n", 1),
            ("wg show lo", "Unable to access interface: Operation not supported\n", 1),
            ("wg setconf wg0 c1", "", 0),
            ("wg showconf wg0", &conf, 0),
            ("wg show wg0 public-key", "p0bX4HgKcVUq1/Rx0kdz0lvpav3naAlUSib51N/tOzs=\n", 0),
            ("wg syncconf wg0 c5", "", 0),
            ("wg showconf wg0", &synced, 0),
            ("wg setconf wg0", "Usage: wg setconf <interface> <configuration filename>\n", 1),
            ("wg genkey foo", "Usage: wg genkey\n", 1),
            ("wg pubkey", "wg: Key is not the correct length or format\n", 1),
            ("ip link set wg0 mtu 100", "", 0),
            ("ip link set wg0 type wireguard", "", 0),
            (
                "ip link add wg2 type wireguard foo",
                "Garbage instead of arguments \"foo ...\". Try \"ip link help\".\n",
                1,
            ),
        ];
        for (line, said, status) in cases {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let out = host.command(&words, &mut Lent, Time::ZERO);
            assert_eq!(
                (format!("{}{}", out.stdout, out.stderr).as_str(), out.status),
                (*said, *status),
                "{line}"
            );
        }
    }
    /// What Linux 2.6.35 has not yet, its profile has not.
    #[test]
    fn an_old_kernel_has_no_such_devices() {
        for (kernel, status) in [(Kernel::V2_6_35, 2), (Kernel::V6_12, 0)] {
            let mut host = Host::new("r", kernel, 1);
            for kind in ["wireguard", "vxlan id 7 dstport 4789", "vrf table 10"] {
                let out = host.exec(&format!("ip link add x0 type {kind}"), Time::ZERO);
                let said = if status == 0 { "" } else { "RTNETLINK answers: Operation not supported\n" };
                assert_eq!((out.status, out.stderr.as_str()), (status, said), "{kind}");
                host.exec("ip link del x0", Time::ZERO);
            }
        }
    }
    #[test]
    fn a_port_is_one_devices() {
        let mut host = Host::new("r", Kernel::V6_12, 1);
        for (line, status) in [
            ("ip link add wg0 type wireguard", 0),
            ("ip link set wg0 up", 0),
            ("ip link add wg3 type wireguard", 0),
            ("wg set wg3 listen-port 4000", 0),
            ("ip link set wg3 up", 0),
            ("wg set wg0 listen-port 4000", 1),
            ("ip link set wg0 down", 0),
            ("ip link set wg0 up", 2),
            ("ip link del wg3", 0),
            ("ip link set wg0 up", 0),
        ] {
            let out = host.exec(line, Time::ZERO);
            assert_eq!(out.status, status, "{line}: {}", out.stderr);
        }
        assert_eq!(host.exec("wg show wg0 listen-port", Time::ZERO).stdout, "4000\n");
        // Of a range of one there is one for one device.
        for (line, status) in [
            ("sysctl -qw net.ipv4.ip_local_port_range='5000 5000'", 0),
            ("ip link add wg4 type wireguard", 0),
            ("ip link set wg4 up", 0),
            ("ip link add wg5 type wireguard", 0),
            ("ip link set wg5 up", 2),
        ] {
            let out = host.exec(line, Time::ZERO);
            assert_eq!(out.status, status, "{line}: {}", out.stderr);
        }
    }
}
