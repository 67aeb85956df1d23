//! What a judge says of a claim.

/// What a judge says of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// `holds`, `fails` or `open`.
    pub verdict: &'static str,
    /// What the study printed.
    pub published: String,
    /// What the runs showed.
    pub measured: String,
    /// Why, or on what terms.
    pub note: String,
}

impl Judgement {
    /// `holds` or `fails`.
    pub fn of(holds: bool, published: &str, measured: String, note: &str) -> Judgement {
        let verdict = if holds { "holds" } else { "fails" };
        Judgement { verdict, published: published.to_owned(), measured, note: note.to_owned() }
    }
    /// Not judged, and why.
    pub fn open(why: String) -> Judgement {
        Judgement { verdict: "open", published: String::new(), measured: String::new(), note: why }
    }
    /// Whether the claim holds.
    pub fn holds(&self) -> bool {
        self.verdict == "holds"
    }
}
