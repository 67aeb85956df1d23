//! eBPF objects as tc loads them: an ELF file to the program that is asked for, with the maps and functions it uses.
//!
//! Follows: iproute2 6.1.0 `lib/bpf_libbpf.c` `load_bpf_object`; libbpf 1.1.2 `src/libbpf.c` `bpf_object__elf_collect`, `bpf_object__add_programs`,
//! `bpf_object__collect_prog_relos`, `bpf_object__reloc_code`, `bpf_object__relocate_data`.
//! Differs: of libbpf's own log only the line that says why is written. Nothing is pinned; what [`Lack`] names is read, and said to be missing.
//!
//! What it gives goes on in the option `object` of a filter or an action:
//!
//! | name | value |
//! |---|---|
//! | `bpf_name` | text; `FILE:[SECTION]` as tc shows it |
//! | `license` | text |
//! | `program` | text; the function's name |
//! | `insns` | bytes; eight an instruction, the called functions behind the program. A map is its number in `maps`, in `imm` |
//! | `maps` | list of `name`, `type`, `key_size`, `value_size`, `max_entries`, `map_flags`; `data` (bytes) and `frozen`; `programs` (list of `index`: its place in an array of programs) |
//! | `lacks` | text; a [`Lack`] |

mod btf;
mod elf;
mod link;

use elf::Elf;
use penstock_model::Options;

/// The section of a filter's program where none is named (`ELF_SECTION_CLASSIFIER`).
pub const CLASSIFIER: &str = "classifier";
/// The section of an action's program where none is named (`ELF_SECTION_ACTION`).
pub const ACTION: &str = "action";

/// Which program of which file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The file.
    pub path: String,
    /// Its section.
    pub section: String,
    /// Its name, instead of the section.
    pub program: Option<String>,
}

/// What an object asks for that is not here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lack {
    /// Fields of the kernel's own structures.
    CoRe,
    /// Functions and variables of the kernel.
    Externs,
    /// A pinned map, which several programs share.
    Pinned,
    /// A map of maps.
    Inner,
    /// A function that is given to a helper.
    Callback,
}

impl Lack {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Lack::CoRe => "CO-RE relocations",
            Lack::Externs => "kfuncs or ksyms",
            Lack::Pinned => "pinned maps",
            Lack::Inner => "maps of maps",
            Lack::Callback => "callbacks",
        }
    }
}

/// The program and all it uses, from the bytes of its file.
///
/// # Errors
/// What tc and libbpf write to stderr, before tc's own last line.
pub fn load(bytes: &[u8], wanted: &Wanted) -> Result<Options, String> {
    let elf = Elf::read(bytes)?;
    let opening = |why: String| format!("libbpf: {why}\nERROR: opening BPF object file failed\n");
    let mut linked = link::Object::open(&elf).map_err(opening)?;
    let entry = linked.find(wanted).ok_or_else(|| match &wanted.program {
        Some(name) => format!("object file doesn't contain prog {name}\n"),
        None => format!("object file doesn't contain sec {}\n", wanted.section),
    })?;
    let base = wanted.path.rsplit('/').next().unwrap_or_default();
    let failing = |why: String| format!("libbpf: {why}\nlibbpf: failed to load object '{}'\n", wanted.path);
    let mut o = linked.loaded(entry).map_err(failing)?;
    o.set("bpf_name", format!("{base}:[{}]", wanted.section).into());
    Ok(o)
}
