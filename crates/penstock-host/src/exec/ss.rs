//! `ss`.
//!
//! Follows: iproute2 6.1.0 `misc/ss.c`.
//! Differs: a machine knows of its sockets what the world around it tells before a command; one on its own has none.

use super::Ran;
use super::programs::Call;
use crate::netns::no_space;
use crate::{Host, Output};
use penstock_lang::ss::{self, Around, Machine, Refusal, Request};
use penstock_model::Kernel;
use penstock_model::sockets::Socket;

impl Host {
    /// Tells the machine of its sockets as they are now.
    pub fn tell_sockets(&mut self, sockets: Vec<Socket>) {
        self.sockets = sockets;
    }
    pub(super) fn ss(&mut self, call: Call<'_>) -> Ran {
        let words: Vec<&str> = call.line.words[1..].iter().map(|w| w.text.as_str()).collect();
        let device = |name: &str| self.ifindex(name);
        let request = match ss::parse(&words, &Machine { device: &device }) {
            Ok(request) => request,
            Err(Refusal::NotSimulated(what, instead)) => return Output::not_simulated(&what, instead),
            Err(Refusal::Said(stdout, stderr, 0)) => return Output { stdout, stderr, ..Output::default() },
            Err(Refusal::Said(stdout, stderr, status)) => {
                return Output { stdout, ..Output::fail(stderr, status, "ss -tin, ss -tlnp, ss -uan") };
            }
        };
        let Some(name) = &request.netns else { return self.ss_of(&request) };
        match self.space_of(name).and_then(|space| self.in_space(space, |host| host.ss_of(&request))) {
            Some(ran) => ran,
            None => Output::fail(no_space(name), 1, "ip netns lists the namespaces"),
        }
    }
    fn ss_of(&mut self, request: &Request) -> Ran {
        let range = match self.kernel {
            Kernel::V2_6_35 => (32_768, 61_000),
            Kernel::V6_12 | Kernel::V7_2 => (32_768, 60_999),
        };
        let around = Around {
            device: &|ifindex| self.device(ifindex).map(|d| d.name.clone()),
            ephemeral: self.port_range().unwrap_or(range),
        };
        let rows = &self.sockets;
        let mut out = String::new();
        if request.summary {
            out += &ss::summary(rows, [0, 0]);
        }
        if request.rows {
            out += &ss::show(request, rows, &around);
        }
        Output::say(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Time;

    #[test]
    fn a_machine_on_its_own_has_no_sockets() {
        let mut host = Host::new("a", Kernel::V6_12, 1);
        let said = host.exec("ss -tan", Time::ZERO);
        let heading = "State Recv-Q Send-Q Local Address:Port Peer Address:PortProcess\n";
        assert_eq!((said.status, said.stdout.as_str()), (0, heading));
        assert_eq!(host.exec("ss -Htan", Time::ZERO).stdout, "");
        assert!(host.exec("ss -s", Time::ZERO).stdout.starts_with("Total: 0\nTCP:   0 (estab 0, closed 0,"));
        assert_eq!(host.exec("ss -tn dev nosuch", Time::ZERO).stderr, "Cannot parse device.\n");
        assert_eq!(host.exec("ss -tn dev lo", Time::ZERO).stdout, heading);
        let gone = host.exec("ss -N nosuch", Time::ZERO);
        assert_eq!(gone.status, 1);
        assert_eq!(gone.stderr, "Cannot open network namespace \"nosuch\": No such file or directory\n");
        for (line, what) in [("ss -K dst 10.0.0.1", "ss -K"), ("ss -x", "ss --unix"), ("ss -tpE", "ss -E")] {
            assert_eq!(host.exec(line, Time::ZERO).unsimulated(), Some(what), "{line}");
        }
        assert_eq!(host.exec("ip netns add x", Time::ZERO).status, 0);
        assert_eq!(host.exec("ip netns exec x ss -tan", Time::ZERO).stdout, heading);
    }
}
