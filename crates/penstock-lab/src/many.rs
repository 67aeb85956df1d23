//! Pieces of work on several threads: which thread does which, and which ends first, changes no answer.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// As many as there are processors.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Does a piece of work for each number below `count`, `width` at a time (at least one); the answers in the order of the numbers. `told`
/// hears how many are done. A number is begun only when all below it are.
pub fn each<T: Send>(
    count: usize,
    width: usize,
    told: &(dyn Fn(usize) + Sync),
    work: &(dyn Fn(usize) -> T + Sync),
) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let answers: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    let worker = || loop {
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= count {
            return;
        }
        let answer = work(n);
        answers.lock().expect("no worker panics while it holds the lock")[n] = Some(answer);
        told(done.fetch_add(1, Ordering::Relaxed) + 1);
    };
    std::thread::scope(|scope| {
        for _ in 1..width.min(count) {
            scope.spawn(worker);
        }
        worker();
    });
    let answers = answers.into_inner().expect("all workers have ended");
    answers.into_iter().map(|a| a.expect("each number was worked on")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_order_whoever_ends_first() {
        for width in [0, 1, 2, 8, 100] {
            let told = AtomicUsize::new(0);
            let slow_first = |n: usize| {
                std::thread::sleep(std::time::Duration::from_millis(if n < 2 { 20 } else { 0 }));
                n * n
            };
            let heard = |_| {
                told.fetch_add(1, Ordering::Relaxed);
            };
            let all = each(9, width, &heard, &slow_first);
            assert_eq!(all, (0..9).map(|n| n * n).collect::<Vec<_>>(), "{width}");
            assert_eq!(told.load(Ordering::Relaxed), 9);
        }
        assert!(each(0, 4, &|_| {}, &|n| n).is_empty());
    }
}
