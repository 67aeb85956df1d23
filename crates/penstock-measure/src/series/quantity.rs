//! What a sampled counter or gauge becomes in its unit.

/// What the whole numbers of a series stand for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Quantity {
    /// A counter: how much more a second, times the first, by the second.
    Rate(i64, f64),
    /// A counter: how much more since the sample before.
    More,
    /// As it stands, times the first, by the second.
    Gauge(f64, f64),
    /// As it stands, by that, where something was measured: above 0.
    Measured(f64),
}

/// The instants at which samples were taken, in their order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Instants {
    ns: Vec<i64>,
    seconds: Vec<f64>,
}

impl Instants {
    /// From nanoseconds since the start of the run.
    pub fn new(ns: Vec<i64>) -> Instants {
        let seconds = ns.iter().map(|&ns| ns as f64 / 1e9).collect();
        Instants { ns, seconds }
    }
    /// The points of a curve, seconds and value: of a quantity that had these values from instant `first` on. A counter has its first point
    /// at its second instant; where it went back, its object was made anew, and had counted nothing.
    pub fn points(&self, first: usize, values: &[i64], quantity: Quantity) -> Vec<(f64, f64)> {
        let first = first.min(self.ns.len());
        let count = values.len().min(self.ns.len() - first);
        let (ns, seconds, values) =
            (&self.ns[first..][..count], &self.seconds[first..][..count], &values[..count]);
        let mut points = Vec::new();
        match quantity {
            Quantity::Rate(factor, by) => {
                points.reserve_exact(count.saturating_sub(1));
                for i in 1..count {
                    let long = ns[i] - ns[i - 1];
                    if long > 0 {
                        let more = (values[i] - values[i - 1]).max(0) * factor;
                        points.push((seconds[i], more as f64 * 1e9 / long as f64 / by));
                    }
                }
            }
            Quantity::More => {
                points.reserve_exact(count.saturating_sub(1));
                for i in 1..count {
                    points.push((seconds[i], (values[i] - values[i - 1]).max(0) as f64));
                }
            }
            Quantity::Gauge(factor, by) => {
                points.reserve_exact(count);
                for i in 0..count {
                    points.push((seconds[i], values[i] as f64 * factor / by));
                }
            }
            Quantity::Measured(by) => {
                points.reserve_exact(values.iter().filter(|&&v| v > 0).count());
                for i in 0..count {
                    if values[i] > 0 {
                        points.push((seconds[i], values[i] as f64 / by));
                    }
                }
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quantity_has_its_points() {
        let instants = Instants::new(vec![0, 500_000_000, 500_000_000, 1_000_000_000]);
        let points = |first, values: &[i64], quantity| instants.points(first, values, quantity);
        // Two samples at one instant tell nothing of a rate; a counter that went back begins anew.
        assert_eq!(points(0, &[0, 100, 100, 40], Quantity::Rate(8, 1.0)), [(0.5, 1600.0), (1.0, 0.0)]);
        assert_eq!(points(0, &[3, 5, 5, 1], Quantity::More), [(0.5, 2.0), (0.5, 0.0), (1.0, 0.0)]);
        assert_eq!(points(2, &[4, 6], Quantity::Gauge(8.0, 2.0)), [(0.5, 16.0), (1.0, 24.0)]);
        assert_eq!(points(1, &[0, 6, -1], Quantity::Measured(2.0)), [(0.5, 3.0)]);
        // More values than instants, and none.
        assert_eq!(points(3, &[1, 2], Quantity::Gauge(1.0, 1.0)), [(1.0, 1.0)]);
        assert_eq!(points(9, &[1], Quantity::More), []);
    }
}
