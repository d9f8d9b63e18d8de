use proptest::prelude::*;

use super::rotate::rotate;
use super::simd::{DotI8, Level, Lookup};
use super::sketches::{ABREAST, Bytes, Group};
use super::*;
use crate::search::column_file::{Reading, Writing};

/// A fixed sequence of numbers in −1..1, so that a failure can be repeated.
fn numbers(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn unit(seed: u64, dimension: usize) -> Vec<f32> {
    let mut v = numbers(seed, dimension);
    normalise(&mut v).unwrap();
    v
}

fn filled(count: u64, dimension: usize) -> VectorSet {
    let mut set = VectorSet::new(dimension).unwrap();
    for seed in 1..=count {
        set.push(&unit(seed, dimension)).unwrap();
    }
    set
}

/// What a search must find: every candidate scored with the unrounded query, sorted.
fn oracle(set: &VectorSet, query: &[f32], k: usize, slots: impl Iterator<Item = u32>) -> Vec<u32> {
    let score = |slot: u32| {
        let kept = set.get(slot).unwrap();
        let nibbles = nibbles(&kept.fine);
        let values = kept.codes.iter().zip(nibbles);
        let row: Vec<f32> = values
            .map(|(&code, n)| f32::from(code) + super::set::rest(n))
            .collect();
        dot(query, &row) * kept.scale
    };
    let mut all: Vec<(f32, u32)> = slots.map(|s| (score(s), s)).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    all.into_iter().take(k).map(|(_, s)| s).collect()
}

fn nibbles(fine: &[u8]) -> impl Iterator<Item = u8> {
    let low = fine.iter().map(|byte| byte & 15);
    low.chain(fine.iter().map(|byte| byte >> 4))
}

/// The nearest of all, by a scan that compares codes up to so many vectors.
fn nearest(set: &VectorSet, query: &[f32], k: usize, config: &ScanConfig) -> Vec<Scored> {
    set.search(query, k, Candidates::All, config).unwrap()
}

fn exact_up_to(exact_up_to: usize) -> ScanConfig {
    ScanConfig {
        exact_up_to,
        ..ScanConfig::default()
    }
}

fn slots(hits: &[Scored]) -> Vec<u32> {
    hits.iter().map(|h| h.slot).collect()
}

#[test]
fn normalise_refuses_what_has_no_direction() {
    let refused = |mut v: Vec<f32>| normalise(&mut v).unwrap_err();
    assert_eq!(refused(vec![0.0; 3]), VectorError::Zero);
    assert_eq!(
        refused(vec![1.0, f32::NAN]),
        VectorError::NotFinite { index: 1 }
    );
    assert_eq!(
        refused(vec![f32::INFINITY, 1.0]),
        VectorError::NotFinite { index: 0 }
    );
    let mut huge = vec![f32::MAX, f32::MAX];
    normalise(&mut huge).unwrap();
    assert!((huge[0] - 0.707_106_77).abs() < 1e-6);
    let mut tiny = vec![1e-40, 0.0];
    normalise(&mut tiny).unwrap();
    assert!((tiny[0] - 1.0).abs() < 1e-6);
}

#[test]
fn a_set_refuses_foreign_vectors() {
    assert!(VectorSet::new(0).is_err() && VectorSet::new(MAX_DIMENSION + 1).is_err());
    let mut set = VectorSet::new(4).unwrap();
    assert_eq!(
        set.push(&[1.0; 3]),
        Err(VectorError::WrongDimension {
            expected: 4,
            got: 3
        })
    );
    assert_eq!(set.push(&[0.0; 4]), Err(VectorError::Zero));
    assert_eq!(
        set.push(&[1.0, f32::NAN, 0.0, 0.0]),
        Err(VectorError::NotFinite { index: 1 })
    );
    assert!(set.is_empty() && set.get(0).is_none());
    let search = |query: &[f32]| set.search(query, 3, Candidates::All, &ScanConfig::default());
    assert!(search(&[1.0; 4]).unwrap().is_empty());
    assert!(search(&[1.0; 5]).is_err());
    assert!(search(&[f32::NAN; 4]).is_err());
}

#[test]
fn the_exact_scan_is_exact() {
    let set = filled(3000, 100);
    for seed in 0..20 {
        let query = unit(10_000 + seed, 100);
        let hits = nearest(&set, &query, 10, &ScanConfig::default());
        assert_eq!(slots(&hits), oracle(&set, &query, 10, 0..3000));
    }
}

#[test]
fn the_prefilter_finds_what_is_near() {
    let set = filled(5000, 256);
    let config = ScanConfig {
        exact_up_to: 100,
        oversample: 0.04,
        pass_at_least: 0,
        ..ScanConfig::default()
    };
    for slot in (0..5000).step_by(499) {
        let mut query = unit(u64::from(slot) + 1, 256);
        query
            .iter_mut()
            .zip(numbers(7, 256))
            .for_each(|(x, noise)| *x += 0.03 * noise);
        let hits = nearest(&set, &query, 3, &config);
        assert_eq!(hits[0].slot, slot);
        assert!(hits[0].score > 0.8);
    }
}

/// Vectors that share most of their length, as texts of one kind do.
fn with_much_in_common(count: u64) -> VectorSet {
    let mut set = VectorSet::new(256).unwrap();
    let common = unit(77, 256);
    for seed in 1..=count {
        let v: Vec<f32> = unit(seed, 256)
            .iter()
            .zip(&common)
            .map(|(x, c)| x + 2.0 * c)
            .collect();
        set.push(&v).unwrap();
    }
    set
}

#[test]
fn recentring_makes_the_bits_tell_more() {
    let mut set = with_much_in_common(6000);
    let config = ScanConfig {
        exact_up_to: 0,
        oversample: 0.02,
        pass_at_least: 0,
        rescore_factor: 1,
    };
    let found = |set: &VectorSet| -> usize {
        let queries = (0..20).map(|i| unit(90_000 + i, 256));
        let right = |q: Vec<f32>| {
            let hits = slots(&nearest(set, &q, 10, &config));
            oracle(set, &q, 10, 0..6000)
                .iter()
                .filter(|s| hits.contains(s))
                .count()
        };
        queries.map(right).sum()
    };
    let before = found(&set);
    set.recentre();
    let after = found(&set);
    assert!(after > before + 20, "{before} of 200 before, {after} after");
    // Later vectors get their bits from the same centre.
    let late = set.push(&unit(5, 256)).unwrap();
    assert_eq!(nearest(&set, &unit(5, 256), 1, &config)[0].slot, late);
    VectorSet::new(3).unwrap().recentre();
}

#[test]
fn filters_come_before_ranking() {
    let set = filled(2000, 64);
    let query = unit(99_999, 64);
    let even: Vec<u32> = (0..2000).step_by(2).collect();
    let mask = vec![0x5555_5555_5555_5555u64; 2000 / 64 + 1];
    let expected = oracle(&set, &query, 10, even.iter().copied());
    for config in [0, 5000].map(exact_up_to) {
        // Oversampling everything makes the bits choose nothing away.
        let config = ScanConfig {
            oversample: 1.0,
            ..config
        };
        for candidates in [Candidates::Slots(&even), Candidates::Mask(&mask)] {
            let hits = set.search(&query, 10, candidates, &config).unwrap();
            assert_eq!(slots(&hits), expected);
        }
    }
    let few = Candidates::Slots(&[5, 1999, 2000, 77_777]);
    let few = set.search(&query, 10, few, &ScanConfig::default()).unwrap();
    assert_eq!(few.len(), 2, "slots that do not exist are not found");
}

#[test]
fn ties_go_to_the_smaller_slot() {
    let mut set = VectorSet::new(64).unwrap();
    for _ in 0..600 {
        set.push(&unit(1, 64)).unwrap();
    }
    for config in [0, 1000].map(exact_up_to) {
        let hits = nearest(&set, &unit(1, 64), 5, &config);
        assert_eq!(slots(&hits), [0, 1, 2, 3, 4]);
    }
}

#[test]
fn replacing_keeps_the_rest() {
    let mut set = filled(50, 70);
    let new = quantise(&unit(1234, 70)).unwrap();
    assert!(set.replace(3, &new).unwrap());
    assert!(!set.replace(50, &new).unwrap());
    assert_eq!(set.get(3), Some(new));
    for config in [0, 1000].map(exact_up_to) {
        let config = ScanConfig {
            oversample: 0.1,
            ..config
        };
        for (seed, slot) in [(1234, 3), (50, 49), (1, 0)] {
            assert_eq!(nearest(&set, &unit(seed, 70), 1, &config)[0].slot, slot);
        }
    }
}

#[test]
fn turning_keeps_lengths_and_products() {
    for dimension in [1, 2, 3, 64, 100, 256, 384] {
        let (one, other) = (unit(3, dimension), unit(4, dimension));
        let (mut a, mut b) = (one.clone(), other.clone());
        rotate(&mut a);
        rotate(&mut b);
        assert!((dot(&a, &a) - 1.0).abs() < 1e-5, "{dimension}");
        assert!(
            (dot(&a, &b) - dot(&one, &other)).abs() < 1e-5,
            "{dimension}"
        );
    }
    // What one dimension carries is shared by all.
    let mut alone = vec![0.0; 256];
    alone[17] = 1.0;
    rotate(&mut alone);
    assert!(alone.iter().all(|x| (x.abs() - 1.0 / 16.0).abs() < 1e-6));
}

#[test]
fn what_is_kept_is_finer_than_int8() {
    let values = unit(7, 71);
    let kept = quantise(&values).unwrap();
    assert_eq!(kept.fine.len(), 36);
    let again = Quantised::from_bytes(&kept.to_bytes(), 71, kept.scale);
    assert_eq!(again, kept);
    let nibbles = nibbles(&kept.fine);
    for ((value, code), nibble) in values.iter().zip(&kept.codes).zip(nibbles) {
        let near = (f32::from(*code) + super::set::rest(nibble)) * kept.scale;
        assert!((value - near).abs() <= kept.scale / 15.0, "{value} {near}");
    }
    // Codes without nibbles, as they once were kept, are read as codes.
    let old = Quantised::from_bytes(&kept.to_bytes()[..71], 71, kept.scale);
    assert_eq!((old.codes, old.fine.len()), (kept.codes, 36));
}

#[test]
fn the_longest_vectors_do_not_overflow() {
    let row = MAX_DIMENSION / 8;
    let query = vec![1.0; MAX_DIMENSION];
    let bits = vec![Bytes([0xff; ABREAST]); row];
    let group = Group {
        bits: &bits,
        strides: &[1.0; ABREAST],
    };
    for level in Level::all() {
        let near = Lookup::at(level, &query, row).near(group);
        // Every sign agrees: half of the way from the least to the most.
        let most = 31.0 * (MAX_DIMENSION / 4) as f32;
        assert_eq!(near, [most / 2.0; ABREAST], "{level:?}");
    }
}

#[test]
fn of_many_the_nearest_are_found_wherever_they_stand() {
    let set = filled(9000, 64);
    let config = ScanConfig {
        exact_up_to: 0,
        oversample: 0.1,
        ..ScanConfig::default()
    };
    // All, a quarter that lies together, every fifth, and so few that their codes are compared.
    let kept: [fn(u32) -> bool; 4] = [
        |_| true,
        |slot| (4000..6300).contains(&slot),
        |slot| slot % 5 == 0,
        |slot| slot % 70 == 3,
    ];
    for kept in kept {
        let picked: Vec<u32> = (0..9000).filter(|slot| kept(*slot)).collect();
        let mut mask = vec![0u64; 9000 / 64 + 2];
        picked
            .iter()
            .for_each(|slot| mask[*slot as usize / 64] |= 1 << (slot % 64));
        for seed in 0..10 {
            let query = unit(70_000 + seed, 64);
            let expected = oracle(&set, &query, 5, picked.iter().copied());
            for candidates in [Candidates::Slots(&picked), Candidates::Mask(&mask)] {
                let hits = set.search(&query, 5, candidates, &config).unwrap();
                assert_eq!(slots(&hits), expected);
            }
        }
    }
}

/// Sessions of sixty-four in a row, each about one of a few subjects.
fn about_subjects(sessions: u64, dimension: usize) -> VectorSet {
    let mut set = VectorSet::new(dimension).unwrap();
    for seed in 0..sessions * 64 {
        let subject = unit(subject_of(seed / 64), dimension);
        let noise = unit(1_000_000 + seed, dimension).into_iter();
        let vector: Vec<f32> = noise.zip(&subject).map(|(x, s)| x + 2.0 * s).collect();
        set.push(&vector).unwrap();
    }
    set.recentre();
    set
}

fn subject_of(session: u64) -> u64 {
    5_000_000 + session * 7919 % 40
}

#[test]
fn what_lies_together_does_not_mislead_the_sample() {
    let set = about_subjects(400, 64);
    let exact = exact_up_to(usize::MAX);
    for seed in 0..20 {
        let noise = unit(9_000_000 + seed, 64).into_iter();
        let subject = unit(subject_of(seed), 64);
        let query: Vec<f32> = noise.zip(subject).map(|(x, s)| x + 1.5 * s).collect();
        let find = |config: &ScanConfig| slots(&nearest(&set, &query, 100, config));
        let (found, all) = (find(&ScanConfig::default()), find(&exact));
        let right = all.iter().filter(|slot| found.contains(slot)).count();
        assert!(right >= 99, "{right} of the nearest 100 of subject {seed}");
    }
}

#[test]
fn whoever_asks_for_everything_gets_everything() {
    let set = filled(300, 8);
    for config in [0, 1000].map(exact_up_to) {
        assert_eq!(nearest(&set, &unit(9, 8), usize::MAX, &config).len(), 300);
    }
}

#[test]
fn sketches_are_read_as_they_were_written() {
    let set = filled(500, 100);
    let kept: Vec<u32> = (0..500).filter(|slot| slot % 3 != 1).collect();
    let mut bytes = Vec::new();
    let mut out = Writing::new(&mut bytes);
    set.save(kept.len(), || kept.iter().copied(), &mut out)
        .unwrap();
    out.end().unwrap();
    let mut bytes = bytes.as_slice();
    let left = bytes.len() as u64;
    let mut from = Reading::new(&mut bytes, left);
    let loaded = VectorSet::load(100, kept.len(), &mut from).unwrap();
    let mut made = VectorSet::new(100).unwrap();
    for slot in &kept {
        made.push_quantised(&set.get(*slot).unwrap()).unwrap();
    }
    // So few pass that it is the sketches that choose.
    let config = ScanConfig {
        exact_up_to: 0,
        oversample: 0.01,
        pass_at_least: 0,
        rescore_factor: 1,
    };
    for seed in 0..50 {
        let find = |set: &VectorSet| {
            let query = unit(80_000 + seed, 100);
            nearest(set, &query, 3, &config)
        };
        assert_eq!(find(&loaded), find(&made));
    }
}

#[test]
fn this_machine_is_tested_beyond_scalar() {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        assert!(Level::all().contains(&Level::Avx2));
    }
    assert_eq!(Level::all()[0], Level::Scalar);
}

