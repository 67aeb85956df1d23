//! `bpf obj FILE`: what tc says of objects, and shows. Ids, tags and texts are those of iproute2 6.1.0 on linux 6.12.117.

use penstock_host::{FileError, Files, Host};
use penstock_model::{Kernel, Time, binary};

/// The objects beside this file, and that of an example.
struct Objects;

impl Files for Objects {
    fn read(&mut self, path: &str) -> Result<String, FileError> {
        let folder = match path {
            "edt.o" => concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/"),
            _ => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/objects/"),
        };
        match path {
            "text" => Ok("no object\n".to_owned()),
            "classic" => Ok("1,\n6 0 0\t5\n".to_owned()),
            _ => std::fs::read(format!("{folder}{path}"))
                .map(|bytes| binary::text_lossy(&bytes))
                .map_err(|_| FileError::NotFound),
        }
    }
}

fn machine() -> Host {
    let mut host = Host::new("m", Kernel::V6_12, 1);
    host.add_device("d0");
    check(&mut host, "tc qdisc add dev d0 clsact", 0, "");
    host
}

#[track_caller]
fn check(host: &mut Host, line: &str, status: i32, text: &str) {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let output = host.command(&words, &mut Objects, Time::ZERO);
    assert_eq!((output.status, output.stdout + &output.stderr), (status, text.to_owned()), "{line}");
}

#[test]
fn programs_have_the_kernel_s_ids_and_tags() {
    let m = &mut machine();
    let mut want = Vec::new();
    for (pref, object, section, program, id, tag) in [
        (1, "port.o", "classifier", "port", 4, "d89410f8a64ffb1d"),
        (2, "count.o", "classifier", "count", 8, "65a5bdee10ecd0cc"),
        (3, "edt.o", "edt", "pace", 12, "96f465bc3e82bf76"),
        (4, "dscp.o", "classifier", "dscp", 16, "9c58b62e94c4745e"),
        (5, "redirect.o", "redirect", "send", 20, "b89ef332d88228c6"),
    ] {
        check(
            m,
            &format!("tc filter add dev d0 egress pref {pref} bpf da obj {object} sec {section}"),
            0,
            "",
        );
        want.push(format!(
            "filter protocol all pref {pref} bpf chain 0 \nfilter protocol all pref {pref} bpf chain 0 handle 0x1 \
             {object}:[{section}] direct-action not_in_hw id {id} name {program} tag {tag} jited \n"
        ));
    }
    // One that is refused has used tc's own three ids up.
    let refused = "libbpf: prog 'bare': BPF program load failed: Permission denied\n\
                   libbpf: prog 'bare': -- BEGIN PROG LOAD LOG --\ninvalid access to packet\n-- END PROG LOAD LOG --\n\
                   libbpf: prog 'bare': failed to load: -13\nlibbpf: failed to load object 'bare.o'\nUnable to load program\n";
    check(m, "tc filter add dev d0 egress pref 6 bpf da obj bare.o", 1, refused);
    check(m, "tc filter add dev d0 egress pref 6 bpf da object-file fib.o", 0, "");
    want.push(
        "filter protocol all pref 6 bpf chain 0 \nfilter protocol all pref 6 bpf chain 0 handle 0x1 fib.o:[classifier] \
         direct-action not_in_hw id 27 name fib tag dedae7f074032639 jited \n"
            .to_owned(),
    );
    check(m, "tc filter show dev d0 egress", 0, &want.concat());
    check(m, "tc actions add action bpf obj six.o index 1", 0, "");
    let action = "total acts 1\n\n\taction order 0: bpf six.o:[action] id 31 name six tag e02ded8638365fad jited default-action pipe\n\
                  \t index 1 ref 1 bind 0\n \tnot_in_hw\n";
    check(m, "tc actions ls action bpf", 0, action);
    // What is not simulated is named before anything runs.
    let said = "m d0: filter \"bpf with the helper fib_lookup\" can be set up and shown here, but what it does to packets is not simulated yet";
    assert_eq!(m.unsimulated(), [said]);
}

#[test]
fn json_has_an_object_of_its_own() {
    let m = &mut machine();
    check(m, "tc filter add dev d0 egress pref 9 bpf obj port.o classid 1:3", 0, "");
    let json = "[{\"protocol\":\"all\",\"pref\":9,\"kind\":\"bpf\",\"chain\":0},{\"protocol\":\"all\",\"pref\":9,\"kind\":\"bpf\",\
                \"chain\":0,\"options\":{\"handle\":\"0x1\",\"flowid\":\"1:3\",\"bpf_name\":\"port.o:[classifier]\",\
                \"not_in_hw\":true,\"prog\":{\"id\":4,\"name\":\"port\",\"tag\":\"d89410f8a64ffb1d\",\"jited\":1}}}]\n";
    check(m, "tc -j filter show dev d0 egress", 0, json);
}

#[test]
fn what_tc_says_of_objects_that_are_not_what_they_should_be() {
    let m = &mut machine();
    for (rest, said) in [
        ("da obj nix.o", "Cannot initialize ELF context!\n"),
        ("da obj text", "Cannot initialize ELF context!\n"),
        ("da obj port.o sec nix", "object file doesn't contain sec nix\n"),
        ("da obj port.o program nix", "object file doesn't contain prog nix\n"),
        ("da obj six.o", "object file doesn't contain sec classifier\n"),
    ] {
        check(
            m,
            &format!("tc filter add dev d0 egress bpf {rest}"),
            1,
            &format!("{said}Unable to load program\n"),
        );
    }
    let pinned = "Couldn't retrieve pinned program '/sys/fs/bpf/nix': No such file or directory\nUnable to parse bpf command line\n";
    check(m, "tc filter add dev d0 egress bpf da pinned /sys/fs/bpf/nix", 1, pinned);
    let action = "bad action parsing\nparse_action: bad value (5:bpf)!\nIllegal \"action\"\n";
    for (rest, said) in [
        ("obj nix.o sec classifier", "Cannot initialize ELF context!\n".to_owned()),
        (
            "obj bare.o sec classifier",
            "libbpf: prog 'bare': BPF program load failed: Permission denied\n\
          libbpf: prog 'bare': -- BEGIN PROG LOAD LOG --\ninvalid access to packet\n-- END PROG LOAD LOG --\n\
          libbpf: prog 'bare': failed to load: -13\nlibbpf: failed to load object 'bare.o'\n"
                .to_owned(),
        ),
    ] {
        check(m, &format!("tc actions add action bpf {rest}"), 255, &format!("{said}{action}"));
    }
    // A classic program from a file.
    check(m, "tc filter add dev d0 egress pref 1 bpf bytecode-file classic", 0, "");
    let shown = "filter protocol all pref 1 bpf chain 0 \nfilter protocol all pref 1 bpf chain 0 handle 0x1 not_in_hw bytecode '1,6 0 0 5'\n";
    check(m, "tc filter show dev d0 egress", 0, shown);
}
