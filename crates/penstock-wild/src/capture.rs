//! Captures: pcap and pcapng from both ends, whole and damaged.

use crate::{Result, Unstructured, number};

/// A capture of a few packets.
///
/// # Errors
/// Those of [`Unstructured`].
pub fn capture(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let (ng, big) = (u.arbitrary::<bool>()?, u.arbitrary::<bool>()?);
    let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let half = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let link = *u.choose(&[1u16, 0, 12, 101, 113, 147])?;
    let mut out = Vec::new();
    let block = |out: &mut Vec<u8>, kind: u32, body: &[u8]| {
        let len = word((body.len() as u32).next_multiple_of(4) + 12);
        out.extend(word(kind));
        out.extend(len);
        out.extend(body);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(len);
    };
    if ng {
        let head = [&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat();
        block(&mut out, 0x0a0d_0d0a, &head);
        let clock = [&half(9)[..], &half(1), &[u.arbitrary::<u8>()?, 0, 0, 0], &[0; 4]].concat();
        block(&mut out, 1, &[&half(link)[..], &half(0), &word(0), &clock].concat());
    } else {
        out.extend(word(*u.choose(&[0xa1b2_c3d4, 0xa1b2_3c4d])?));
        out.extend([half(2), half(4)].concat());
        out.extend([word(0), word(0), word(65_535), word(u32::from(link))].concat());
    }
    for n in 0..u.int_in_range(0..=9u32)? {
        let len = number(u, 0, 120)? as usize;
        let data = u.bytes(len.min(u.len()))?.to_vec();
        let (cap, full) = (data.len() as u32, u.int_in_range(0..=70_000)?);
        match (ng, u.int_in_range(0..=5)?) {
            (false, _) => {
                out.extend([word(n), word(n * 7), word(cap), word(full)].concat());
                out.extend(&data);
            }
            (true, 0) => block(
                &mut out,
                2,
                &[&[half(0), half(3)].concat()[..], &word(0), &word(n), &word(cap), &word(full), &data]
                    .concat(),
            ),
            (true, 1) => block(&mut out, 3, &[&word(full)[..], &data].concat()),
            (true, 2) => block(&mut out, u.arbitrary()?, &data),
            (true, _) => block(
                &mut out,
                6,
                &[&word(0)[..], &word(0), &word(n), &word(cap), &word(full), &data].concat(),
            ),
        }
    }
    for _ in 0..u.int_in_range(0..=3)? {
        if !out.is_empty() {
            let at = u.int_in_range(0..=out.len() - 1)?;
            out[at] = u.arbitrary()?;
        }
    }
    Ok(out)
}
