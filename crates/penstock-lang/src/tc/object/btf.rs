//! The types of an object (BTF), as far as its maps are written in them.
//!
//! Follows: linux v6.12 `Documentation/bpf/btf.rst`; libbpf 1.1.2 `parse_btf_map_def`, `btf__resolve_size`, `get_map_field_int`.

/// A type.
struct Type {
    name: u32,
    kind: u32,
    /// Its size, or the type it is made of.
    word: u32,
    /// What follows its head, as words.
    rest: Vec<u32>,
}

/// All types of an object; the first has the number 1.
pub(super) struct Btf {
    types: Vec<Type>,
    strings: Vec<u8>,
}

const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
/// How deep types may be made of one another.
const DEEP: usize = 32;

/// A map as an object defines it.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct Map {
    pub name: String,
    /// From the section's start, bytes.
    pub offset: u32,
    pub kind: u32,
    pub key_size: u32,
    pub value_size: u32,
    pub max_entries: u32,
    pub flags: u32,
    /// It asks to be pinned.
    pub pinned: bool,
    /// What stands in it begins so far behind its start, bytes (`values`).
    pub values: Option<u32>,
    /// Its values are maps.
    pub inner: bool,
}

impl Btf {
    /// From the section `.BTF`.
    pub fn read(bytes: &[u8]) -> Option<Btf> {
        let word = |at: usize| bytes.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        if bytes.get(..2)? != [0x9f, 0xeb] {
            return None;
        }
        let head = word(4)? as usize;
        let (type_off, type_len, str_off, str_len) = (word(8)?, word(12)?, word(16)?, word(20)?);
        let strings = bytes.get(head.checked_add(str_off as usize)?..)?.get(..str_len as usize)?.to_vec();
        let mut at = head.checked_add(type_off as usize)?;
        let end = at.checked_add(type_len as usize)?;
        let mut types = Vec::new();
        while at < end {
            let (name, info, own) = (word(at)?, word(at + 4)?, word(at + 8)?);
            let (kind, vlen) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            let words = match kind {
                1 | VAR | 17 => 1,
                ARRAY => 3,
                STRUCT | UNION | DATASEC | 19 => 3 * vlen,
                6 | 13 => 2 * vlen,
                _ => 0,
            };
            at += 12;
            let rest = (0..words).map(|i| word(at + 4 * i)).collect::<Option<Vec<u32>>>()?;
            at += 4 * words;
            types.push(Type { name, kind, word: own, rest });
        }
        Some(Btf { types, strings })
    }

    fn at(&self, id: u32) -> Option<&Type> {
        self.types.get((id as usize).checked_sub(1)?)
    }
    fn name(&self, offset: u32) -> &str {
        let rest = self.strings.get(offset as usize..).unwrap_or_default();
        let end = rest.iter().position(|b| *b == 0).unwrap_or(rest.len());
        std::str::from_utf8(&rest[..end]).unwrap_or_default()
    }
    /// The type behind names and qualifiers.
    fn plain(&self, mut id: u32) -> Option<&Type> {
        for _ in 0..DEEP {
            let found = self.at(id)?;
            match found.kind {
                8..=11 | 18 => id = found.word,
                _ => return Some(found),
            }
        }
        None
    }
    /// Bytes of a type.
    fn size(&self, id: u32, deep: usize) -> Option<u32> {
        let found = self.plain(id)?;
        match found.kind {
            1 | STRUCT | UNION | 6 | 16 | DATASEC | 19 => Some(found.word),
            PTR => Some(8),
            ARRAY if deep < DEEP => self.size(found.rest[0], deep + 1)?.checked_mul(found.rest[2]),
            _ => None,
        }
    }
    /// `int (*name)[N]`: N.
    fn number(&self, id: u32) -> Option<u32> {
        let pointer = self.plain(id).filter(|t| t.kind == PTR)?;
        let array = self.plain(pointer.word).filter(|t| t.kind == ARRAY)?;
        Some(array.rest[2])
    }

    /// The maps of the section `.maps`, in its order.
    ///
    /// # Errors
    /// libbpf's sentence.
    pub fn maps(&self) -> Result<Vec<Map>, String> {
        let Some(section) = self.types.iter().find(|t| t.kind == DATASEC && self.name(t.name) == ".maps")
        else {
            return Err("DATASEC '.maps' not found.".to_owned());
        };
        section.rest.chunks(3).map(|var| self.map(var[0], var[1])).collect()
    }

    /// `bpf_object__init_user_btf_map`, `parse_btf_map_def`.
    fn map(&self, var: u32, offset: u32) -> Result<Map, String> {
        let bad = |name: &str| format!("map '{name}': unexpected def kind.");
        let var = self.at(var).filter(|t| t.kind == VAR).ok_or_else(|| bad("?"))?;
        let name = self.name(var.name).to_owned();
        let def = self.plain(var.word).filter(|t| t.kind == STRUCT).ok_or_else(|| bad(&name))?;
        let mut map = Map { offset, ..Map::default() };
        for member in def.rest.chunks(3) {
            let (field, ty) = (self.name(member[0]), member[1]);
            let wrong = || format!("map '{name}': attr '{field}': expected PTR.");
            let number = || self.number(ty).ok_or_else(wrong);
            let pointee = || self.plain(ty).filter(|t| t.kind == PTR).map(|t| t.word).ok_or_else(wrong);
            let sized = |ty: u32| {
                let unsized_ = || format!("map '{name}': can't determine {field} size for type [{ty}].");
                self.size(ty, 0).ok_or_else(unsized_)
            };
            match field {
                "type" => map.kind = number()?,
                "max_entries" => map.max_entries = number()?,
                "map_flags" => map.flags = number()?,
                "numa_node" | "map_extra" => {
                    number()?;
                }
                "key_size" => map.key_size = number()?,
                "key" => map.key_size = sized(pointee()?)?,
                "value_size" => map.value_size = number()?,
                "value" => map.value_size = sized(pointee()?)?,
                "values" => {
                    map.values = Some(member[2] / 8);
                    // What it holds: maps, or functions; both are numbers of what is loaded.
                    let array = self.plain(ty).filter(|t| t.kind == ARRAY);
                    let element = array.and_then(|t| self.plain(t.rest[0])).filter(|t| t.kind == PTR);
                    map.inner = element.and_then(|t| self.plain(t.word)).is_some_and(|t| t.kind == STRUCT);
                    map.value_size = 4;
                    if array.is_none_or(|t| t.rest[2] != 0) {
                        let what = if map.inner { "map-in-map inner" } else { "prog-array value" };
                        return Err(format!("map '{name}': {what} spec is not a zero-sized array."));
                    }
                }
                "pinning" => map.pinned = number()? != 0,
                // `relaxed_maps`: tc lets libbpf pass over what it does not know.
                _ => {}
            }
        }
        if map.kind == 0 {
            return Err(format!("map '{name}': map type isn't specified."));
        }
        map.name = name;
        Ok(map)
    }
}
