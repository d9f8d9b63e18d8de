//! The inner loops, for the instruction sets found at run time. The only module with `unsafe`;
//! every kernel gives the integers that its scalar twin gives.

#![allow(unsafe_code, reason = "vector instructions; see the SAFETY notes")]

use super::sketches::{ABREAST, Bytes, Group};

/// What a table says at the most: four of them are summed in a byte.
const MOST: u16 = 63;
/// Values that a table is made for.
const FOUR: usize = 4;

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
            if is_x86_feature_detected!("avx2") {
                levels.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vnni")
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
            fetch_early(rows, ahead, len);
        }
        let start = slot as usize * len;
        *out = rows.get(start..start + len).map_or(i32::MIN, &dot);
    }
}

/// How many rows ahead memory is asked for.
pub(super) const AHEAD: usize = 6;

/// Asks for the row of a slot, of so many bytes.
#[inline(always)]
pub(super) fn fetch_early<Byte>(rows: &[Byte], slot: u32, len: usize) {
    const { assert!(size_of::<Byte>() == 1) };
    let start = slot as usize * len;
    #[cfg(target_arch = "x86_64")]
    for line in (start..start + len).step_by(64) {
        if let Some(byte) = rows.get(line) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: the address is that of a byte that is there; nothing is read or changed.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
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

/// How near sketches are to one query: its product with the signs that they hold, looked up four
/// dimensions at a time in tables that were made for the query.
pub(super) struct Lookup {
    level: Level,
    /// For each four dimensions what their sixteen combinations of signs are worth, in whole
    /// steps above the least.
    tables: Vec<Table>,
    /// What the tables say in sum where the product is nothing.
    nothing: f32,
}

type Table = [u8; 1 << FOUR];

impl Lookup {
    /// For sketches of so many bytes.
    pub(super) fn new(query: &[f32], row: usize) -> Self {
        Self::at(Level::detect(), query, row)
    }

    pub(super) fn at(level: Level, query: &[f32], row: usize) -> Self {
        let fours = row * 8 / FOUR;
        let mut query = query.to_vec();
        query.resize(fours * FOUR, 0.0);
        let (query, _) = query.as_chunks::<FOUR>();
        let most_of = |four: &[f32; FOUR]| four.iter().map(|x| x.abs()).sum::<f32>();
        let farthest = query.iter().map(most_of).fold(f32::MIN_POSITIVE, f32::max);
        // All of them together must fit into sixteen bits.
        let most = MOST.min(u16::try_from(usize::from(u16::MAX) / fours).unwrap_or(MOST));
        let step = 2.0 * farthest / f32::from(most);
        let table = |four: &[f32; FOUR]| {
            let least = -most_of(four);
            std::array::from_fn(|signs| {
                let signed = |(bit, x): (usize, &f32)| if signs >> bit & 1 == 1 { *x } else { -x };
                let product: f32 = four.iter().enumerate().map(signed).sum();
                ((product - least) / step).round() as u8
            })
        };
        Self {
            level,
            tables: query.iter().map(table).collect(),
            nothing: query.iter().map(most_of).sum::<f32>() / step,
        }
    }

    /// How near each of the sketches is.
    pub(super) fn near(&self, group: Group<'_>) -> [f32; ABREAST] {
        match self.level {
            Level::Scalar => self.weigh(&sums_scalar(&self.tables, group.bits), group),
            // SAFETY: `Level::all` offers Avx2 only where the machine has avx2.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { x86::near_avx2(self, group) },
            // SAFETY: `Level::all` offers Avx512 only where the machine has avx512f and bw.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { x86::near_avx512(self, group) },
            #[cfg(target_arch = "aarch64")]
            Level::Neon => self.weigh(&neon::sums(&self.tables, group.bits), group),
        }
    }

    /// A bit for each of the sketches that is at least as near as `bar`.
    pub(super) fn reach(&self, group: Group<'_>, bar: f32) -> u64 {
        match self.level {
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { x86::reach_avx2(self, group, bar) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { x86::reach_avx512(self, group, bar) },
            _ => {
                let near = self.near(group).into_iter().enumerate();
                near.fold(0, |bits, (at, near)| bits | u64::from(near >= bar) << at)
            }
        }
    }

    /// Compiled once per level, with that level's instructions.
    #[inline(always)]
    fn weigh(&self, sums: &[u16; ABREAST], group: Group<'_>) -> [f32; ABREAST] {
        let mut near = [0.0; ABREAST];
        for ((near, sum), stride) in near.iter_mut().zip(sums).zip(group.strides) {
            *near = (f32::from(*sum) - self.nothing) * stride;
        }
        near
    }
}

/// What the tables say of each sketch, in sum: the lower half of each byte is for the first of two
/// tables.
fn sums_scalar(tables: &[Table], bits: &[Bytes]) -> [u16; ABREAST] {
    let mut sums = [0; ABREAST];
    for ([low, high], bytes) in tables.as_chunks::<2>().0.iter().zip(bits) {
        for (sum, byte) in sums.iter_mut().zip(bytes.0) {
            let said = |table: &Table, four: u8| {
                u16::from(table.get(usize::from(four)).copied().unwrap_or(0))
            };
            *sum += said(low, byte & 15) + said(high, byte >> 4);
        }
    }
    sums
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{ABREAST, Bytes, Group, Lookup, Table, dot_scalar, each};

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

    #[target_feature(enable = "avx2")]
    pub(super) fn near_avx2(lookup: &Lookup, group: Group<'_>) -> [f32; ABREAST] {
        let mut sums = [0; ABREAST];
        for (half, sums) in sums.as_chunks_mut().0.iter_mut().enumerate() {
            *sums = sums_avx2(&lookup.tables, group.bits, half);
        }
        lookup.weigh(&sums, group)
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn reach_avx2(lookup: &Lookup, group: Group<'_>, bar: f32) -> u64 {
        let bar = _mm256_set1_ps(bar);
        let mut bits = 0;
        for (at, near) in near_avx2(lookup, group)
            .as_chunks::<8>()
            .0
            .iter()
            .enumerate()
        {
            // SAFETY: eight numbers are there, and the load needs no alignment.
            let near = unsafe { _mm256_loadu_ps(near.as_ptr()) };
            let reach = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(near, bar));
            bits |= u64::from(reach.cast_unsigned()) << (at * 8);
        }
        bits
    }

    /// The sums of one half of the sketches. Bytes of four tables are summed as bytes; then those
    /// at even places are told from those at odd ones, as sixteen bits each.
    #[target_feature(enable = "avx2")]
    fn sums_avx2(tables: &[Table], bits: &[Bytes], half: usize) -> [u16; 32] {
        let low = _mm256_set1_epi8(15);
        // SAFETY: a table is 16 bytes long, and the load needs no alignment.
        let table = |table: &Table| unsafe {
            _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()))
        };
        let said = |tables: [&Table; 2], bytes: &Bytes| {
            let bytes = bytes.0.as_chunks::<32>().0.get(half).unwrap_or(&[0; 32]);
            // SAFETY: 32 bytes are there, and the load needs no alignment.
            let bytes = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
            let [first, second] = tables.map(table);
            let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), low);
            let lower = _mm256_and_si256(bytes, low);
            _mm256_add_epi8(
                _mm256_shuffle_epi8(first, lower),
                _mm256_shuffle_epi8(second, upper),
            )
        };
        let (mut all, mut odd) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        let (fours, pairs) = (tables.as_chunks::<4>().0, bits.as_chunks::<2>().0);
        for ([a, b, c, d], [one, other]) in fours.iter().zip(pairs) {
            let bytes = _mm256_add_epi8(said([a, b], one), said([c, d], other));
            all = _mm256_add_epi16(all, bytes);
            odd = _mm256_add_epi16(odd, _mm256_srli_epi16::<8>(bytes));
        }
        let even = _mm256_sub_epi16(all, _mm256_slli_epi16::<8>(odd));
        let first = _mm256_unpacklo_epi16(even, odd);
        let second = _mm256_unpackhi_epi16(even, odd);
        let mut sums = [0; 32];
        let places = sums.as_mut_ptr().cast::<__m256i>();
        // SAFETY: there is room for two registers, and the stores need no alignment.
        unsafe {
            _mm256_storeu_si256(places, _mm256_permute2x128_si256::<0x20>(first, second));
            _mm256_storeu_si256(
                places.add(1),
                _mm256_permute2x128_si256::<0x31>(first, second),
            );
        }
        sums
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn near_avx512(lookup: &Lookup, group: Group<'_>) -> [f32; ABREAST] {
        let sums = sums_avx512(&lookup.tables, group.bits);
        lookup.weigh(&sums, group)
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn reach_avx512(lookup: &Lookup, group: Group<'_>, bar: f32) -> u64 {
        let bar = _mm512_set1_ps(bar);
        let mut bits = 0;
        for (at, near) in near_avx512(lookup, group)
            .as_chunks::<16>()
            .0
            .iter()
            .enumerate()
        {
            // SAFETY: sixteen numbers are there, and the load needs no alignment.
            let near = unsafe { _mm512_loadu_ps(near.as_ptr()) };
            let reach = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(near, bar);
            bits |= u64::from(reach) << (at * 16);
        }
        bits
    }

    /// As with avx2, all the sketches at once.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn sums_avx512(tables: &[Table], bits: &[Bytes]) -> [u16; ABREAST] {
        let low = _mm512_set1_epi8(15);
        // SAFETY: a table is 16 bytes long, and the load needs no alignment.
        let table = |table: &Table| unsafe {
            _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast()))
        };
        let said = |tables: [&Table; 2], bytes: &Bytes| {
            // SAFETY: 64 bytes are there, and the load needs no alignment.
            let bytes = unsafe { _mm512_loadu_si512(bytes.0.as_ptr().cast()) };
            let [first, second] = tables.map(table);
            let upper = _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), low);
            let lower = _mm512_and_si512(bytes, low);
            _mm512_add_epi8(
                _mm512_shuffle_epi8(first, lower),
                _mm512_shuffle_epi8(second, upper),
            )
        };
        let (mut all, mut odd) = (_mm512_setzero_si512(), _mm512_setzero_si512());
        let (fours, pairs) = (tables.as_chunks::<4>().0, bits.as_chunks::<2>().0);
        for ([a, b, c, d], [one, other]) in fours.iter().zip(pairs) {
            let bytes = _mm512_add_epi8(said([a, b], one), said([c, d], other));
            all = _mm512_add_epi16(all, bytes);
            odd = _mm512_add_epi16(odd, _mm512_srli_epi16::<8>(bytes));
        }
        let even = _mm512_sub_epi16(all, _mm512_slli_epi16::<8>(odd));
        let first = _mm512_unpacklo_epi16(even, odd);
        let second = _mm512_unpackhi_epi16(even, odd);
        // Eight of the first, eight of the second, and so on.
        let order = |from: i64| {
            let pair = |at: i64| [from + at, from + at + 1, from + at + 8, from + at + 9];
            let ([a, b, c, d], [e, f, g, h]) = (pair(0), pair(2));
            _mm512_setr_epi64(a, b, c, d, e, f, g, h)
        };
        let mut sums = [0; ABREAST];
        let places = sums.as_mut_ptr().cast::<__m512i>();
        // SAFETY: there is room for two registers, and the stores need no alignment.
        unsafe {
            _mm512_storeu_si512(places, _mm512_permutex2var_epi64(first, order(0), second));
            _mm512_storeu_si512(
                places.add(1),
                _mm512_permutex2var_epi64(first, order(4), second),
            );
        }
        sums
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::*;

    use super::{ABREAST, Bytes, Table, dot_scalar};

    /// What the tables say of each sketch, in sum, sixteen sketches at a time.
    pub(super) fn sums(tables: &[Table], bits: &[Bytes]) -> [u16; ABREAST] {
        let mut sums = [0; ABREAST];
        for (quarter, sums) in sums.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            // SAFETY: NEON belongs to the base of aarch64; a table and a quarter of a row are 16
            // bytes long, and there is room for two registers of sums.
            unsafe {
                let (mut first, mut second) = (vdupq_n_u16(0), vdupq_n_u16(0));
                for ([low, high], bytes) in tables.as_chunks::<2>().0.iter().zip(bits) {
                    let bytes = bytes.0.as_chunks::<16>().0.get(quarter).unwrap_or(&[0; 16]);
                    let bytes = vld1q_u8(bytes.as_ptr());
                    let low = vqtbl1q_u8(vld1q_u8(low.as_ptr()), vandq_u8(bytes, vdupq_n_u8(15)));
                    let high = vqtbl1q_u8(vld1q_u8(high.as_ptr()), vshrq_n_u8::<4>(bytes));
                    let said = vaddq_u8(low, high);
                    first = vaddw_u8(first, vget_low_u8(said));
                    second = vaddw_high_u8(second, said);
                }
                vst1q_u16(sums.as_mut_ptr(), first);
                vst1q_u16(sums.as_mut_ptr().add(8), second);
            }
        }
        sums
    }

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
