//! The inner loops, for the instruction sets found at run time. The only module with `unsafe`;
//! every kernel gives the integers that its scalar twin gives.

#![allow(unsafe_code, reason = "vector instructions; see the SAFETY notes")]

/// Bit planes of a weighed query.
pub(super) const PLANES: usize = 4;

/// What the machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Level {
    /// The best there is; the standard library remembers the answer.
    fn detect() -> Self {
        Self::all().last().copied().unwrap_or(Self::Scalar)
    }

    /// Everything this machine can run, the best last.
    pub(super) fn all() -> Vec<Self> {
        let mut levels = vec![Self::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
                levels.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vnni")
                && is_x86_feature_detected!("avx512vpopcntdq")
            {
                levels.push(Self::Avx512);
            }
        }
        #[cfg(target_arch = "aarch64")]
        levels.push(Self::Neon);
        levels
    }
}

/// int8 dot products of one query with many rows.
pub(super) struct DotI8<'q> {
    level: Level,
    query: &'q [i8],
}

impl<'q> DotI8<'q> {
    pub(super) fn new(query: &'q [i8]) -> Self {
        Self::at(Level::detect(), query)
    }

    pub(super) fn at(level: Level, query: &'q [i8]) -> Self {
        Self { level, query }
    }

    /// Writes the product of the query with row `slots[i]` of `rows` to `out[i]`. A slot that
    /// does not exist gets `i32::MIN`.
    pub(super) fn products(&self, rows: &[i8], slots: &[u32], out: &mut [i32]) {
        match self.level {
            Level::Scalar => each(self.query.len(), rows, slots, out, |row| {
                dot_scalar(self.query, row)
            }),
            // SAFETY: `Level::all` offers Avx2 only where the machine has avx2.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { x86::dots_avx2(self.query, rows, slots, out) },
            // SAFETY: `Level::all` offers Avx512 only where the machine has avx512f, bw, vl and vnni.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { x86::dots_avx512(self.query, rows, slots, out) },
            #[cfg(target_arch = "aarch64")]
            Level::Neon => each(self.query.len(), rows, slots, out, |row| {
                neon::dot(self.query, row)
            }),
        }
    }
}

#[inline(always)]
fn each(len: usize, rows: &[i8], slots: &[u32], out: &mut [i32], dot: impl Fn(&[i8]) -> i32) {
    for (at, (&slot, out)) in slots.iter().zip(out).enumerate() {
        // Rows that were chosen lie anywhere: ask for one while others are worked on.
        if let Some(&ahead) = slots.get(at + AHEAD) {
            fetch_early(rows, ahead as usize * len, len);
        }
        let start = slot as usize * len;
        *out = rows.get(start..start + len).map_or(i32::MIN, &dot);
    }
}

/// How many rows ahead memory is asked for.
const AHEAD: usize = 6;

