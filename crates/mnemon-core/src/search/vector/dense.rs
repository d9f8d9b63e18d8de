//! Vectors as embedders give them.

/// Why a vector cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VectorError {
    #[error("a vector of {got} dimensions where {expected} were expected")]
    WrongDimension { expected: usize, got: usize },
    #[error("{got} dimensions; the range is 1 to {max}")]
    ImpossibleDimension { got: usize, max: usize },
    #[error("dimension {index} is not a finite number")]
    NotFinite { index: usize },
    #[error("a zero vector has no direction")]
    Zero,
    #[error("a set holds at most {max} vectors")]
    Full { max: usize },
}

/// Independent sums that the compiler keeps in vector registers. Their number is part of the
/// result's last bits, so it is the same everywhere.
const LANES: usize = 16;

/// The dot product; of the shorter length where the lengths differ.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let len = a.len().min(b.len());
    let (a_head, a_tail) = a.split_at(len).0.as_chunks::<LANES>();
    let (b_head, b_tail) = b.split_at(len).0.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (x, y) in a_head.iter().zip(b_head) {
        for ((sum, x), y) in sums.iter_mut().zip(x).zip(y) {
            *sum += x * y;
        }
    }
    let tail: f32 = a_tail.iter().zip(b_tail).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f32>() + tail
}

/// Scales `vector` to unit length.
pub fn normalise(vector: &mut [f32]) -> Result<(), VectorError> {
    if let Some(index) = vector.iter().position(|x| !x.is_finite()) {
        return Err(VectorError::NotFinite { index });
    }
    // The square of a large f32 overflows, of a small one vanishes; as f64 neither does.
    let square: f64 = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    if square == 0.0 {
        return Err(VectorError::Zero);
    }
    let scale = 1.0 / square.sqrt();
    for x in vector {
        *x = (f64::from(*x) * scale) as f32;
    }
    Ok(())
}
