//! Units as tc reads and prints them, and time as whole nanoseconds.

use penstock_model::{Handle, Kernel, Rate, Size, Span};

fn main() -> Result<(), String> {
    let rate = Rate::parse("1mibit")?;
    let burst = Size::parse("15k")?;
    let class = Handle::parse_classid("1:20")?;
    // How long the burst takes at that rate.
    let wait = Span::from_ns((burst.bytes() * 8 * 1_000_000_000 / rate.bit_per_s()) as i64);
    println!("class {class}: {burst} at {} takes {wait}", rate.tc_text(Kernel::V6_12, false));
    assert_eq!((rate.bit_per_s(), burst.bytes()), (1_048_576, 15_360));
    assert_eq!(wait.as_ns(), 117_187_500);
    Ok(())
}