#[inline(always)]
fn fetch_early(rows: &[i8], start: usize, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (start..start + len).step_by(64) {
        if let Some(byte) = rows.get(line) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: the address is that of a byte that is there; nothing is read or changed.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (rows, start, len);
}

fn dot_scalar(a: &[i8], b: &[i8]) -> i32 {
    a.iter()
        .zip(b)
        .map(|(&x, &y)| i32::from(x) * i32::from(y))
        .sum()
}

/// How well sign codes agree with a query: the sum of the query's four-bit values where the code
/// has its bit set, plus the same of their complements where it has not.
pub(super) struct Agreement {
    level: Level,
    planes: [Vec<u64>; PLANES],
}

impl Agreement {
    pub(super) fn new(planes: [Vec<u64>; PLANES]) -> Self {
        Self {
            level: Level::detect(),
            planes,
        }
    }

    #[cfg(test)]
    pub(super) fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// Writes the agreement with the code of `slots[i]` (of `words` words) to `out[i]`. A slot
    /// that does not exist gets `u32::MAX`.
    pub(super) fn agreements(&self, codes: &[u64], words: usize, slots: &[u32], out: &mut [u32]) {
        match self.level {
            Level::Scalar => self.run(codes, words, slots, out),
            // SAFETY: `Level::all` offers Avx2 only where the machine has avx2 and popcnt.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { x86::agreements_popcnt(self, codes, words, slots, out) },
            // SAFETY: `Level::all` offers Avx512 only where the machine has all that is enabled.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { x86::agreements_avx512(self, codes, words, slots, out) },
            // NEON belongs to the base of aarch64: the compiler uses it unasked.
            #[cfg(target_arch = "aarch64")]
            Level::Neon => self.run(codes, words, slots, out),
        }
    }

    /// Compiled once per level, with that level's instructions: it and what it calls are always
    /// inlined, and have no closures that would be compiled apart. Four words (256 dimensions)
    /// are known to the compiler as such, which unrolls them.
    #[inline(always)]
    fn run(&self, codes: &[u64], words: usize, slots: &[u32], out: &mut [u32]) {
        let [a, b, c, d] = &self.planes;
        run_planes([a, b, c, d], codes, words, slots, out);
    }
}

#[inline(always)]
fn run_planes<const P: usize>(
    planes: [&Vec<u64>; P],
    codes: &[u64],
    words: usize,
    slots: &[u32],
    out: &mut [u32],
) {
    let mut four = [[0; 4]; P];
    for (four, plane) in four.iter_mut().zip(planes) {
        match plane.as_array() {
            Some(plane) if words == 4 => *four = *plane,
            _ => return run_any(planes, codes, words, slots, out),
        }
    }
    let (codes, _) = codes.as_chunks::<4>();
    for (&slot, out) in slots.iter().zip(out) {
        *out = match codes.get(slot as usize) {
            Some(code) => weigh(&four, code),
            None => u32::MAX,
        };
    }
}

#[inline(always)]
fn run_any<const P: usize>(
    planes: [&Vec<u64>; P],
    codes: &[u64],
    words: usize,
    slots: &[u32],
    out: &mut [u32],
) {
    for (&slot, out) in slots.iter().zip(out) {
        let start = slot as usize * words;
        *out = match codes.get(start..start + words) {
            Some(code) => weigh(&planes, code),
            None => u32::MAX,
        };
    }
}

/// Equal bits, those of plane `p` counted 2^p times.
#[inline(always)]
fn weigh<Q: AsRef<[u64]>>(planes: &[Q], code: &[u64]) -> u32 {
    let mut sum = 0;
    for plane in planes.iter().rev() {
        sum *= 2;
        for (q, c) in plane.as_ref().iter().zip(code) {
            sum += (!(q ^ c)).count_ones();
        }
    }
    sum
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Agreement, dot_scalar, each};

    #[target_feature(enable = "avx2")]
    pub(super) fn dots_avx2(query: &[i8], rows: &[i8], slots: &[u32], out: &mut [i32]) {
        each(query.len(), rows, slots, out, |row| {
            let (q, q_tail) = query.as_chunks::<32>();
            let (r, r_tail) = row.as_chunks::<32>();
            let mut sum = _mm256_setzero_si256();
            for (q, r) in q.iter().zip(r) {
                // SAFETY: each chunk is 32 bytes long, and the loads need no alignment.
                let (q, r) = unsafe {
                    (
                        _mm256_loadu_si256(q.as_ptr().cast()),
                        _mm256_loadu_si256(r.as_ptr().cast()),
                    )
                };
                sum = _mm256_add_epi32(sum, product_avx2(q, r));
            }
            sum_avx2(sum) + dot_scalar(q_tail, r_tail)
        });
    }

    #[target_feature(enable = "avx2")]
    fn product_avx2(q: __m256i, r: __m256i) -> __m256i {
        let low = |x| _mm256_cvtepi8_epi16(_mm256_castsi256_si128(x));
        let high = |x| _mm256_cvtepi8_epi16(_mm256_extracti128_si256::<1>(x));
        _mm256_add_epi32(
            _mm256_madd_epi16(low(q), low(r)),
            _mm256_madd_epi16(high(q), high(r)),
        )
    }

    #[target_feature(enable = "avx2")]
    fn sum_avx2(x: __m256i) -> i32 {
        let x = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
        let x = _mm_add_epi32(x, _mm_shuffle_epi32::<0b01_00_11_10>(x));
        let x = _mm_add_epi32(x, _mm_shuffle_epi32::<0b10_11_00_01>(x));
        _mm_cvtsi128_si32(x)
    }

    /// VNNI multiplies unsigned by signed bytes. A row with its top bits flipped is the row
    /// plus 128, so what comes out is the product plus 128 times the sum of the query.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    pub(super) fn dots_avx512(query: &[i8], rows: &[i8], slots: &[u32], out: &mut [i32]) {
        let (q, q_tail) = query.as_chunks::<64>();
        let surplus: i32 = q.as_flattened().iter().map(|&x| 128 * i32::from(x)).sum();
        let flip = _mm512_set1_epi8(i8::MIN);
        each(query.len(), rows, slots, out, |row| {
            let (r, r_tail) = row.as_chunks::<64>();
            let mut sum = _mm512_setzero_si512();
            for (q, r) in q.iter().zip(r) {
                // SAFETY: each chunk is 64 bytes long, and the loads need no alignment.
                let (q, r) = unsafe {
                    (
                        _mm512_loadu_si512(q.as_ptr().cast()),
                        _mm512_loadu_si512(r.as_ptr().cast()),
                    )
                };
                sum = _mm512_dpbusd_epi32(sum, _mm512_xor_si512(r, flip), q);
            }
            _mm512_reduce_add_epi32(sum) - surplus + dot_scalar(q_tail, r_tail)
        });
    }

    #[target_feature(enable = "popcnt,avx2")]
    pub(super) fn agreements_popcnt(
        kernel: &Agreement,
        codes: &[u64],
        words: usize,
        slots: &[u32],
        out: &mut [u32],
    ) {
        kernel.run(codes, words, slots, out);
    }

    #[target_feature(enable = "popcnt,avx512f,avx512bw,avx512vl,avx512vpopcntdq")]
    pub(super) fn agreements_avx512(
        kernel: &Agreement,
        codes: &[u64],
        words: usize,
        slots: &[u32],
        out: &mut [u32],
    ) {
        let [a, b, c, d] = &kernel.planes;
        let planes = [a, b, c, d].map(|plane| plane.as_array::<4>());
        let (rows, _) = codes.as_chunks::<4>();
        let ([Some(a), Some(b), Some(c), Some(d)], 4) = (planes, words) else {
            return kernel.run(codes, words, slots, out);
        };
        let planes = [twice(a), twice(b), twice(c), twice(d)];
        let (eights, tail) = slots.as_chunks::<8>();
        let (outs, out_tail) = out.split_at_mut(eights.len() * 8);
        for (slots, out) in eights.iter().zip(outs.as_chunks_mut::<8>().0) {
            match slots.map(|slot| rows.get(slot as usize)) {
                [
                    Some(a),
                    Some(b),
                    Some(c),
                    Some(d),
                    Some(e),
                    Some(f),
                    Some(g),
                    Some(h),
                ] => {
                    *out = eight_agreements(&planes, [[a, b], [c, d], [e, f], [g, h]]);
                }
                _ => kernel.run(codes, words, slots, out),
            }
        }
        kernel.run(codes, words, tail, out_tail);
    }

    /// Four words, in both halves of a register.
    #[target_feature(enable = "avx512f")]
    fn twice(words: &[u64; 4]) -> __m512i {
        // SAFETY: 32 bytes are there, and the load needs no alignment.
        let half = unsafe { _mm256_loadu_si256(words.as_ptr().cast()) };
        _mm512_broadcast_i64x4(half)
    }

    /// The bits of each word of two codes that differ, those of plane `p` counted 2^p times.
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    fn disagreements(planes: &[__m512i; 4], [low, high]: [&[u64; 4]; 2]) -> __m512i {
        // SAFETY: 32 bytes are there, and the loads need no alignment.
        let (low, high) = unsafe {
            (
                _mm256_loadu_si256(low.as_ptr().cast()),
                _mm256_loadu_si256(high.as_ptr().cast()),
            )
        };
        let code = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
        let [a, b, c, d] = *planes;
        let mut sum = _mm512_popcnt_epi64(_mm512_xor_si512(d, code));
        for plane in [c, b, a] {
            let next = _mm512_popcnt_epi64(_mm512_xor_si512(plane, code));
            sum = _mm512_add_epi64(_mm512_add_epi64(sum, sum), next);
        }
        sum
    }

    /// Eight codes of 256 bits, two to a register. What disagrees is counted per word, at most
    /// 64 × 15 of it, so that the counts of four registers fit side by side into one and are
    /// summed together.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq")]
    fn eight_agreements(planes: &[__m512i; 4], pairs: [[&[u64; 4]; 2]; 4]) -> [u32; 8] {
        const MOST: u32 = 15 * 256;
        let [w, x, y, z] = pairs;
        let (w, x) = (disagreements(planes, w), disagreements(planes, x));
        let (y, z) = (disagreements(planes, y), disagreements(planes, z));
        let wx = _mm512_or_si512(w, _mm512_slli_epi64::<16>(x));
        let yz = _mm512_or_si512(y, _mm512_slli_epi64::<16>(z));
        let all = _mm512_or_si512(wx, _mm512_slli_epi64::<32>(yz));
        let all = _mm512_add_epi16(all, _mm512_permutex_epi64::<0b10_11_00_01>(all));
        let all = _mm512_add_epi16(all, _mm512_permutex_epi64::<0b01_00_11_10>(all));
        let low = _mm512_castsi512_si128(all);
        let high = _mm256_castsi256_si128(_mm512_extracti64x4_epi64::<1>(all));
        // Word for word: the first, second, third and fourth code's low halves, then the high ones.
        let counts = _mm256_cvtepu16_epi32(_mm_unpacklo_epi16(low, high));
        let agree = _mm256_sub_epi32(_mm256_set1_epi32(MOST.cast_signed()), counts);
        let mut out = [0; 8];
        // SAFETY: 32 bytes are there, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), agree) };
        out
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::*;

    use super::dot_scalar;

    pub(super) fn dot(query: &[i8], row: &[i8]) -> i32 {
        let (q, q_tail) = query.as_chunks::<16>();
        let (r, r_tail) = row.as_chunks::<16>();
        // SAFETY: NEON belongs to the base of aarch64; each chunk is 16 bytes long.
        let head = unsafe {
            let mut sum = vdupq_n_s32(0);
            for (q, r) in q.iter().zip(r) {
                let (q, r) = (vld1q_s8(q.as_ptr()), vld1q_s8(r.as_ptr()));
                // −128 × −128 twice would overflow 16 bits; each half is widened on its own.
                sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(q), vget_low_s8(r)));
                sum = vpadalq_s16(sum, vmull_high_s8(q, r));
            }
            vaddvq_s32(sum)
        };
        head + dot_scalar(q_tail, r_tail)
    }
}
