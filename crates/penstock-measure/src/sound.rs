//! Whether the figures of a record can be those of a run.

use serde_json::Value;

/// Longest run, seconds: a day, and what a real machine takes longer.
const LONGEST_S: f64 = 100_000.0;
/// No figure of a run is greater: the greatest seed is 1.8e19.
const GREATEST: f64 = 1e20;

/// Looks at every number of a record.
///
/// # Errors
/// A sentence with the field that no run can have given.
pub(crate) fn figures(record: &Value) -> Result<(), String> {
    sound(record).map_err(|mut found| {
        found.path.reverse();
        let field = found.path.concat();
        let field = field.trim_start_matches('.');
        format!("this is not a run record: {field} is {}, which no run measures", found.number)
    })?;
    let duration = record.get("duration_s").and_then(Value::as_f64).unwrap_or_default();
    if (0.0..=LONGEST_S).contains(&duration) {
        return Ok(());
    }
    Err(format!("this is not a run record: duration_s is {duration:e}, not from 0 to {LONGEST_S}"))
}

/// A number that no run has given, and the way to it, the last step first.
struct Unsound {
    number: serde_json::Number,
    path: Vec<String>,
}

// Its place is written only where something is wrong: a record may have millions of numbers.
fn sound(value: &Value) -> Result<(), Unsound> {
    let step = |mut found: Unsound, step: String| {
        found.path.push(step);
        Err(found)
    };
    match value {
        Value::Number(n) if n.as_f64().is_none_or(|x| x.abs() > GREATEST) => {
            Err(Unsound { number: n.clone(), path: Vec::new() })
        }
        Value::Array(all) => {
            all.iter().enumerate().try_for_each(|(i, v)| sound(v).or_else(|e| step(e, format!("[{i}]"))))
        }
        Value::Object(all) => {
            all.iter().try_for_each(|(key, v)| sound(v).or_else(|e| step(e, format!(".{key}"))))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_run_has_is_named_with_its_field() {
        for (text, said) in [
            (r#"{"duration_s": 1e23}"#, "duration_s is 1e+23, which no run measures"),
            (r#"{"duration_s": 1e9}"#, "duration_s is 1e9, not from 0 to 100000"),
            (r#"{"duration_s": -1.0}"#, "duration_s is -1e0, not from 0 to 100000"),
            (
                r#"{"duration_s": 1, "apps": [{}, {"rtt_ms": {"mean": -1e300}}]}"#,
                "apps[1].rtt_ms.mean is -1e+300, which no run measures",
            ),
        ] {
            let error = figures(&serde_json::from_str(text).unwrap()).unwrap_err();
            assert!(error.ends_with(said), "{error}");
        }
        let good = r#"{"duration_s": 86400, "seed": 18446744073709551615, "x": [0.5, -3]}"#;
        assert_eq!(figures(&serde_json::from_str(good).unwrap()), Ok(()));
    }
}
