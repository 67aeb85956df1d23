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
    /// Instructions for each packet-hop in six scenarios, beside those of crates/penstock-xtask/counts.txt; fails above +3 %
    Count {
        /// Write counts.txt anew: the commit says why
        #[arg(long)]
        bless: bool,
        /// Make one scenario
        #[arg(long, hide = true)]
        child: Option<String>,
    },
    /// What a thing costs where there are ten times as many: set-up and packets of flows, hosts, routes, classes, filters, rules, sets …;
    /// fails where something grows that should not
    Growth {
        /// Only cases whose name holds one of these
        only: Vec<String>,
        /// CPU time even where valgrind could count instructions
        #[arg(long)]
        time: bool,
        /// Make one case: its name, how many things, how many packets
        #[arg(long, num_args = 3, hide = true)]
        child: Option<Vec<String>>,
    },
    /// Make the tables of docs/notes/speed.md anew: compare, count, growth, memory, queues; an hour for all
    Write {
        /// Only these
        tables: Vec<String>,
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
        Bench::Count { child: Some(ref name), .. } => return crate::count::child(name),
        Bench::Count { bless, .. } => return crate::count::run(bless),
        Bench::Growth { child: Some(ref case), .. } => {
            return crate::growth::child(&case[0], case[1].parse()?, case[2].parse()?);
        }
        Bench::Growth { ref only, time, .. } => return crate::growth::run(only, time),
        Bench::Write { ref tables } => return crate::speed::write(tables),
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