#[test]
fn a_set_without_sketches_compares_all() {
    let sketched = filled(400, 32);
    let mut plain = VectorSet::without_sketches(32).unwrap();
    for number in 1..=400 {
        plain
            .push_quantised(&quantise(&unit(number, 32)).unwrap())
            .unwrap();
    }
    plain.recentre();
    let by_sketches = ScanConfig {
        exact_up_to: 0,
        ..ScanConfig::default()
    };
    let query = unit(9, 32);
    let search = |set: &VectorSet, config: &ScanConfig| {
        set.search(&query, 7, Candidates::All, config).unwrap()
    };
    assert_eq!(
        search(&plain, &by_sketches),
        search(&sketched, &ScanConfig::default())
    );
}

proptest! {
    #[test]
    fn every_level_gives_the_scalar_product(
        dimension in 1usize..200,
        bytes in proptest::collection::vec(any::<i8>(), 200 * 9),
        picked in proptest::collection::vec(0u32..12, 0..20),
    ) {
        let (query, rows) = (&bytes[..dimension], &bytes[dimension..9 * dimension]);
        let expected: Vec<i32> = picked.iter().map(|&s| {
            let row = rows.chunks_exact(dimension).nth(s as usize)?;
            Some(query.iter().zip(row).map(|(&x, &y)| i32::from(x) * i32::from(y)).sum())
        }).map(|p| p.unwrap_or(i32::MIN)).collect();
        for level in Level::all() {
            let mut out = vec![0; picked.len()];
            DotI8::at(level, query).products(rows, &picked, &mut out);
            prop_assert_eq!(&out, &expected, "{:?}", level);
        }
    }

    #[test]
    fn every_level_finds_sketches_as_near_as_their_signs_say(
        words in 1usize..10,
        bits in proptest::collection::vec(any::<[u8; 32]>(), 2 * 8 * 10),
        query in proptest::collection::vec(-1.0f32..1.0, 10 * 64),
        strides in proptest::collection::vec(0.0f32..2.0, ABREAST),
    ) {
        let row = words * 8;
        let query = &query[..row * 8 - 3];
        let bits: Vec<Bytes> = bits.as_chunks::<2>().0.iter().map(|both| {
            let mut bytes = Bytes([0; ABREAST]);
            bytes.0.copy_from_slice(both.as_flattened());
            bytes
        }).collect();
        let group = Group { bits: &bits[..row], strides: strides.as_array().unwrap() };
        let scalar = Lookup::at(Level::Scalar, query, row).near(group);
        let bar = scalar[9];
        for level in Level::all() {
            let lookup = Lookup::at(level, query, row);
            prop_assert_eq!(lookup.near(group), scalar, "{:?}", level);
            let reach = lookup.reach(group, bar);
            let reached = (0..ABREAST).filter(|at| reach >> at & 1 == 1).collect::<Vec<_>>();
            let expected = (0..ABREAST).filter(|at| scalar[*at] >= bar).collect::<Vec<_>>();
            prop_assert_eq!(reached, expected, "{:?}", level);
        }
        // They are in steps, and each of the tables is off by half a step at the most.
        let four = |four: &[f32]| four.iter().map(|x| x.abs()).sum::<f32>();
        let step = 2.0 * query.chunks(4).map(four).fold(0.0, f32::max) / 63.0;
        for (slot, stride) in strides.iter().enumerate() {
            let sign = |at: usize| bits[at / 8].0[slot] >> (at % 8) & 1 == 1;
            let signed = query.iter().enumerate().map(|(at, x)| if sign(at) { *x } else { -x });
            let product = signed.sum::<f32>() * stride;
            let off = step * stride * row as f32 + 1e-3;
            prop_assert!((scalar[slot] * step - product).abs() <= off, "{slot}");
        }
    }

    #[test]
    fn top_k_is_a_sorted_beginning(scores in proptest::collection::vec(-3i8..3, 0..60), k in 0usize..20) {
        let mut top = TopK::new(k);
        let mut all: Vec<(f32, usize)> = scores.iter().map(|&s| f32::from(s)).zip(0..).collect();
        for &(score, id) in all.iter().rev() {
            top.push(score, id);
            top.push(f32::NAN, id);
        }
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        all.truncate(k);
        prop_assert_eq!(top.into_sorted(), all);
    }

    #[test]
    fn rounding_stays_within_half_a_step(values in proptest::collection::vec(-1e6f32..1e6, 1..80)) {
        if let Ok(q) = quantise(&values) {
            for (x, &code) in values.iter().zip(&q.codes) {
                prop_assert!((x - f32::from(code) * q.scale).abs() <= q.scale * 0.501);
            }
        }
    }

    #[test]
    fn any_search_is_sorted_distinct_and_among_the_candidates(
        count in 0u64..300, dimension in 1usize..80, k in 0usize..20, exact_up_to in 0usize..300, seed: u64,
    ) {
        let set = filled(count, dimension);
        let picked: Vec<u32> = (0..count as u32).filter(|s| s % 3 != 1).collect();
        let config = ScanConfig { exact_up_to, ..ScanConfig::default() };
        let hits = set.search(&unit(seed, dimension), k, Candidates::Slots(&picked), &config).unwrap();
        prop_assert_eq!(hits.len(), k.min(picked.len()));
        prop_assert!(hits.windows(2).all(|w| (-w[0].score, w[0].slot) < (-w[1].score, w[1].slot)));
        prop_assert!(hits.iter().all(|h| picked.binary_search(&h.slot).is_ok()));
    }
}
