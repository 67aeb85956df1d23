//! Public threads in which people met what a rule finds.

/// Code, address, and what happened there.
const MET: &[(&str, &str, &str)] = &[
    ("PS110", "https://github.com/magnific0/wondershaper/issues/47", "the kernel's log warns of each class"),
    ("PS110", "https://github.com/LibreQoE/LibreQoS/issues/53", "whether the kernel's warning matters"),
    (
        "PS122",
        "https://github.com/kubernetes/kubernetes/issues/90838",
        "a pod at 10 Mbit/s begins with 2 Gbit/s",
    ),
    (
        "PS122",
        "https://github.com/containernetworking/plugins/issues/609",
        "the same of the bandwidth plugin",
    ),
    (
        "PS160",
        "https://github.com/iproute2/iproute2/issues/56",
        "a delay of 1 s loses packets at many requests a second",
    ),
    (
        "PS160",
        "https://github.com/chaosblade-io/chaosblade/issues/1080",
        "a delay loses packets on a busy link",
    ),
    ("PS160", "https://github.com/firezone/firezone/pull/13839", "tests lose packets to the default of 1000"),
    (
        "PS241",
        "https://github.com/openwrt/openwrt/pull/4092",
        "a generated script sets up an ifb that nobody made",
    ),
    (
        "PS241",
        "https://github.com/vyos/vyos-documentation/pull/1290",
        "an example that forgot to make the ifb",
    ),
    (
        "PS250",
        "https://github.com/projectcalico/calico/pull/11899",
        "adding fails where a qdisc is there already",
    ),
    (
        "PS250",
        "https://github.com/litmuschaos/litmus-go/pull/285",
        "adding fails after a run that did not clean up",
    ),
    ("PS250", "https://github.com/tylertreat/comcast/issues/41", "File exists, and what it meant"),
];

/// The threads of a rule: address, and what happened there.
pub fn met(code: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    MET.iter().filter(move |m| m.0 == code).map(|m| (m.1, m.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_of_rules_that_there_are_and_stand_once() {
        let known: Vec<&str> = super::super::all().map(|r| r.code).collect();
        assert!(MET.iter().all(|m| known.contains(&m.0) && m.1.starts_with("https://")));
        assert!(MET.iter().enumerate().all(|(n, m)| MET[..n].iter().all(|o| o.1 != m.1)));
        assert!(MET.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(met("PS110").count(), 2);
    }
}
