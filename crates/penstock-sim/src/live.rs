//! A machine that others have driven so far goes on in a world's time, and programs on it are run until they end.
//!
//! Whoever keeps a machine alive by commands alone ([`Host::command`]) hands it over when a program is to send packets: it keeps all that
//! commands have made of it, its namespaces too, and what was due goes off at once.

use crate::app::{self, Failure, Program, ping::Ping};
use crate::spec::HostId;
use crate::world::World;
use penstock_host::{Host, Output};
use penstock_model::{Kernel, Time};

/// The most events that one program may set off on such a machine: each later call makes them anew.
const MOST_EVENTS: u64 = 1_000_000;

/// A program that was not run to its end. The machine stands somewhere amid it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unending;

/// What a `ping` of these words says before it asks anything of a machine; `None` where it begins.
pub fn read_ping(words: &[String], kernel: Kernel) -> Option<Output> {
    let args: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let said = match Ping::parse(&args, kernel) {
        Ok(ping) if ping.ends() => return None,
        Ok(_) => Failure::new(
            "ping: without -c and -w it goes on until it is interrupted, and nobody can interrupt it here: write -c COUNT or -w SECONDS\n",
            2,
        ),
        Err(failure) => failure,
    };
    // The version is an answer, all else a complaint.
    let (stdout, stderr) =
        if said.status == 0 { (said.text, String::new()) } else { (String::new(), said.text) };
    Some(Output { stdout, stderr, status: said.status, ..Output::default() })
}

impl World {
    /// Takes in a machine as it is at `at`, which becomes the present. The world must be empty so far.
    ///
    /// # Panics
    /// When something is to happen before `at`.
    pub fn adopt(&mut self, host: Host, at: Time) -> HostId {
        self.net.queue.advance(at);
        let id = self.push_machine(host);
        self.net.spread(id);
        self.net.after_command(id);
        HostId(id)
    }
    /// Gives such a machine away again, with its namespaces and what stands in its queues. Frames that are under way are lost.
    pub fn give_away(mut self, id: HostId) -> Host {
        self.net.gather(id.0);
        std::mem::replace(&mut self.net.machines[id.0 as usize].host, Host::absent())
    }
    /// Runs a program on a machine, from now until it ends, and answers what it gives; time has gone on by then. The words are a
    /// process's; `ip netns exec NAME` may stand before them.
    ///
    /// # Errors
    /// It did not come to its end within a million events, or nothing more happens: the world is of no use any more.
    pub fn run_program(&mut self, id: HostId, words: &[String]) -> Result<Output, Unending> {
        let (host, words) = match penstock_lang::ip::netns_exec(words) {
            Some((name, at)) => match self.net.namespace(id.0, &name) {
                Some(host) => (host, &words[at..]),
                // ip itself says that there is no such namespace.
                None => return Ok(self.command(id, words, &mut penstock_host::NoFiles)),
            },
            None => (id.0, words),
        };
        let program = match app::launch_words(words, host, &self.net) {
            Ok(program) => program,
            Err(Failure { text, status }) => {
                return Ok(Output { stderr: text, status, ..Output::default() });
            }
        };
        let began = self.events;
        let n = self.push_app(host, &words.join(" "), None, Some(program));
        self.start(n);
        // What it has sent to its own machine may be there already.
        if !self.wake_due() {
            return Err(Unending);
        }
        while self.apps[n as usize].result.ended.is_none() {
            let next = self.net.queue.next_time().ok_or(Unending)?;
            self.run_quietly(next);
            if self.stuck().is_some() || self.events - began > MOST_EVENTS {
                return Err(Unending);
            }
        }
        Ok(self.apps[n as usize].gives())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_machine_goes_over_and_comes_back_with_its_namespaces_and_queues() {
        let at = |ms: i64| Time::from_ns(ms * 1_000_000);
        let mut host = Host::new("m", Kernel::V6_12, 1);
        for line in [
            "ip netns add far",
            "ip link add v0 type veth peer name v1 netns far",
            "ip addr add 192.0.2.1/24 dev v0",
            "ip link set v0 up",
            "ip netns exec far ip addr add 192.0.2.2/24 dev v1",
            "ip -n far link set v1 up",
            "tc -n far qdisc add dev v1 root netem delay 5ms",
        ] {
            assert_eq!(host.exec(line, at(1)).stderr, "", "{line}");
        }
        let mut world = World::new(1);
        let id = world.adopt(host, at(40));
        assert_eq!(world.now(), at(40));
        // The answers of ARP and of the echo wait for netem; that of the second echo alone.
        let output = world.run_program(id, &words("ping -c 2 -i 0.2 192.0.2.2")).unwrap();
        assert!(output.stdout.contains("icmp_seq=1 ttl=64 time=10.0 ms"), "{}", output.stdout);
        assert!(output.stdout.contains("icmp_seq=2 ttl=64 time=5.00 ms"), "{}", output.stdout);
        assert_eq!((output.stderr.as_str(), output.status), ("", 0));
        let ended = world.now();
        assert!(ended > at(245) && ended < at(260), "{ended}");
        let output = world.run_program(id, &words("ip netns exec far ping -c 1 -W 0.001 192.0.2.9")).unwrap();
        assert_eq!(output.status, 1, "{}", output.stdout);
        let output = world.run_program(id, &words("ip netns exec near ping -c 1 192.0.2.9")).unwrap();
        assert_eq!((output.stdout.as_str(), output.status), ("", 255));
        let output = world.run_program(id, &words("ping -c 1 203.0.113.1")).unwrap();
        assert_eq!(output.stderr, "ping: connect: Network is unreachable\n");
        assert_eq!((output.stdout.as_str(), output.status), ("", 2));
        let mut host = world.give_away(id);
        assert_eq!(host.netns_names(), ["far"]);
        let shown = host.exec("tc -n far -s qdisc show dev v1", ended).stdout;
        assert!(shown.contains("backlog 42b 1p"), "the question for 192.0.2.9 still stands there: {shown}");
    }
}
