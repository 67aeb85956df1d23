//! `penstock report`.

use anyhow::{Result, bail};
use penstock_lab::run::{Folder, write_report};
use penstock_measure::number::Unit;
use penstock_measure::table::{Align, Table};
use std::path::PathBuf;
use std::process::ExitCode;

/// What `penstock report` takes.
#[derive(clap::Args)]
#[command(
    after_help = "With several runs, a table of their programs and flows side by side is printed as well."
)]
pub struct Args {
    /// Run folders, as `penstock run` writes them
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
}

/// Does it.
pub fn main(args: &Args) -> Result<ExitCode> {
    let mut folders = Vec::new();
    let mut faults = Vec::new();
    for path in &args.runs {
        match Folder::read(path) {
            Ok(folder) => folders.push(folder),
            Err(e) => faults.push(e),
        }
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\npenstock: "));
    }
    let mut text = String::new();
    for folder in &folders {
        let file = write_report(folder).map_err(anyhow::Error::msg)?;
        text.push_str(&format!("{}\n", file.display()));
    }
    if folders.len() > 1 {
        text.push('\n');
        text.push_str(&side_by_side(&folders));
    }
    crate::show(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What several runs have by the same name, in a column each.
fn side_by_side(folders: &[Folder]) -> String {
    let names: Vec<String> = folders
        .iter()
        .map(|f| f.path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    let mut columns = vec![("", Align::Left)];
    columns.extend(names.iter().map(|n| (n.as_str(), Align::Right)));
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    let mut put = |run: usize, what: String, value: Option<String>| {
        let Some(value) = value else { return };
        let at = rows.iter().position(|(name, _)| *name == what).unwrap_or_else(|| {
            rows.push((what, vec![String::new(); folders.len()]));
            rows.len() - 1
        });
        rows[at].1[run] = value;
    };
    for (run, folder) in folders.iter().enumerate() {
        let bit = |x: f64| Unit::BitPerSecond.show(x);
        let ms = |x: f64| Unit::Millisecond.show(x);
        for app in &folder.record.apps {
            put(run, format!("{} throughput", app.name), app.throughput_bit_s.map(bit));
            put(run, format!("{} rtt mean", app.name), app.rtt_ms.map(|d| ms(d.mean)));
            put(run, format!("{} rtt p95", app.name), app.rtt_ms.map(|d| ms(d.p95)));
        }
        for flow in folder.record.flows.iter().filter(|f| f.app.is_none()).take(64) {
            put(run, format!("{} goodput", flow.name), Some(bit(flow.goodput_bit_s)));
            put(run, format!("{} delay p95", flow.name), flow.owd_ms.map(|d| ms(d.p95)));
            let took = flow.start_s.zip(flow.end_s).filter(|_| flow.proto == "tcp");
            put(run, format!("{} duration", flow.name), took.map(|(from, to)| ms((to - from) * 1000.0)));
            let lost = format!("{}/{}", flow.lost_packets, flow.sent_packets);
            put(run, format!("{} lost", flow.name), Some(lost));
        }
    }
    let mut table = Table::new(&columns);
    for (name, cells) in rows {
        table.row(std::iter::once(name).chain(cells));
    }
    table.text(2)
}
