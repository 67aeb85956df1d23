//! The programs of an object with what they call put behind them, and the maps that they use.

use super::btf::{Btf, Map};
use super::elf::{Elf, Symbol};
use super::{Lack, Wanted};
use penstock_model::{Options, Value};

/// Bytes of an instruction.
const INSN: usize = 8;
/// `BPF_LD | BPF_IMM | BPF_DW`, whose constant stands in two instructions.
const LD_IMM64: u8 = 0x18;
/// `BPF_JMP | BPF_CALL`.
const CALL: u8 = 0x85;
/// What a source register says of a constant or a call: a map, a value of one, a function.
const PSEUDO_MAP_FD: u8 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;
const PSEUDO_CALL: u8 = 1;
/// `BPF_MAP_TYPE_ARRAY`, and `BPF_F_RDONLY_PROG`.
const ARRAY: u32 = 2;
const RDONLY_PROG: u32 = 0x80;
/// `BPF_MAP_TYPE_PROG_ARRAY`.
const PROG_ARRAY: u32 = 3;

/// Most functions of a program (`BPF_MAX_SUBPROGS`).
const FUNCTIONS_MAX: usize = 256;

/// A function of the file.
#[derive(Clone, Debug)]
struct Function {
    name: String,
    section: usize,
    /// Its first byte within the section.
    start: usize,
    len: usize,
}

/// Where a map came from.
struct Held<'a> {
    map: Map,
    /// The section whose variables it holds.
    section: Option<usize>,
    data: &'a [u8],
    size: u64,
    frozen: bool,
}

/// An object that is open.
pub(super) struct Object<'a> {
    elf: &'a Elf<'a>,
    functions: Vec<Function>,
    maps: Vec<Held<'a>>,
    maps_section: Option<usize>,
    license: String,
    lacks: Option<Lack>,
}

