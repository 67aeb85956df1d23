//! The machine in memory: a host as long as only commands act on it; from its first `ping` on the one machine of a simulated world, in
//! which packets stand in queues and timers go off.
//!
//! What commands have made goes over into that world as it is, at the moment of the first ping: counters that stood at zero until then
//! begin there. From then on the world's time goes on up to each command's moment, and by what each ping takes.

use penstock_host::{Files, Host, Output};
use penstock_lang::ip::netns_exec;
use penstock_model::Time;
use penstock_sim::{HostId, Unending, World};

/// The world's seed, of which its dice are.
const SEED: u64 = 1;

/// The name of the program that sends.
pub(crate) const PING: &str = "ping";

/// What it does, in a few words.
pub(crate) const ABOUT: &str = "echo requests, as iputils sends and prints them";

/// Whether a command is a `ping`, on the machine or in one of its namespaces, and from which word on.
pub(crate) fn ping_at(words: &[String]) -> Option<usize> {
    let before = words.iter().take_while(|w| *w == "sudo").count();
    let behind = netns_exec(&words[before..]).map_or(0, |(_, at)| at);
    let program = words.get(before + behind)?;
    (program.rsplit('/').next() == Some(PING)).then_some(before + behind)
}

/// A machine in memory.
pub(crate) enum Live {
    /// Nothing has been sent.
    Still(Box<Host>),
    /// Packets may be anywhere.
    Sending(Box<World>, HostId),
}

impl Live {
    /// A machine on which no packet has been sent.
    pub(crate) fn new(host: Host) -> Live {
        Live::Still(Box::new(host))
    }
    /// Carries out a command at this moment, which is not before that of the last one.
    pub(crate) fn command(&mut self, words: &[String], files: &mut dyn Files, now: Time) -> Output {
        match self {
            Live::Still(host) => host.command(words, files, now),
            Live::Sending(world, id) => {
                world.run_quietly(now);
                world.command(*id, words, files)
            }
        }
    }
    /// Sends as a ping of these words does, from this moment on; answers what it gives and when it ended.
    ///
    /// # Errors
    /// It came to no end, and the machine stands somewhere amid it.
    pub(crate) fn ping(&mut self, words: &[String], now: Time) -> Result<(Output, Time), Unending> {
        let words = &words[words.iter().take_while(|w| *w == "sudo").count()..];
        if let Live::Still(host) = self {
            let mut world = Box::new(World::new(SEED));
            let id = world.adopt(std::mem::replace(host, Host::absent()), now);
            *self = Live::Sending(world, id);
        }
        let Live::Sending(world, id) = self else { unreachable!("it has been made so") };
        world.run_quietly(now);
        let output = world.run_program(*id, words)?;
        Ok((output, world.now()))
    }
    /// Whether packets may be anywhere.
    pub(crate) fn is_sending(&self) -> bool {
        matches!(self, Live::Sending(..))
    }
    /// The host, where nothing has been sent.
    pub(crate) fn still(&mut self) -> Option<&mut Host> {
        match self {
            Live::Still(host) => Some(host),
            Live::Sending(..) => None,
        }
    }
    /// The machine as it stands, to be looked at.
    pub(crate) fn into_host(self) -> Host {
        match self {
            Live::Still(host) => *host,
            Live::Sending(world, id) => world.give_away(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, moment};
    use penstock_model::{Kernel, Span};
    use std::path::PathBuf;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// A folder that is not there, and is gone again with this.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("penstock-live-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_ping_is_known_by_its_words() {
        for (text, at) in [
            ("ping -c 1 10.0.0.1", Some(0)),
            ("sudo /bin/ping 10.0.0.1", Some(1)),
            ("ip netns exec blue ping 10.0.0.1", Some(4)),
            ("sudo ip netns exec blue ping x", Some(5)),
            ("tc qdisc show", None),
            ("ip netns exec ping tc qdisc", None),
            ("sudo", None),
            ("", None),
        ] {
            assert_eq!(ping_at(&words(text)), at, "{text}");
        }
    }

    #[test]
    fn what_is_held_and_what_is_replayed_is_the_same() {
        let folder = Folder::new("same");
        let machine = Machine::new(&folder.0, Kernel::V6_12);
        let mut session = machine.session();
        let lines = [
            "ip link add dummy0 type dummy",
            "ip link set dummy0 up",
            "ip addr add 10.10.10.10/24 dev dummy0",
            "tc qdisc add dev dummy0 root handle 1: netem delay 20ms 10ms loss 20%",
            "ping -c 20 -i 0.002 -W 0.001 10.10.10.1",
            "tc qdisc change dev dummy0 root netem delay 30ms loss 0%",
            "ping -c 3 -i 0.002 -W 0.001 10.10.10.1",
            "ip link set dummy0 mtu 1400",
        ];
        for line in lines {
            let held = session.exec(&words(line), &mut penstock_host::NoFiles).unwrap();
            // Whoever looks changes nothing.
            let show = words("tc -s qdisc show dev dummy0");
            let here = session.exec(&show, &mut penstock_host::NoFiles).unwrap();
            let anew = machine.exec(&show).unwrap();
            assert_eq!(here.stdout, anew.stdout, "{line}: {}", held.stdout);
        }
        let shown = machine.exec(&words("tc -s qdisc show dev dummy0")).unwrap().stdout;
        assert!(!shown.contains(" 0p ") && !shown.contains("dropped 0,"), "{shown}");
        let (host, now) = machine.host_now().unwrap();
        assert!(now > moment(lines.len() as u64) + Span::from_ms(40), "pings take their time: {now}");
        let dummy = host.devices().iter().find(|d| d.name == "dummy0").unwrap();
        assert!(dummy.tree.qlen() > 0, "what stands there is there for whoever takes the machine");
    }

    #[test]
    fn nothing_is_told_of_a_ping_that_does_not_begin_or_end() {
        let folder = Folder::new("none");
        let machine = Machine::new(&folder.0, Kernel::V6_12);
        for (line, said) in [
            ("ping 127.0.0.1", "ping: without -c and -w "),
            ("ping -c 0 127.0.0.1", "ping: invalid argument: '0'"),
        ] {
            let output = machine.exec(&words(line)).unwrap();
            assert!(output.status != 0 && output.stderr.starts_with(said), "{}", output.stderr);
            assert!(!folder.0.exists(), "{line} leaves no state");
        }
        assert!(
            machine.exec(&words("ping -f -c 100000000 127.0.0.1")).unwrap_err().contains("has not happened")
        );
        assert_eq!(machine.host_now().unwrap().1, moment(0));
    }

    #[test]
    fn a_journal_with_packets_stays_as_it_is() {
        let folder = Folder::new("long");
        let machine = Machine::new(&folder.0, Kernel::V6_12);
        let mut session = machine.session();
        let mut exec = |text: &str| session.exec(&words(text), &mut penstock_host::NoFiles).unwrap();
        assert_eq!(exec("ping -c 1 127.0.0.1").status, 0);
        for i in 0..300 {
            let change = if i == 0 { "add" } else { "change" };
            let line = format!("tc qdisc {change} dev eth0 root tbf rate {}kbit burst 5k limit 5k", 1000 + i);
            assert_eq!(exec(&line).status, 0);
        }
        let journal = std::fs::read_to_string(folder.0.join("journal-6.12")).unwrap();
        assert_eq!(journal.lines().count(), 301);
        let all = crate::dump::Wanted { all: true, ..Default::default() };
        let dumped = machine.dump(&all).unwrap().commands;
        assert!(dumped.iter().all(|line| line.starts_with("tc qdisc ")), "{dumped:?}");
    }
}
