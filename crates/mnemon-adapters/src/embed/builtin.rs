//! The static model in the binary: a text is the mean of the vectors of its pieces.

use std::sync::OnceLock;

use super::safetensors::Safetensors;
use super::wordpiece::Vocabulary;
use mnemon_core::embed::{EmbedError, Embedder, ModelId, english_fluency};

use super::unit;

static WEIGHTS: &[u8] = include_bytes!("../../assets/mnemon-static-256.safetensors");
pub(super) static VOCABULARY: &str = include_str!("../../assets/vocab.txt");

const NAME: &str = "builtin:static-256@2";
const DIMENSION: usize = 256;
/// Pieces of a text that are looked at; the rest would hardly move the mean.
const MAX_PIECES: usize = 512;
/// Pairs of words in the order of the first one's line: the lines of both, then 255 × the cosine.
static SIMILAR_WORDS: &[u8] = include_bytes!("../../assets/similar-words.bin");
/// Bytes to a pair.
const PAIR: usize = 5;
/// Texts between two chances for other tasks to run; they take about a millisecond.
const TEXTS_PER_TURN: usize = 32;

/// Needs no key, no network and no file. English; other languages rely on words.
#[derive(Clone, Copy)]
pub struct Builtin {
    table: &'static Table,
}

struct Table {
    model: ModelId,
    vocabulary: Vocabulary<'static>,
    rows: &'static [u8],
    scales: Vec<f32>,
}

impl Builtin {
    /// Builds the vocabulary's lookup the first time (about a millisecond); the rows are used
    /// where they lie in the binary.
    pub fn new() -> Result<Self, EmbedError> {
        static TABLE: OnceLock<Table> = OnceLock::new();
        if let Some(table) = TABLE.get() {
            return Ok(Self { table });
        }
        let table = Table::parse(WEIGHTS, VOCABULARY).map_err(|what| EmbedError::Weights {
            path: "(built in)".into(),
            what,
            source: None,
        })?;
        Ok(Self {
            table: TABLE.get_or_init(|| table),
        })
    }

    /// The vector of one text; `None` where it has no known piece.
    pub fn embed_one(&self, text: &str) -> Option<Vec<f32>> {
        let pieces = self.table.vocabulary.pieces(text, MAX_PIECES);
        // Sums of int8 × finite scale: always finite, so only a lack of direction is left.
        unit(self.table.sum(&pieces), 0).unwrap_or_default()
    }
}

#[async_trait::async_trait]
impl Embedder for Builtin {
    fn model(&self) -> &ModelId {
        &self.table.model
    }

    fn similar_words(&self, word: &str) -> Vec<(&'static str, f32)> {
        self.table.similar_words(word)
    }

    fn fluency(&self, text: &str) -> f32 {
        english_fluency(text)
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let mut out = Vec::with_capacity(texts.len());
        for turn in texts.chunks(TEXTS_PER_TURN) {
            // Others get their turn in between; a single text is not held up by them.
            if !out.is_empty() {
                tokio::task::yield_now().await;
            }
            out.extend(turn.iter().map(|text| self.embed_one(text)));
        }
        Ok(out)
    }
}

impl Table {
    fn parse(weights: &'static [u8], vocabulary: &'static str) -> Result<Self, String> {
        let vocabulary =
            Vocabulary::parse(vocabulary).ok_or("the vocabulary has no usable size")?;
        let tensors = Safetensors::parse(weights)?;
        let rows = tensors.tensor("rows", ("I8", 1), &[vocabulary.len(), DIMENSION])?;
        let scales = tensors.tensor("scales", ("F32", 4), &[vocabulary.len()])?;
        let (scales, _) = scales.as_chunks();
        let scales: Vec<f32> = scales
            .iter()
            .map(|&bytes| f32::from_le_bytes(bytes))
            .collect();
        if !scales.iter().all(|s| s.is_finite()) {
            return Err("a scale is not finite".to_owned());
        }
        let model = ModelId {
            name: NAME.to_owned(),
            dimension: DIMENSION,
        };
        Ok(Self {
            model,
            vocabulary,
            rows,
            scales,
        })
    }

    fn similar_words(&self, word: &str) -> Vec<(&'static str, f32)> {
        let Some(id) = self.vocabulary.whole_word(word) else {
            return Vec::new();
        };
        let (pairs, _) = SIMILAR_WORDS.as_chunks::<PAIR>();
        let first = |[low, high, ..]: &[u8; PAIR]| u32::from(u16::from_le_bytes([*low, *high]));
        let start = pairs.partition_point(|pair| first(pair) < id);
        let pairs = pairs.get(start..).unwrap_or_default().iter();
        let similar = pairs.take_while(|pair| first(pair) == id);
        let similar = similar.filter_map(|[_, _, low, high, cosine]| {
            let word = self.vocabulary.line(u16::from_le_bytes([*low, *high]))?;
            Some((word, f32::from(*cosine) / 255.0))
        });
        similar.collect()
    }

