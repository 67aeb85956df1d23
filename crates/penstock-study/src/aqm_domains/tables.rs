//! Tables 1 to 5: what each run gives, means over seeds, and the published cells beside.

use super::super::NumberRow;
use penstock_lab::run::Outcome;
use penstock_measure::{fairness, jain};

/// What the tables need of one run. Goodputs in Mbit/s, drop rates in kbit/s.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Goodputs of the SACK connections.
    pub sack: Vec<f64>,
    /// Of the NewReno+ECN connections.
    pub ecn: Vec<f64>,
    /// Of the NewReno connections behind r2.
    pub inter: Vec<f64>,
    /// Drops of the connections from end to end before r0-r2.
    pub de1: f64,
    /// And before r2-r1.
    pub de2: f64,
    /// Drops of the NewReno connections behind r2.
    pub di: f64,
    /// Mean wait before r2-r1, ms.
    pub wait: f64,
}

impl Cell {
    /// A cell of the tables, by the names of `published.csv`.
    pub fn value(&self, name: &str) -> Option<f64> {
        let sum = |x: &[f64]| x.iter().sum::<f64>();
        let ends = || [self.sack.as_slice(), self.ecn.as_slice()].concat();
        Some(match name {
            "end" => sum(&self.sack) + sum(&self.ecn),
            "inter" => sum(&self.inter),
            "de1" => self.de1,
            "de2" => self.de2,
            "di" => self.di,
            "fie" => jain(&ends())?,
            "fii" => jain(&self.inter)?,
            "gecn" => sum(&self.ecn),
            "gsack" => sum(&self.sack),
            "fiecn" => jain(&self.ecn)?,
            "fisack" => jain(&self.sack)?,
            "wait" => self.wait,
            _ => return None,
        })
    }
}

/// What a run gives the tables.
pub(super) fn cell(outcome: &Outcome) -> Cell {
    let record = &outcome.record;
    // As the document has it: what arrived in the whole run, over its length.
    let goodputs = |group: &str| -> Vec<f64> {
        let flows = record.flows.iter().filter(|f| f.group.as_deref() == Some(group));
        flows.map(|f| f.payload_bytes.unwrap_or(0) as f64 * 8.0 / record.duration_s / 1e6).collect()
    };
    let drops = |group: &str, host: &str| -> f64 {
        let groups = record.groups.iter().filter(|g| g.name == group);
        let links = groups.flat_map(|g| &g.links).filter(|l| l.host == host && l.dev == "eth1");
        links.fold(0.0, |sum, l| sum + l.lost_bit_s / 1e3)
    };
    let ends = |host| drops("SACK", host) + drops("NewReno+ECN", host);
    let wait = record.devices.iter().find(|d| d.host == "r2" && d.dev == "eth1").and_then(|d| d.sojourn_ms);
    Cell {
        sack: goodputs("SACK"),
        ecn: goodputs("NewReno+ECN"),
        inter: goodputs("NewReno"),
        de1: ends("r0"),
        de2: ends("r2"),
        di: drops("NewReno", "r2"),
        wait: wait.map_or(0.0, |w| w.mean),
    }
}

/// One column of the tables over its seeds.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// `RED-DT`, `DT-RED` or `DT-DT`.
    pub order: &'static str,
    /// `gentle`, `adaptive`, or empty without RED.
    pub red: &'static str,
    /// Packets.
    pub queue: u32,
    /// A run each.
    pub seeds: Vec<Cell>,
}

impl Column {
    /// A cell over the seeds: mean, least, greatest.
    pub fn over(&self, name: &str) -> Option<(f64, f64, f64)> {
        let values: Vec<f64> = self.seeds.iter().filter_map(|c| c.value(name)).collect();
        let (mean, _) = fairness::confidence(&values)?;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        Some((mean, least, values.iter().copied().fold(f64::NEG_INFINITY, f64::max)))
    }
    /// Its mean over the seeds; NaN where nothing was measured, so that no claim holds by it.
    pub fn mean(&self, name: &str) -> f64 {
        self.over(name).map_or(f64::NAN, |(mean, _, _)| mean)
    }
    /// Drops of all TCP connections together, kbit/s.
    pub fn drops(&self) -> f64 {
        self.mean("de1") + self.mean("de2") + self.mean("di")
    }
    /// Goodput of a connection from end to end over that of one behind r2.
    pub fn ratio(&self) -> f64 {
        (self.mean("end") / 18.0) / (self.mean("inter") / 9.0)
    }
}

/// The whole matrix.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// Its columns.
    pub columns: Vec<Column>,
}

