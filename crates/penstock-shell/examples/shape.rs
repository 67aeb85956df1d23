//! A shell script on a virtual machine: loops, substitutions and pipes are the interpreter's, `tc` and `ip` are the machine's.

use penstock_host::Host;
use penstock_model::{Kernel, Time};
use penstock_shell::{At, Kept, Script, run};

const TEXT: &str = r#"
set -eu
DEV=eth0
tc qdisc add dev "$DEV" root handle 1: htb default 30
i=0
for rate in 5 3 1; do
    i=$((i + 10))
    tc class add dev "$DEV" parent 1: classid "1:$i" htb rate "${rate}mbit"
done
tc class show dev "$DEV" | grep -c htb
"#;

fn main() -> Result<(), String> {
    let mut host = Host::new("box", Kernel::V6_12, 1);
    host.add_device("eth0");
    let script = Script { text: TEXT.to_owned(), name: "shape.sh".to_owned(), ..Script::default() };
    let mut kept = Kept::default();
    let status = run(&script, &mut At { host: &mut host, now: Time::ZERO }, &mut kept)?;
    for given in &kept.commands {
        println!("{}:{}: {}", given.file, given.line, given.words.join(" "));
    }
    print!("{}", kept.stdout);
    assert_eq!((status, kept.stdout.as_str(), kept.stderr.as_str()), (0, "3\n", ""));
    Ok(())
}
