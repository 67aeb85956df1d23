//! The parts of an ELF file that matter: sections with their relocations, and symbols.

use object::elf::{R_BPF_64_64, SHF_EXECINSTR, SHT_PROGBITS};
use object::read::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget};
use object::{Architecture, File, RelocationFlags, SectionFlags, SymbolKind};

/// A file.
pub(super) struct Elf<'a> {
    /// Its sections by their numbers.
    pub sections: Vec<Section<'a>>,
    /// Its symbols by their numbers.
    pub symbols: Vec<Symbol>,
}

/// One section.
#[derive(Default)]
pub(super) struct Section<'a> {
    pub name: String,
    /// Its contents; none of one that has only a size (`.bss`).
    pub data: &'a [u8],
    pub size: u64,
    /// `SHT_PROGBITS`.
    pub progbits: bool,
    /// `SHF_EXECINSTR`.
    pub executable: bool,
    pub relocations: Vec<Relocation>,
}

/// What is to be put in where the file is loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relocation {
    /// From the section's start, bytes.
    pub offset: u64,
    /// The number of its symbol.
    pub symbol: usize,
    /// `R_BPF_64_64`.
    pub wide: bool,
}

/// A name for a place.
#[derive(Clone, Default, Debug)]
pub(super) struct Symbol {
    pub name: String,
    /// The section it is in; none of one that is not in this file.
    pub section: Option<usize>,
    /// From the section's start, bytes.
    pub value: u64,
    pub size: u64,
    /// `STT_FUNC`.
    pub function: bool,
    /// `STB_LOCAL`.
    pub local: bool,
}

const UNABLE: &str = "Cannot initialize ELF context!\n";

impl<'a> Elf<'a> {
    /// `iproute2_bpf_elf_ctx_init`.
    pub fn read(bytes: &'a [u8]) -> Result<Elf<'a>, String> {
        let unable = |_| UNABLE.to_owned();
        let file = File::parse(bytes).map_err(unable)?;
        if file.architecture() != Architecture::Bpf || !file.is_little_endian() || !file.is_64() {
            return Err(format!("ELF format error, ELF file not for eBPF?\n{UNABLE}"));
        }
        let mut elf = Elf { sections: Vec::new(), symbols: Vec::new() };
        for section in file.sections() {
            let mut read =
                Section { name: section.name().unwrap_or_default().to_owned(), ..Section::default() };
            (read.data, read.size) = (section.data().map_err(unable)?, section.size());
            if let SectionFlags::Elf { sh_type, sh_flags } = section.flags() {
                read.progbits = sh_type == SHT_PROGBITS;
                read.executable = sh_flags.0 & SHF_EXECINSTR.0 != 0;
            }
            for (offset, relocation) in section.relocations() {
                let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
                let wide =
                    matches!(relocation.flags(), RelocationFlags::Elf { r_type } if r_type == R_BPF_64_64);
                read.relocations.push(Relocation { offset, symbol: symbol.0, wide });
            }
            put(&mut elf.sections, section.index().0, read);
        }
        for symbol in file.symbols() {
            let read = Symbol {
                name: symbol.name().unwrap_or_default().to_owned(),
                section: symbol.section_index().map(|s| s.0),
                value: symbol.address(),
                size: symbol.size(),
                function: symbol.kind() == SymbolKind::Text,
                local: symbol.is_local(),
            };
            put(&mut elf.symbols, symbol.index().0, read);
        }
        Ok(elf)
    }
    /// The section of this name and its number.
    pub fn section(&self, name: &str) -> Option<(usize, &Section<'a>)> {
        self.sections.iter().enumerate().find(|(_, s)| s.name == name)
    }
}

/// Puts `what` at the place `at` of a list that grows where it must.
fn put<T: Default>(list: &mut Vec<T>, at: usize, what: T) {
    while list.len() <= at {
        list.push(T::default());
    }
    list[at] = what;
}
