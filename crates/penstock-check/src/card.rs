//! What a card or a file on the machine that a script is for may have, and the machine here does not: offloads, clocks of cards, compiled eBPF.
//! Such a command is right. It runs as software would do it; where nothing here can do it, what it does to packets is unknown.

/// The command as software carries it out, where the kernel refused it for what the card cannot do; `None` where that was not the reason.
pub(crate) fn in_software(words: &[String], stderr: &str) -> Option<Vec<String>> {
    let says = |sentence: &str| stderr.contains(sentence);
    let has = |word: &str| words.iter().any(|w| w == word);
    let mut out = words.to_vec();
    let set = |out: &mut Vec<String>, name: &str, value: &str| {
        if let Some(at) = out.iter().rposition(|w| w == name).filter(|at| at + 1 < out.len()) {
            value.clone_into(&mut out[at + 1]);
        }
    };
    let drop = |out: &mut Vec<String>, name: &str, values: usize| {
        if let Some(at) = out.iter().rposition(|w| w == name) {
            out.drain(at..(at + 1 + values).min(out.len()));
        }
    };
    match () {
        () if says("Device does not support hardware offload") && has("mqprio") => {
            set(&mut out, "hw", "0");
            for (name, values) in [("mode", 1), ("shaper", 1)] {
                drop(&mut out, name, values);
            }
            // `min_rate RATE …`, `max_rate RATE …`: a rate for each class.
            for name in ["min_rate", "max_rate", "fp"] {
                if let Some(at) = out.iter().position(|w| w == name) {
                    let rates =
                        out[at + 1..].iter().take_while(|w| w.starts_with(|c: char| c.is_ascii_digit()));
                    let rates = rates.count();
                    out.drain(at..=at + rates);
                }
            }
        }
        () if says("Device does not have a PTP clock") && has("taprio") => {
            drop(&mut out, "flags", 1);
            out.extend(["clockid", "CLOCK_TAI"].map(str::to_owned));
        }
        () if says("does not support cbs offload") => set(&mut out, "offload", "0"),
        () if says("does not support ETF offload")
            || says("hw-tc-offload ethtool feature flag must be on") =>
        {
            drop(&mut out, "offload", 0);
        }
        () if has("skip_sw") && says("Operation not supported") => drop(&mut out, "skip_sw", 0),
        () => return None,
    }
    (out != words).then_some(out)
}

/// Whether a command loads a file of compiled eBPF.
pub(crate) fn loads_code(words: &[String]) -> bool {
    let bpf = words.iter().position(|w| w == "bpf");
    bpf.is_some_and(|at| {
        words[at..].iter().any(|w| {
            matches!(w.as_str(), "object-file" | "obj" | "object-pinned" | "pinned" | "pin" | "id")
                || w.ends_with(".o")
        })
    })
}

/// The object that a command loads.
pub(crate) fn object(words: &[String]) -> Option<&str> {
    let bpf = words.iter().position(|w| w == "bpf")?;
    let at = words[bpf..].iter().position(|w| matches!(w.as_str(), "obj" | "object-file" | "object"))?;
    words.get(bpf + at + 1).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn offloads_are_left_to_software() {
        let hw = "Error: Device does not support hardware offload.";
        let ptp = "Error: Device does not have a PTP clock.";
        for (line, said, want) in [
            (
                "tc qdisc add dev eth0 root mqprio num_tc 2 map 0 1 queues 1@0 1@1 hw 1 mode channel shaper bw_rlimit min_rate 1Gbit 2Gbit max_rate 4Gbit 5Gbit",
                hw,
                "tc qdisc add dev eth0 root mqprio num_tc 2 map 0 1 queues 1@0 1@1 hw 0",
            ),
            (
                "tc qdisc add dev eth0 root taprio num_tc 1 base-time 0 sched-entry S 01 100 flags 0x2",
                ptp,
                "tc qdisc add dev eth0 root taprio num_tc 1 base-time 0 sched-entry S 01 100 clockid CLOCK_TAI",
            ),
            (
                "tc filter add dev eth0 ingress flower skip_sw action drop",
                "RTNETLINK answers: Operation not supported",
                "tc filter add dev eth0 ingress flower action drop",
            ),
        ] {
            assert_eq!(in_software(&words(line), said).unwrap().join(" "), want);
            assert_eq!(in_software(&words(line), "Error: Exclusivity flag on, cannot modify."), None);
        }
    }

    #[test]
    fn compiled_code() {
        for line in [
            "tc filter add dev eth0 egress bpf da obj x.o sec y",
            "tc filter add dev eth0 ingress bpf da pinned /sys/fs/bpf/x",
        ] {
            assert!(loads_code(&words(line)), "{line}");
        }
        assert_eq!(object(&words("tc filter add dev eth0 egress bpf da obj x.o sec y")), Some("x.o"));
        assert_eq!(object(&words("tc filter add dev eth0 egress bpf da pinned /sys/fs/bpf/x")), None);
        assert!(!loads_code(&words("tc filter add dev eth0 parent 1: bpf bytecode 1,6_0_0_0 flowid 1:1")));
    }
}
