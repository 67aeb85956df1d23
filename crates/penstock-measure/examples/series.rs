//! Curves to Parquet and back, and the figures of one.

use penstock_measure::table::{Align, Table};
use penstock_measure::{Distribution, Series, jain};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut series = Series::new();
    for second in 0..60 {
        let t = f64::from(second);
        series.add("pc", "ping", "rtt_ms", t, 12.0 + (t * 7.0) % 5.0);
    }
    let bytes = series.to_parquet()?;
    let again = Series::from_parquet(bytes)?;
    assert_eq!(again, series);

    let mut rtts: Vec<f64> = again.points("pc", "ping", "rtt_ms").iter().map(|p| p.1).collect();
    let rtt = Distribution::of(&mut rtts).ok_or("no samples")?;
    let mut table = Table::new(&[("figure", Align::Left), ("ms", Align::Right)]);
    for name in ["min", "median", "p95", "max"] {
        table.row([name.to_owned(), format!("{:.1}", rtt.named(name).ok_or(name)?)]);
    }
    print!("{}", table.text(0));
    assert_eq!((rtt.min, rtt.p50, rtt.max), (12.0, 14.0, 16.0));

    println!("Jain's index of 3, 3 and 1 Mbit/s: {:.3}", jain(&[3.0, 3.0, 1.0]).ok_or("no shares")?);
    Ok(())
}