impl Tables {
    /// A column; without RED it serves both names.
    pub fn column(&self, order: &str, red: &str, queue: u32) -> Option<&Column> {
        self.columns
            .iter()
            .find(|c| c.order == order && c.queue == queue && (c.red.is_empty() || c.red == red))
    }
    /// The published cells with what the runs gave.
    pub(super) fn numbers(&self, published: &str) -> Vec<NumberRow> {
        published.lines().filter(|l| !l.starts_with('#')).filter_map(|l| self.number(l)).collect()
    }
    fn number(&self, line: &str) -> Option<NumberRow> {
        let words: Vec<&str> = line.split(',').collect();
        let [table, order, red, queue, cell, published, ns2, ns2_min, ns2_max] = words.try_into().ok()?;
        let red = match red {
            "red" => "gentle",
            "ared" => "adaptive",
            _ => "",
        };
        let column = self.column(order, red, queue.parse().ok()?)?;
        let measured = column.over(cell);
        let (what, unit) = match cell {
            "end" => ("goodput end nodes", "Mbit/s"),
            "inter" => ("goodput inter. nodes", "Mbit/s"),
            "de1" => ("drops end r0-r2", "kbit/s"),
            "de2" => ("drops end r2-r1", "kbit/s"),
            "di" => ("drops inter. nodes", "kbit/s"),
            "fie" => ("fairness end nodes", ""),
            "fii" => ("fairness inter. nodes", ""),
            "gecn" => ("goodput NewReno+ECN", "Mbit/s"),
            "gsack" => ("goodput SACK", "Mbit/s"),
            "fiecn" => ("fairness NewReno+ECN", ""),
            _ => ("fairness SACK", ""),
        };
        let red = if red.is_empty() { String::new() } else { format!(" {red}") };
        Some(NumberRow {
            experiment: table.to_owned(),
            quantity: format!("{order}{red} {queue}: {what}"),
            unit: unit.to_owned(),
            published: published.parse().ok()?,
            measured: measured.map(|(mean, _, _)| mean),
            range: measured.map(|(_, least, most)| [least, most]),
            witness: Some([ns2.parse().ok()?, ns2_min.parse().ok()?, ns2_max.parse().ok()?]),
            table: String::new(),
            excluded: None,
        })
    }
}

/// How the numbers fare against the document and against ns-2, in a sentence each.
pub(super) fn remark(numbers: &[NumberRow], seeds: u64) -> String {
    let of = |cell: &dyn Fn(&NumberRow) -> Option<bool>| {
        let judged: Vec<bool> = numbers.iter().filter_map(cell).collect();
        (judged.iter().filter(|ok| **ok).count(), judged.len())
    };
    let within = |n: &NumberRow, share: f64| n.difference().map(|d| d.abs() <= share);
    let busy = of(&|n| within(n, 0.08).filter(|_| n.experiment == "table-1" && n.published > 0.3));
    let starved = of(&|n| {
        let measured = n.measured.filter(|_| n.experiment == "table-1" && n.published <= 0.3)?;
        Some((1.0 / 1.5..=1.5).contains(&(measured / n.published)))
    });
    let fair = of(&|n| {
        let measured = n.measured.filter(|_| n.experiment == "table-3" && n.published > 0.9)?;
        Some((measured - n.published).abs() <= 0.05)
    });
    let spread = of(&|n| {
        let ([_, least, most], measured) = (n.witness?, n.measured?);
        Some((least..=most).contains(&measured))
    });
    format!(
        "Means over {seeds} seeds. Table 1: {} of {} goodputs above 0.3 Mbit/s within 8 % of the published, {} of {} starved ones within a \
         factor of 1.5. Table 3: {} of {} indices above 0.9 within 0.05. Within ns-2's own range over 12 seeds: {} of {} means.\n",
        busy.0, busy.1, starved.0, starved.1, fair.0, fair.1, spread.0, spread.1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_summed_and_averaged() {
        let run = |x: f64| Cell { sack: vec![x, x], ecn: vec![2.0 * x], inter: vec![x], ..Cell::default() };
        let column = Column { order: "DT-DT", red: "", queue: 72, seeds: vec![run(1.0), run(3.0)] };
        assert_eq!(column.over("end"), Some((8.0, 4.0, 12.0)));
        assert_eq!(column.over("fii"), Some((1.0, 1.0, 1.0)));
        assert!((column.ratio() - 2.0).abs() < 1e-12);
        let tables = Tables { columns: vec![column] };
        let numbers = tables
            .numbers("# head\ntable-1,DT-DT,-,72,end,8.8,8.5,8.1,9\ntable-1,DT-RED,red,72,end,1,1,1,1\n");
        assert_eq!(numbers.len(), 1);
        assert_eq!((numbers[0].measured, numbers[0].range), (Some(8.0), Some([4.0, 12.0])));
        assert!(remark(&numbers, 2).contains("0 of 1 goodputs above 0.3 Mbit/s"), "{}", remark(&numbers, 2));
    }
}
