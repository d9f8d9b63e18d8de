//! Counts the bytes that the scanners look at, so that a test can check that the work grows
//! linearly with the text. It does nothing outside of tests.

#[cfg(test)]
thread_local! {
    static BYTES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[inline]
pub(super) fn add(bytes: usize) {
    #[cfg(test)]
    BYTES.with(|all| all.set(all.get() + bytes));
    #[cfg(not(test))]
    let _ = bytes;
}

/// The count so far, which begins anew.
#[cfg(test)]
pub(super) fn take() -> usize {
    BYTES.with(std::cell::Cell::take)
}
