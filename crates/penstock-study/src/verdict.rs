//! What a judge says of a claim: of one run of each experiment, and over the seeds.

use super::texts::together;

/// What a judge says of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// One of the constants of this type.
    pub verdict: &'static str,
    /// What the study printed.
    pub published: String,
    /// What the runs showed.
    pub measured: String,
    /// Why, or on what terms.
    pub note: String,
}

impl Judgement {
    /// The claim passes its stated check.
    pub const HOLDS: &'static str = "holds";
    /// It does not.
    pub const FAILS: &'static str = "fails";
    /// It does not with what the document printed, and does with a setting that the note names.
    pub const AS_PRINTED: &'static str = "fails as printed";
    /// Not judged, and why.
    pub const OPEN: &'static str = "open";
    /// A question that the document leaves open: what was found.
    pub const EXPLORED: &'static str = "explored";

    fn with(verdict: &'static str, published: &str, measured: String, note: &str) -> Judgement {
        Judgement { verdict, published: published.to_owned(), measured, note: note.to_owned() }
    }
    /// `holds` or `fails`.
    pub fn of(holds: bool, published: &str, measured: String, note: &str) -> Judgement {
        Judgement::with(if holds { Judgement::HOLDS } else { Judgement::FAILS }, published, measured, note)
    }
    /// `holds` with what was printed, else `fails as printed` where it holds with another setting, else `fails`.
    pub fn printed(
        printed: bool,
        otherwise: bool,
        published: &str,
        measured: String,
        note: &str,
    ) -> Judgement {
        let verdict = match (printed, otherwise) {
            (true, _) => Judgement::HOLDS,
            (false, true) => Judgement::AS_PRINTED,
            (false, false) => Judgement::FAILS,
        };
        Judgement::with(verdict, published, measured, note)
    }
    /// What was found on a question that the document leaves open.
    pub fn explored(published: &str, measured: String, note: &str) -> Judgement {
        Judgement::with(Judgement::EXPLORED, published, measured, note)
    }
    /// Not judged, and why.
    pub fn open(why: String) -> Judgement {
        Judgement { verdict: Judgement::OPEN, published: String::new(), measured: String::new(), note: why }
    }
    /// Whether the claim holds.
    pub fn holds(&self) -> bool {
        self.verdict == Judgement::HOLDS
    }
    /// Whether it fails, as printed or at all.
    pub fn fails(&self) -> bool {
        self.verdict.starts_with(Judgement::FAILS)
    }

    /// The verdict over seeds, and in how many the claim holds.
    ///
    /// It holds where it does in at least nine of ten seeds; `fails as printed` where it holds or is that in as many. A claim that some
    /// seeds leave open is open. Numbers of the measured text become their median and range.
    ///
    /// # Panics
    /// Without any seed.
    pub fn over(seeds: &[Judgement]) -> (Judgement, usize) {
        let count = |wanted: &str| seeds.iter().filter(|j| j.verdict == wanted).count();
        let enough = |n: usize| n * 10 >= seeds.len() * 9;
        let held = count(Judgement::HOLDS);
        let first = seeds.first().expect("a study runs at least one seed");
        if let Some(open) = seeds.iter().find(|j| j.verdict == Judgement::OPEN) {
            return (open.clone(), held);
        }
        let verdict = if count(Judgement::EXPLORED) == seeds.len() {
            Judgement::EXPLORED
        } else if enough(held) {
            Judgement::HOLDS
        } else if enough(held + count(Judgement::AS_PRINTED)) {
            Judgement::AS_PRINTED
        } else {
            Judgement::FAILS
        };
        let texts: Vec<&str> = seeds.iter().map(|j| j.measured.as_str()).collect();
        (Judgement { verdict, measured: together(&texts), ..first.clone() }, held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(held: usize, others: &[&'static str]) -> Vec<Judgement> {
        let of = |verdict| Judgement::with(verdict, "", "x 1.0".to_owned(), "");
        let held = std::iter::repeat_n(Judgement::HOLDS, held);
        held.chain(others.iter().copied()).map(of).collect()
    }

    #[test]
    fn nine_of_ten_seeds_must_hold() {
        let fails = Judgement::FAILS;
        assert_eq!(Judgement::over(&seeds(18, &[fails; 2])).0.verdict, "holds");
        let (judged, held) = Judgement::over(&seeds(17, &[fails; 3]));
        assert_eq!((judged.verdict, held), ("fails", 17));
        assert_eq!(Judgement::over(&seeds(1, &[])).0.verdict, "holds");
        assert_eq!(Judgement::over(&seeds(0, &[fails])).0.verdict, "fails");
    }

    #[test]
    fn what_holds_only_otherwise_fails_as_printed() {
        let over = |held, others: &[&'static str]| Judgement::over(&seeds(held, others)).0.verdict;
        assert_eq!(over(3, &[Judgement::AS_PRINTED; 17]), "fails as printed");
        assert_eq!(over(1, &[Judgement::AS_PRINTED, Judgement::FAILS]), "fails");
        assert_eq!(over(0, &[Judgement::EXPLORED; 4]), "explored");
        assert_eq!(over(19, &[Judgement::OPEN]), "open");
        let j = Judgement::printed(false, true, "3 and 2", String::new(), "");
        assert!(j.fails() && !j.holds());
    }
}
