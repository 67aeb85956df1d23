//! `xtask bench`: how fast the whole is, measured in CPU time.

use anyhow::Result;
use clap::Subcommand;
use cpu_time::ProcessTime;

/// What to measure.
#[derive(Subcommand)]
pub enum Bench {
    /// The same dumbbells in ns-2 and ns-3, where they are installed, and here: packet-hops per second of CPU and the ratio
    Compare {
        /// Simulated seconds of the smaller scenario
        #[arg(long, default_value_t = 20)]
        seconds: u32,
    },
    /// The simulator: ten SACK flows over a dumbbell, packet-hops per second of CPU
    Sim {
        /// Print `{"packet_hops_per_cpu_s": …}` and nothing else
        #[arg(long)]
        json: bool,
        /// Simulated seconds of each of the five runs, of which the best counts
        #[arg(long, default_value_t = 20)]
        seconds: u32,
    },
}

/// Measures.
pub fn run(what: &Bench) -> Result<()> {
    let (json, seconds) = match *what {
        Bench::Compare { seconds } => return crate::compare::run(seconds),
        Bench::Sim { json, seconds } => (json, seconds),
    };
    penstock_sim::bench_dumbbell(10, 2, 1);
    let mut best = 0.0f64;
    for seed in 1..=5 {
        let start = ProcessTime::now();
        let hops = penstock_sim::bench_dumbbell(10, seconds, seed);
        let took = start.elapsed().as_secs_f64();
        if !json {
            println!(
                "{hops} packet-hops in {took:.3} s of CPU: {:.2} million a second",
                hops as f64 / took / 1e6
            );
        }
        best = best.max(hops as f64 / took);
    }
    if json {
        println!("{}", serde_json::json!({ "packet_hops_per_cpu_s": best.round() }));
    }
    Ok(())
}
