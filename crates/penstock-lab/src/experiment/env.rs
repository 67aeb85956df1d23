//! `env` of a host: variables that its setup finds set.

use super::Builder;
use super::forms;
use super::read::{Faults, Table, Val, string};
use super::source::Place;
use super::spec::{Host, Script};
use std::collections::BTreeMap;
use toml::de::DeValue;

/// Variables by their names: values, and where these stand.
pub(super) type Env = BTreeMap<String, (String, Place)>;

/// `env`: variables of the setup. A number is taken as it is written.
pub(super) fn read(value: Val<'_>, env: &mut Env, faults: &mut Faults<'_>) {
    let Some(table) = Table::of(value, "env", &forms::VARIABLES, faults) else { return };
    for (name, span, value) in table.rest() {
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !begins || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            let message = format!("env: \"{name}\" is not the name of a variable");
            faults.add(span, message, "write letters, digits and _, e.g. RATE = \"10mbit\"");
            continue;
        }
        let text = match value.get_ref() {
            DeValue::Integer(_) | DeValue::Float(_) => faults.source.text[value.span()].to_owned(),
            _ => match string("env", value, faults) {
                Some(text) => text,
                None => continue,
            },
        };
        if text.contains(['\n', '\0']) {
            let help = "write one line";
            faults.add(value.span(), format!("env: {name} has more than one line"), help);
            continue;
        }
        env.insert(name, (text, faults.place(value.span())));
    }
}

impl Builder<'_> {
    /// The setup begins with its variables.
    pub(super) fn finish_env(&mut self, host: &mut Host, env: &Env) {
        let Some((_, place)) = env.values().next() else { return };
        if host.setup.is_empty() {
            let message = format!("[host.{}] has \"env\" and no setup that could read it", host.name);
            self.fault(place, message, "add setup = \"@shaper.sh\", or leave env out");
            return;
        }
        let set = |(name, (value, _)): (&String, &(String, Place))| {
            format!("export {name}='{}'\n", value.replace('\'', "'\\''"))
        };
        let source = &self.experiment.sources[place.source];
        let line = source.line(place.span.start);
        let text = env.iter().map(set).collect();
        host.setup.insert(0, Script { file: source.name.clone(), line, text, place: place.clone() });
    }
}
