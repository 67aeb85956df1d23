//! What is typed at the console of a router with IOS, and what it answers: the login, `enable`, `show run` page by page, `exit`.
//!
//! Follows: IOS 12.3: `User Access Verification`, `Building configuration...`, a page of 24 lines and ` --More-- ` (`terminal length 24`), which the
//! space bar takes away again.

/// Something typed, key by key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Typed {
    pub(super) keys: String,
    /// Whether the line is ended by the return key; `--More--` goes on at once.
    pub(super) enter: bool,
    /// What comes in answer; `None`: of random length.
    pub(super) answer: Option<String>,
    /// Whether the keys are seen.
    pub(super) seen: bool,
}

impl Typed {
    /// How many keys that are.
    pub(super) fn presses(&self) -> usize {
        self.keys.len() + usize::from(self.enter)
    }
    pub(super) fn command(keys: &str) -> Typed {
        Typed { keys: keys.to_owned(), enter: true, answer: None, seen: true }
    }
}

/// What stands above the first prompt.
pub(super) const BANNER: &str = "\n\nUser Access Verification\n\nPassword: ";
/// Lines of a page.
const PAGE: usize = 24;
/// What a page ends with, and what clears it: it is sent and not kept on the screen.
const MORE: &str = " --More-- ";
/// How many keys a password has. It is not seen.
const PASSWORD: &str = "********";

/// A session that looks at the configuration.
pub(super) fn session(config: &str) -> Vec<Typed> {
    let name = config.lines().find_map(|l| l.strip_prefix("hostname ")).unwrap_or("Router").trim();
    let typed = |keys: &str, answer: String, seen| Typed {
        keys: keys.to_owned(),
        enter: true,
        answer: Some(answer),
        seen,
    };
    let mut all = vec![
        typed(PASSWORD, format!("{name}>"), false),
        typed("enable", "Password: ".to_owned(), true),
        typed(PASSWORD, format!("{name}#"), false),
    ];
    let shown = running(config);
    let lines: Vec<&str> = shown.lines().collect();
    let pages: Vec<String> = lines.chunks(PAGE).map(|page| page.join("\n") + "\n").collect();
    for (i, page) in pages.iter().enumerate() {
        let mut answer = page.clone();
        if i + 1 == pages.len() {
            answer.push_str(&format!("{name}#"));
        } else {
            answer.push_str(MORE);
        }
        let (keys, enter) = if i == 0 { ("show run", true) } else { (" ", false) };
        all.push(Typed { keys: keys.to_owned(), enter, answer: Some(answer), seen: true });
    }
    all.push(typed("exit", String::new(), true));
    all
}

/// `show running-config`.
fn running(config: &str) -> String {
    let text = config.trim();
    // A configuration that was saved from a console has the first lines.
    if text.starts_with("Building configuration") {
        return format!("{text}\n\n");
    }
    format!("Building configuration...\n\nCurrent configuration : {} bytes\n{text}\n\n", text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_configuration_comes_in_pages() {
        let config = format!("hostname R9\n{}end\n", "!\n".repeat(40));
        let keys: Vec<(String, bool)> = session(&config).into_iter().map(|t| (t.keys, t.enter)).collect();
        let want = [
            ("********", true),
            ("enable", true),
            ("********", true),
            ("show run", true),
            (" ", false),
            ("exit", true),
        ];
        assert_eq!(keys, want.map(|(k, e)| (k.to_owned(), e)));
        let pages: Vec<String> = session(&config).into_iter().filter_map(|t| t.answer).collect();
        assert!(
            pages[3]
                .starts_with("Building configuration...\n\nCurrent configuration : 95 bytes\nhostname R9\n"),
            "{}",
            pages[3]
        );
        assert!(pages[3].ends_with(MORE) && pages[4].ends_with("end\n\nR9#"), "{}", pages[4]);
    }
}
