//! Penstock in a browser: questions and answers in JSON ([`penstock_ask`]), called from a Web Worker.
//!
//! Texts go through memory: who calls asks for [`room`], writes a text there, calls [`answer`] (or [`line`]), and finds as many bytes at
//! [`answered`]. `src/core.ts` is the other half. What is imported: `tell`, the share of a run that is done; `complain`, what a panic says.
//!
//! There is no clock, no chance and no file here: what crates of other people's take for the time is the script's own, and what they
//! take for the computer's dice are zeros. (Penstock's own chance comes from seeds; what a script throws is ours as well.)

use penstock_ask::Machine;
use std::cell::RefCell;

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Hears the share of a run that is done, 0 to 1.
    safe fn tell(share: f64);
    /// Hears what a panic says: a text's place and length.
    safe fn complain(at: *const u8, len: usize);
}

thread_local! {
    static QUESTION: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
    static MACHINE: RefCell<Option<Machine>> = const { RefCell::new(None) };
}

/// Before anything else: a fault of the program's is told with its place.
#[unsafe(no_mangle)]
pub extern "C" fn begin() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        complain(text.as_ptr(), text.len());
    }));
}

/// Makes room for a text of so many bytes: where it goes.
#[unsafe(no_mangle)]
pub extern "C" fn room(len: usize) -> *mut u8 {
    QUESTION.with_borrow_mut(|question| {
        question.clear();
        question.resize(len, 0);
        question.as_mut_ptr()
    })
}

/// Where the last answer is.
#[unsafe(no_mangle)]
pub extern "C" fn answered() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

fn give(work: impl FnOnce(&str) -> String) -> usize {
    let question = QUESTION.with_borrow(|q| String::from_utf8_lossy(q).into_owned());
    let text = work(&question);
    let len = text.len();
    ANSWER.set(text);
    len
}

/// Answers the question that stands where [`room`] was made: `{"ok": …}` or `{"faults": […]}`, so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    give(|question| penstock_ask::answer_text(question, &mut |share| tell(share)))
}

/// A new machine, with `eth0` and `eth1`, takes the place of the one there was.
#[unsafe(no_mangle)]
pub extern "C" fn machine() {
    MACHINE.set(Some(Machine::default()));
}

/// Has the machine run the line that stands where [`room`] was made: `stdout`, `stderr`, `status`, `ended`, so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn line() -> usize {
    give(|text| MACHINE.with_borrow_mut(|machine| machine.get_or_insert_default().line(text).to_string()))
}

/// The time that bashkit reads: the script's own (`bashkit::time_compat::host_clock`).
#[unsafe(no_mangle)]
extern "Rust" fn __bashkit_host_now_micros() -> u64 {
    penstock_shell::script_micros()
}

/// The dice that getrandom 0.3 and 0.4 throw: zeros.
///
/// # Safety
/// `to` is valid for writes of `len` bytes, as getrandom promises to its backend.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(to: *mut u8, len: usize) -> Result<(), getrandom_04::Error> {
    // SAFETY: the promise above.
    unsafe { std::ptr::write_bytes(to, 0, len) };
    Ok(())
}
