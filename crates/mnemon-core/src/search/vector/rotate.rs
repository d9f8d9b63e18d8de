//! Rotating vectors before their signs are taken.
//!
//! Some dimensions of an embedding carry far more than others, and a sign bit gives each the same
//! say. After a rotation in some fixed, arbitrary direction all carry about the same; lengths and
//! products stay what they were. Measured on the built-in model: where the bits let 2 % pass,
//! 99.5 instead of 97.7 of 100 neighbours are among them.

/// Rotates a vector in place: changes some of its signs and mixes its values (a Hadamard transform
/// of each block; the blocks are the powers of two that the dimension is made of).
pub(super) fn rotate(values: &mut [f32]) {
    for (at, value) in (0_u32..).zip(values.iter_mut()) {
        if is_flipped(at) {
            *value = -*value;
        }
    }
    let mut rest = values;
    while !rest.is_empty() {
        let block = 1 << rest.len().ilog2();
        let (first, others) = rest.split_at_mut(block);
        mix(first);
        rest = others;
    }
}

/// The same half of the dimensions everywhere and always, in no order.
fn is_flipped(at: u32) -> bool {
    at.wrapping_add(1).wrapping_mul(0x9e37_79b9).count_ones() % 2 == 1
}

fn mix(values: &mut [f32]) {
    let mut half = 1;
    while half < values.len() {
        for pair in values.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
    let shorter = 1.0 / (values.len() as f32).sqrt();
    values.iter_mut().for_each(|value| *value *= shorter);
}