impl<'a> Object<'a> {
    /// `bpf_object__open_file`.
    pub fn open(elf: &'a Elf<'a>) -> Result<Object<'a>, String> {
        let license = elf.section("license").map(|(_, s)| {
            let end = s.data.iter().position(|b| *b == 0).unwrap_or(s.data.len());
            String::from_utf8_lossy(&s.data[..end]).into_owned()
        });
        let mut object = Object {
            elf,
            functions: Vec::new(),
            maps: Vec::new(),
            maps_section: elf.section(".maps").map(|(at, _)| at),
            license: license.unwrap_or_default(),
            lacks: None,
        };
        if elf.section("maps").is_some() {
            return Err(
                "elf: legacy map definitions in 'maps' section are not supported by libbpf v1.0+".to_owned()
            );
        }
        object.find_functions()?;
        object.find_maps()?;
        if elf.section(".BTF.ext").is_some_and(|(_, s)| has_core_relocations(s.data)) {
            object.lacks = Some(Lack::CoRe);
        }
        Ok(object)
    }

    /// `bpf_object__add_programs`.
    fn find_functions(&mut self) -> Result<(), String> {
        for (index, section) in self.elf.sections.iter().enumerate() {
            if !section.progbits || !section.executable || section.data.is_empty() {
                continue;
            }
            for symbol in self.elf.symbols.iter().filter(|s| s.section == Some(index) && s.function) {
                let (start, len) = (symbol.value as usize, symbol.size as usize);
                let whole = start % INSN == 0 && len % INSN == 0 && len > 0;
                if !whole || start.checked_add(len).is_none_or(|end| end > section.data.len()) {
                    return Err(format!(
                        "sec '{}': program at offset {start} crosses section boundary",
                        section.name
                    ));
                }
                if symbol.local && section.name != ".text" {
                    return Err(format!(
                        "sec '{}': program '{}' is static and not supported",
                        section.name, symbol.name
                    ));
                }
                self.functions.push(Function { name: symbol.name.clone(), section: index, start, len });
            }
        }
        Ok(())
    }

    /// `bpf_object__init_user_btf_maps`, `bpf_object__init_global_data_maps`, `bpf_object__collect_map_relos`.
    fn find_maps(&mut self) -> Result<(), String> {
        if self.maps_section.is_some() {
            let types = self.elf.section(".BTF").and_then(|(_, s)| Btf::read(s.data));
            let types = types.ok_or("BTF is required, but is missing or corrupted.")?;
            for map in types.maps()? {
                if map.inner {
                    self.lacks = Some(Lack::Inner);
                }
                if map.pinned {
                    self.lacks = Some(Lack::Pinned);
                }
                self.maps.push(Held { map, section: None, data: &[], size: 0, frozen: false });
            }
        }
        for (index, section) in self.elf.sections.iter().enumerate() {
            let is = |kind: &str| section.name == kind || section.name.starts_with(&format!("{kind}."));
            let data = is(".data") || is(".rodata") || is(".bss");
            if !data || section.size == 0 {
                continue;
            }
            let frozen = is(".rodata");
            let flags = if frozen { RDONLY_PROG } else { 0 };
            let value_size = u32::try_from(section.size).map_err(|_| "a section is too large".to_owned())?;
            let map = Map {
                name: section.name.clone(),
                kind: ARRAY,
                key_size: 4,
                value_size,
                max_entries: 1,
                flags,
                ..Map::default()
            };
            let data = section.data;
            self.maps.push(Held { map, section: Some(index), data, size: section.size, frozen });
        }
        Ok(())
    }

    /// The function that begins where a symbol points, `more` instructions behind.
    fn function_at(&self, symbol: &Symbol, more: i64) -> Option<usize> {
        let place = i64::try_from(symbol.value).ok()?.checked_add(more.checked_mul(INSN as i64)?)?;
        let place = usize::try_from(place).ok()?;
        self.functions.iter().position(|f| Some(f.section) == symbol.section && f.start == place)
    }

    /// `find_prog_to_attach`.
    pub fn find(&self, wanted: &Wanted) -> Option<usize> {
        self.functions.iter().position(|f| match &wanted.program {
            Some(name) => f.name == *name,
            None => self.elf.sections[f.section].name == wanted.section,
        })
    }

    /// The program `entry` with all it uses.
    pub fn loaded(&mut self, entry: usize) -> Result<Options, String> {
        let mut o = Options::new()
            .with("license", self.license.as_str())
            .with("program", self.functions[entry].name.as_str());
        o.set("insns", self.linked(entry)?.into());
        let maps = self.maps.iter().map(|held| self.map(held, entry)).collect::<Result<_, String>>()?;
        o.set("maps", Value::List(maps));
        if let Some(lack) = self.lacks {
            o.set("lacks", lack.as_str().into());
        }
        Ok(o)
    }

    fn map(&self, held: &Held<'_>, entry: usize) -> Result<Options, String> {
        let map = &held.map;
        let mut o = Options::new()
            .with("name", map.name.as_str())
            .with("type", map.kind)
            .with("key_size", map.key_size)
            .with("value_size", map.value_size)
            .with("max_entries", map.max_entries)
            .with("map_flags", map.flags);
        if held.section.is_some() {
            let mut data = held.data.to_vec();
            data.resize(held.size as usize, 0);
            o = o.with("data", data).with("frozen", u32::from(held.frozen));
        }
        if map.kind == PROG_ARRAY {
            o.set("programs", Value::List(self.slots(map, entry)?));
        }
        Ok(o)
    }
    /// `init_prog_array_slots`: where an array of programs has the program from the beginning. tc loads no other.
    fn slots(&self, map: &Map, entry: usize) -> Result<Vec<Options>, String> {
        let (Some(section), Some(values)) = (self.maps_section, map.values) else { return Ok(Vec::new()) };
        let start = u64::from(map.offset) + u64::from(values);
        let mut slots = Vec::new();
        for relocation in &self.elf.sections[section].relocations {
            let target = self.elf.symbols.get(relocation.symbol).and_then(|s| self.function_at(s, 0));
            let (Some(target), Some(behind)) = (target, relocation.offset.checked_sub(start)) else {
                continue;
            };
            let index = behind / 8;
            if index >= u64::from(map.max_entries) {
                continue;
            }
            if target != entry {
                let other = &self.functions[target].name;
                return Err(format!(
                    "map '{}': failed to initialize slot [{index}] to prog '{other}' fd=-2: -9",
                    map.name
                ));
            }
            slots.push(Options::new().with("index", index as u32));
        }
        Ok(slots)
    }

    /// `bpf_object__reloc_code`: a function's instructions, and behind them those of the functions it calls.
    fn linked(&mut self, entry: usize) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let mut placed: Vec<(usize, usize)> = Vec::new();
        self.append(entry, entry, &mut out, &mut placed)?;
        Ok(out)
    }

    fn append(
        &mut self,
        entry: usize,
        function: usize,
        out: &mut Vec<u8>,
        placed: &mut Vec<(usize, usize)>,
    ) -> Result<usize, String> {
        let Function { section, start, len, .. } = self.functions[function];
        let name = self.functions[entry].name.clone();
        if placed.len() >= FUNCTIONS_MAX {
            return Err(format!("prog '{name}': too many subprograms"));
        }
        let base = out.len();
        placed.push((function, base));
        out.extend_from_slice(&self.elf.sections[section].data[start..start + len]);
        let mut at = 0;
        while at < len {
            let place = base + at;
            let code = out[place];
            let relocation = self.elf.sections[section]
                .relocations
                .iter()
                .find(|r| r.offset == (start + at) as u64)
                .copied();
            let source = out[place + 1] >> 4;
            if let Some(relocation) = relocation.filter(|_| code == LD_IMM64) {
                self.constant(&name, relocation.symbol, place, out)?;
            } else if code == CALL && (source == PSEUDO_CALL || relocation.is_some()) {
                let imm = i64::from(word(out, place + 4) as i32);
                let called = match relocation {
                    Some(relocation) => {
                        let symbol = self.elf.symbols.get(relocation.symbol).cloned().unwrap_or_default();
                        if symbol.section.is_none() {
                            self.lacks = Some(Lack::Externs);
                            at += INSN;
                            continue;
                        }
                        // Of a function's own symbol the constant is -1; of its section's, the place before it.
                        self.function_at(&symbol, imm + 1)
                    }
                    None => {
                        let symbol = Symbol { section: Some(section), ..Symbol::default() };
                        self.function_at(&symbol, ((start + at) / INSN) as i64 + imm + 1)
                    }
                };
                let called = called.ok_or_else(|| {
                    format!("prog '{name}': no .text section found yet sub-program call exists")
                })?;
                let target = match placed.iter().find(|(f, _)| *f == called) {
                    Some((_, target)) => *target,
                    None => self.append(entry, called, out, placed)?,
                };
                let distance = (target as i64 - place as i64) / INSN as i64 - 1;
                put(out, place + 4, distance as u32);
            } else if let Some(relocation) = relocation {
                let wide = if relocation.wide { 1 } else { 10 };
                return Err(format!(
                    "prog '{name}': invalid relo for insns[{}].code 0x{code:x} (type {wide})",
                    at / INSN
                ));
            }
            at += if code == LD_IMM64 { 2 * INSN } else { INSN };
        }
        Ok(base)
    }

    /// A constant of two instructions that names a map, a variable or a function.
    fn constant(&mut self, name: &str, symbol: usize, place: usize, out: &mut [u8]) -> Result<(), String> {
        let symbol = self.elf.symbols.get(symbol).cloned().unwrap_or_default();
        let Some(section) = symbol.section else {
            self.lacks = Some(Lack::Externs);
            return Ok(());
        };
        if out.len() < place + 2 * INSN {
            return Err(format!("prog '{name}': a constant is cut off"));
        }
        let register = out[place + 1] & 0xf;
        let set = |out: &mut [u8], source: u8, first: u32, second: u32| {
            out[place + 1] = register | source << 4;
            put(out, place + 4, first);
            put(out, place + INSN + 4, second);
        };
        if Some(section) == self.maps_section {
            let map =
                self.maps.iter().position(|h| h.section.is_none() && u64::from(h.map.offset) == symbol.value);
            let map = map.ok_or_else(|| {
                format!(
                    "prog '{name}': map relo failed to find map for section '.maps', off {}",
                    symbol.value
                )
            })?;
            set(out, PSEUDO_MAP_FD, map as u32, 0);
            return Ok(());
        }
        if let Some(map) = self.maps.iter().position(|h| h.section == Some(section)) {
            let offset = (symbol.value as u32).wrapping_add(word(out, place + 4));
            set(out, PSEUDO_MAP_VALUE, map as u32, offset);
            return Ok(());
        }
        if self.elf.sections.get(section).is_some_and(|s| s.executable) {
            self.lacks = Some(Lack::Callback);
            return Ok(());
        }
        let other = self.elf.sections.get(section).map_or("", |s| s.name.as_str());
        Err(format!("prog '{name}': bad data relo against section '{other}'"))
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
fn put(bytes: &mut [u8], at: usize, word: u32) {
    bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
}

/// Whether `.BTF.ext` has relocations against the kernel's own types.
fn has_core_relocations(bytes: &[u8]) -> bool {
    let four = |at: usize| bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    // A head of 24 bytes has none of these.
    four(4) >= 32 && four(28) > 4
}