    /// Sum of the pieces' rows; its direction is that of their mean.
    fn sum(&self, pieces: &[u32]) -> Vec<f32> {
        let mut sum = vec![0.0; DIMENSION];
        for &piece in pieces {
            let piece = piece as usize;
            let row = self.rows.get(piece * DIMENSION..(piece + 1) * DIMENSION);
            let (Some(row), Some(&scale)) = (row, self.scales.get(piece)) else {
                continue;
            };
            for (s, &x) in sum.iter_mut().zip(row) {
                *s += f32::from(x.cast_signed()) * scale;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Reference {
        text: String,
        /// The first forty.
        tokens: Vec<u32>,
        token_count: usize,
        vector: Vec<f32>,
    }

    fn references() -> Vec<Reference> {
        include_str!("../../tests/data/reference.jsonl")
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect()
    }

    #[test]
    fn matches_the_reference() {
        let model = Builtin::new().unwrap();
        let references = references();
        assert_eq!(references.len(), 20);
        for r in references {
            let pieces = model.table.vocabulary.pieces(&r.text, MAX_PIECES);
            assert_eq!(pieces.len(), r.token_count, "{:?}", r.text);
            assert_eq!(&pieces[..r.tokens.len()], r.tokens, "{:?}", r.text);
            let Some(vector) = model.embed_one(&r.text) else {
                assert_eq!(r.token_count, 0);
                continue;
            };
            let worst = vector
                .iter()
                .zip(&r.vector)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f32::max);
            assert!(
                worst < 1e-3 && vector.len() == r.vector.len(),
                "{:?} is off by {worst}",
                r.text
            );
        }
    }

    /// Words of three letters or more, with their vectors.
    fn words(model: &Builtin) -> Vec<(u16, Vec<f32>)> {
        let lines = (0..).zip(VOCABULARY.lines());
        let words = lines.filter(|(_, line)| {
            line.len() > 2 && line.bytes().all(|letter| letter.is_ascii_lowercase())
        });
        words
            .filter_map(|(line, word)| Some((line, model.embed_one(word)?)))
            .collect()
    }

    /// The eight nearest words with a cosine of a half at the least.
    fn nearest(words: &[(u16, Vec<f32>)], (line, vector): &(u16, Vec<f32>)) -> Vec<u8> {
        let near = words.iter().filter(|(other, _)| other != line);
        let near = near.map(|(other, theirs)| (mnemon_core::vector::dot(vector, theirs), *other));
        let mut near: Vec<(f32, u16)> = near.filter(|(cosine, _)| *cosine >= 0.5).collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        near.truncate(8);
        let pairs = near.into_iter().flat_map(|(cosine, other)| {
            let ([a, b], [c, d]) = (line.to_le_bytes(), other.to_le_bytes());
            [a, b, c, d, (cosine * 255.0).round() as u8]
        });
        pairs.collect()
    }

    /// After a change of the table: `UPDATE_WORDS=1 cargo test --release -p mnemon-adapters --lib
    /// similar_words`.
    #[test]
    fn similar_words_are_the_nearest_of_the_table() {
        let model = Builtin::new().unwrap();
        let words = words(&model);
        if std::env::var_os("UPDATE_WORDS").is_some() {
            let pairs: Vec<u8> = words
                .iter()
                .flat_map(|word| nearest(&words, word))
                .collect();
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/similar-words.bin");
            return std::fs::write(path, pairs).unwrap();
        }
        let (pairs, rest) = SIMILAR_WORDS.as_chunks::<PAIR>();
        assert!(rest.is_empty());
        for word in words.iter().step_by(words.len() / 8) {
            let [low, high] = word.0.to_le_bytes();
            let kept = pairs.iter().filter(|pair| pair[..2] == [low, high]);
            let kept: Vec<u8> = kept.flatten().copied().collect();
            assert_eq!(kept, nearest(&words, word), "{}", word.0);
        }
        let similar = model.similar_words("dog");
        assert!(
            similar.iter().any(|(word, _)| *word == "puppy"),
            "{similar:?}"
        );
        assert_eq!(model.similar_words("qwertz"), []);
        assert_eq!(model.similar_words("##ing"), []);
    }

    #[test]
    fn refuses_weights_that_do_not_fit() {
        assert!(Table::parse(&WEIGHTS[..WEIGHTS.len() - 1], VOCABULARY).is_err());
        assert!(Table::parse(WEIGHTS, "one\ntwo").is_err());
    }
}
