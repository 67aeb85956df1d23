//! `penstock report`.

use anyhow::{Result, bail};
use penstock_lab::run::{Folder, write_report};
use penstock_measure::number::Unit;
use penstock_measure::table::{Align, Table};
use serde_json::json;
use std::collections::HashMap;
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
    /// Print where the reports are, and the table, as JSON
    #[arg(long)]
    json: bool,
}

/// Does it.
pub fn main(args: &Args) -> Result<ExitCode> {
    let mut folders = Vec::new();
    let mut faults = Vec::new();
    for path in &args.runs {
        crate::near::there(path)?;
        match Folder::read(path) {
            Ok(folder) => folders.push(folder),
            Err(e) => faults.push(e),
        }
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\npenstock: "));
    }
    let mut text = String::new();
    let mut written = Vec::new();
    for folder in &folders {
        let file = write_report(folder).map_err(anyhow::Error::msg)?;
        text.push_str(&format!("{}\n", file.display()));
        let run = folder.path.display().to_string();
        written
            .push(json!({ "run": run, "title": folder.record.title, "report": file.display().to_string() }));
    }
    let rows = figures(&folders);
    if args.json {
        let values = |row: &Row| row.values.iter().map(|v| v.as_ref().map(|v| v.0)).collect::<Vec<_>>();
        let rows = rows.iter().map(|row| {
            json!({ "subject": row.subject, "figure": row.figure, "unit": row.unit, "values": values(row) })
        });
        crate::json(&json!({ "reports": written, "rows": rows.collect::<Vec<_>>() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if folders.len() > 1 {
        text.push('\n');
        text.push_str(&side_by_side(&folders, &rows));
    }
    crate::show(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A figure of several runs.
struct Row {
    /// A program or a flow.
    subject: String,
    figure: &'static str,
    unit: &'static str,
    /// Each run's value, in the unit and as people read it; absent where the run has no such figure.
    values: Vec<Option<(f64, String)>>,
}

/// What the runs have by the same names.
fn figures(folders: &[Folder]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut places: HashMap<(String, &'static str), usize> = HashMap::new();
    let mut put = |run: usize, subject: &str, figure, unit, value: Option<(f64, String)>| {
        let Some(value) = value else { return };
        let at = *places.entry((subject.to_owned(), figure)).or_insert_with(|| {
            rows.push(Row { subject: subject.to_owned(), figure, unit, values: vec![None; folders.len()] });
            rows.len() - 1
        });
        rows[at].values[run] = Some(value);
    };
    for (run, folder) in folders.iter().enumerate() {
        let bit = |x: f64| (x, Unit::BitPerSecond.show(x));
        let ms = |x: f64| (x, Unit::Millisecond.show(x));
        for app in &folder.record.apps {
            put(run, &app.name, "throughput", "bit/s", app.throughput_bit_s.map(bit));
            put(run, &app.name, "rtt mean", "ms", app.rtt_ms.map(|d| ms(d.mean)));
            put(run, &app.name, "rtt p95", "ms", app.rtt_ms.map(|d| ms(d.p95)));
        }
        for flow in folder.record.flows.iter().filter(|f| f.app.is_none()).take(64) {
            put(run, &flow.name, "goodput", "bit/s", Some(bit(flow.goodput_bit_s)));
            put(run, &flow.name, "delay p95", "ms", flow.owd_ms.map(|d| ms(d.p95)));
            let took = flow.start_s.zip(flow.end_s).filter(|_| flow.proto == "tcp");
            put(run, &flow.name, "duration", "ms", took.map(|(from, to)| ms((to - from) * 1000.0)));
            let lost = format!("{}/{}", flow.lost_packets, flow.sent_packets);
            put(run, &flow.name, "lost", "", Some((flow.lost_packets as f64, lost)));
        }
    }
    rows
}

/// These as a table, a column for each run.
fn side_by_side(folders: &[Folder], rows: &[Row]) -> String {
    let names: Vec<String> = folders
        .iter()
        .map(|f| f.path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    let mut columns = vec![("", Align::Left)];
    columns.extend(names.iter().map(|n| (n.as_str(), Align::Right)));
    let mut table = Table::new(&columns);
    for row in rows {
        let cells = row.values.iter().map(|v| v.as_ref().map(|v| v.1.clone()).unwrap_or_default());
        table.row(std::iter::once(format!("{} {}", row.subject, row.figure)).chain(cells));
    }
    table.text(2)
}
