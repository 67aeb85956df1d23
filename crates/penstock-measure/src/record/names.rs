//! What a record names, without its figures.

use serde::Deserialize;

/// What a record names: enough to tell which files a run has written, for a fraction of the time that reading it all takes.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Names {
    /// The machine of each program, in their order.
    #[serde(default)]
    pub apps: Vec<OfHost>,
    /// The flows, in their order.
    #[serde(default)]
    pub flows: Vec<Named>,
    /// The devices, in their order.
    #[serde(default)]
    pub devices: Vec<OfHost>,
    /// The captures, in their order.
    #[serde(default)]
    pub captures: Vec<InFile>,
}

/// What belongs to a machine.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct OfHost {
    /// The machine.
    pub host: String,
    /// The device, of a device.
    #[serde(default)]
    pub dev: String,
}

/// What has a name.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Named {
    /// The name.
    pub name: String,
}

/// What has a file.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct InFile {
    /// Where it lies in the run's folder.
    pub file: String,
}

impl Names {
    /// Reads the names of a record.
    ///
    /// # Errors
    /// A sentence when the text is not a record or one of a later format.
    pub fn from_json(text: &str) -> Result<Names, String> {
        super::check_format(text)?;
        serde_json::from_str(text).map_err(|e| format!("this is not a run record: {e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_record_has_no_names() {
        let text = r#"{"format": 2, "apps": [{"name": "p", "host": "a", "run": "ping b"}], "devices": [{"host": "a", "dev": "eth0", "x": [1]}], "y": {}}"#;
        let names = Names::from_json(text).unwrap();
        assert_eq!((&*names.apps[0].host, &*names.devices[0].dev, names.flows.len()), ("a", "eth0", 0));
        for text in ["{}", "nonsense", r#"{"format": 2, "apps": [{"name": "p"}]}"#] {
            assert!(Names::from_json(text).unwrap_err().starts_with("this is not a run record"), "{text}");
        }
        assert!(Names::from_json(r#"{"format": 99}"#).unwrap_err().contains("later penstock"));
    }
}
