//! The tokens of an expression, word by word of the command line.
//!
//! Follows: iproute2 6.1.0 `tc/emp_ematch.l`: a word is asked for when the one before is used up; a quoted string may
//! reach over several; all strings share one buffer.

use super::{Bstr, Node};

/// A token.
#[derive(Debug)]
pub(super) enum Token {
    And,
    Or,
    Not,
    Open,
    Close,
    Word(Bstr),
    /// What the lexer refuses.
    Error,
    End,
}

pub(super) struct Lexer<'a> {
    words: &'a [String],
    used: usize,
    text: Vec<u8>,
    at: usize,
    /// The buffer of quoted strings.
    strings: Vec<u8>,
    complaint: String,
}

impl<'a> Lexer<'a> {
    pub fn new(words: &'a [String]) -> Lexer<'a> {
        Lexer { words, used: 0, text: Vec::new(), at: 0, strings: Vec::new(), complaint: String::new() }
    }
    /// How many words were taken.
    pub fn used(&self) -> usize {
        self.used
    }
    /// What the lexer itself had to say.
    pub fn complaint(&mut self) -> String {
        std::mem::take(&mut self.complaint)
    }
    /// The next character, from the next word that is not empty where this one is used up: a blank ends each.
    fn peek(&mut self) -> Option<u8> {
        while self.at == self.text.len() {
            let word = self.words.get(self.used)?;
            self.used += 1;
            if !word.is_empty() {
                self.text = [word.as_bytes(), b" "].concat();
                self.at = 0;
            }
        }
        Some(self.text[self.at])
    }
    pub fn next(&mut self) -> Token {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
        let Some(c) = self.peek() else { return Token::End };
        match c {
            b'(' => {
                self.at += 1;
                Token::Open
            }
            b')' => {
                self.at += 1;
                Token::Close
            }
            b'"' => {
                self.at += 1;
                self.string()
            }
            _ => {
                let rest = &self.text[self.at..];
                let ends = |c: &u8| b"\" \t\r\n()".contains(c);
                let word = rest[..rest.iter().position(ends).unwrap_or(rest.len())].to_vec();
                self.at += word.len();
                match word.to_ascii_lowercase().as_slice() {
                    b"and" => Token::And,
                    b"or" => Token::Or,
                    b"not" => Token::Not,
                    _ => Token::Word(Bstr { bytes: word, quoted: false }),
                }
            }
        }
    }
    fn string(&mut self) -> Token {
        let mut len = 0;
        let mut put = |strings: &mut Vec<u8>, c: u8| {
            match strings.get_mut(len) {
                Some(place) => *place = c,
                None => strings.push(c),
            }
            len += 1;
        };
        loop {
            let Some(c) = self.peek() else { return Token::End };
            self.at += 1;
            match c {
                b'"' => break,
                b'\\' => {
                    let Some(c) = self.peek() else { return Token::End };
                    let byte = if c.is_ascii_digit() {
                        match self.octal() {
                            Ok(byte) => byte,
                            Err(complaint) => {
                                self.complaint = format!("error: {complaint}\n");
                                return Token::Error;
                            }
                        }
                    } else {
                        self.at += 1;
                        match c {
                            b'n' => b'\n',
                            b'r' => b'\r',
                            b't' => b'\t',
                            b'v' => 0x0b,
                            b'b' => 0x08,
                            b'f' => 0x0c,
                            b'a' => 0x07,
                            b'x' => self.digits(16, 2).map_or(b'x', |n| n as u8),
                            c => c,
                        }
                    };
                    put(&mut self.strings, byte);
                }
                // A line break within a string is passed on to the terminal and forgotten.
                b'\n' => {}
                c => put(&mut self.strings, c),
            }
        }
        Token::Word(Bstr { bytes: vec![0; len], quoted: true })
    }
    /// Up to `most` digits, as far as this word goes.
    fn digits(&mut self, base: u32, most: usize) -> Option<u32> {
        let rest = &self.text[self.at..];
        let digit = |c: &&u8| char::from(**c).is_digit(base);
        let text: String = rest.iter().take(most).take_while(digit).map(|&c| char::from(c)).collect();
        self.at += text.len();
        u32::from_str_radix(&text, base).ok()
    }
    /// One to three octal digits; a longer run of decimal ones is refused.
    fn octal(&mut self) -> Result<u8, &'static str> {
        let rest = &self.text[self.at..];
        let octal = rest.iter().take(3).take_while(|c| (b'0'..=b'7').contains(c)).count();
        let decimal = rest.iter().take_while(|c| c.is_ascii_digit()).count();
        if decimal > octal {
            return Err("invalid octale escape sequence");
        }
        let value = self.digits(8, 3).unwrap_or(0);
        u8::try_from(value).map_err(|_| "octal escape sequence out of range")
    }
    /// Gives the quoted strings their contents, which are the buffer's as the last one left it.
    pub fn settle(&self, nodes: &mut [Node]) {
        for node in nodes {
            for arg in node.args.iter_mut().filter(|a| a.quoted) {
                let len = arg.bytes.len();
                arg.bytes.copy_from_slice(&self.strings[..len]);
            }
            self.settle(node.child.as_deref_mut().unwrap_or_default());
        }
    }
}
