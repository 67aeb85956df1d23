//! Files that are no text, where files are carried as text.
//!
//! Experiments, scripts and journals hold the files they name as text. An ELF object (a compiled eBPF program) goes among them with each of its bytes as
//! one character, U+0000 to U+00FF. No text begins as an object does, so that both are told apart by their first four bytes.

use std::borrow::Cow;

/// What an ELF file begins with.
pub const ELF: &[u8] = b"\x7fELF";

/// A file's contents as text; `None` where it is neither text nor an ELF object.
pub fn text_of(bytes: Vec<u8>) -> Option<String> {
    if bytes.starts_with(ELF) {
        return Some(bytes.into_iter().map(char::from).collect());
    }
    String::from_utf8(bytes).ok()
}

/// The same; bytes that are no text are marked as such.
pub fn text_lossy(bytes: &[u8]) -> String {
    if bytes.starts_with(ELF) {
        return bytes.iter().copied().map(char::from).collect();
    }
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file's contents from its text.
pub fn bytes_of(text: &str) -> Cow<'_, [u8]> {
    let bytes = text.as_bytes();
    if !bytes.starts_with(ELF) {
        return Cow::Borrowed(bytes);
    }
    // A character beyond one byte is none of an object's: such a text is what it is.
    match text.chars().map(|c| u8::try_from(c).ok()).collect::<Option<Vec<u8>>>() {
        Some(object) => Cow::Owned(object),
        None => Cow::Borrowed(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_texts_go_there_and_back() {
        let object: Vec<u8> = ELF.iter().copied().chain(0..=255).collect();
        let text = text_of(object.clone()).unwrap();
        assert_eq!((text.chars().count(), bytes_of(&text)), (260, Cow::Owned(object)));
        let plain = "naïve".to_owned();
        assert_eq!(bytes_of(&text_of(plain.clone().into_bytes()).unwrap()), plain.as_bytes());
        assert_eq!(text_of(vec![0xff, 0xfe]), None);
    }
}
