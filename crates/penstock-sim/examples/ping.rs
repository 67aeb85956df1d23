//! Two hosts, one link, one `ping`: the same output at each run.

use penstock_model::{Kernel, Rate, Span, Time};
use penstock_sim::{End, LinkSpec, World};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut world = World::new(1);
    let a = world.add_host("a", Kernel::V6_12);
    let b = world.add_host("b", Kernel::V6_12);
    let rate = Some(Rate::from_bit_per_s(10_000_000));
    world.add_link(LinkSpec::new(End::new(a, "eth0"), End::new(b, "eth0"), rate, Span::from_ms(5)))?;
    for (host, address) in [(a, "10.0.0.1/24"), (b, "10.0.0.2/24")] {
        for line in [format!("ip addr add {address} dev eth0"), "ip link set eth0 up".to_owned()] {
            let output = world.exec(host, &line);
            assert_eq!(output.status, 0, "{line}: {}", output.stderr);
        }
    }
    world.add_app(a, "ping -c 3 10.0.0.2", Time::ZERO);
    let results = world.run(Time::from_ns(5_000_000_000));
    let printed = &results.apps[0].output;
    print!("{printed}");
    assert!(printed.contains("3 packets transmitted, 3 received, 0% packet loss"), "{printed}");
    Ok(())
}
