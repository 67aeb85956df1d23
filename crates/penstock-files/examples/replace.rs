//! A file replaced whole, and read only below a folder that was allowed.

use penstock_files::{Roots, TEXT, replace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("penstock-example-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let file = folder.join("shape.sh");
    replace(&file, "tc qdisc add dev eth0 root fq_codel\n")?;
    replace(&file, "tc qdisc add dev eth0 root cake\n")?;

    let roots = Roots::new().allow(&folder)?;
    let text = String::from_utf8(roots.read(&file, TEXT)?)?;
    print!("{text}");
    assert_eq!(text, "tc qdisc add dev eth0 root cake\n");
    // The words of a path may not lead outside.
    let refused = roots.read(&folder.join("../../etc/hostname"), TEXT).expect_err("it lies outside");
    println!("{refused}");

    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
