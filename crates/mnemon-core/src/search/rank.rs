//! From candidates to an order: pure arithmetic.
//!
//! Each arm's scores are divided by the arm's best, so that words and meaning can be added. What
//! the question names (a speaker, a date) lifts what fits it; a question in the records is held
//! back, because the answer is wanted. Recency and importance only decide between near equals:
//! together they lift by at most a fifth, so a clear winner stays one.
//!
//! Where the constants come from is told in `docs/ranking.md`.

mod calibration;
mod context;
mod formula;
mod question;

use serde::{Deserialize, Serialize};

use crate::error::words;
use crate::model::{Id, Time};
use crate::ports::{Features, Match, ScoreScale};

pub use calibration::{Evidence, MIN_SCORE, Scale, known};
pub(crate) use context::{Bm25, LENT_MEANING, lends, lent_length, lent_words, mean_nearness};
pub use context::{CONTEXT_REACH, DATE_WEIGHT, NAME_WEIGHT, SIMILAR_WEIGHT, score_in_context};
pub use formula::{formula, formula_tokens};
pub use question::{AnswerType, Question, Steps};

words! {
    /// A way to search, by name.
    #[derive(Default)]
    Recipe, "recipe" {
        /// Words and meaning together.
        #[default]
        Hybrid = "hybrid",
        /// Words only.
        Words = "words",
        /// Meaning only.
        Meaning = "meaning",
        /// The newest that match, or the newest of all without a query.
        Recent = "recent",
        /// The weighted formula of short and long-term notes: substrings in summary, content and
        /// tags.
        Formula = "formula",
    }
}

impl Recipe {
    /// What words and meaning weigh, if the embedder understands so much of the query.
    fn shares(self, fluency: f32) -> (f32, f32) {
        match self {
            Self::Hybrid | Self::Recent => (0.5, 0.5 * fluency),
            Self::Words => (1.0, 0.0),
            Self::Meaning => (0.0, 1.0),
            Self::Formula => (0.0, 0.0),
        }
    }
}

/// Who is named in the question is lifted by this much when they speak: also the user whom `I`
/// means.
const NAMED: f32 = 0.5;
/// What tells of the days that are asked for is given at least so much before the factors,
const TOLD: f32 = 0.2;
/// and this much if the days are all that the question names, a half of it beside one other word,
/// a third beside two.
const TOLD_ALONE: f32 = 0.8;
/// What has the kind of answer that is asked for (a time, a name) is lifted by this much,
const ANSWERING: f32 = 0.2;
/// less if it has more words than this: long texts have everything.
const ANSWERING_WORDS: f32 = 60.0;
/// A date in the question lifts what was said then by up to this much.
const DATED: f32 = 0.75;
/// A record that only asks is held back by this much,
const ASKING: f32 = 0.3;
/// if it is short; longer ones say something besides.
const ASKING_WORDS: f32 = 10.0;
/// What is new is lifted by at most this much,
const NEW: f32 = 0.05;
/// what is important by at most this much.
const IMPORTANT: f32 = 0.1;
/// After so many days a record is half as new.
const HALF_LIFE_DAYS: f32 = 30.0;
/// Hits whose words are worth the same are equal if their meaning differs by no more than this.
const SAME_MEANING: f32 = 0.05;
/// What shares no word with the question and is farther than this from it is not an answer.
const FLOOR: f32 = 0.15;

/// A record that an index found, with what ranking needs to know of it. The scores contain what
/// its neighbours lend it.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub id: Id,
    /// How well its words and its neighbours' words match.
    pub words: f32,
    /// How near it and its neighbours are in meaning, from 0 to 1.
    pub meaning: f32,
    pub features: Features,
}

/// The rank at which a score by rank is about half of the best one.
const RANK_DAMPING: f32 = 60.0;

/// Replaces the scores of an arm whose scale is unknown by scores of their ranks, so that both arms
/// can be added (reciprocal rank fusion).
pub fn fuse_by_rank(
    matches: &mut [Match],
    scale: ScoreScale,
    arm: fn(&mut Match) -> &mut Option<f32>,
) {
    if scale != ScoreScale::Unknown {
        return;
    }
    let mut scores: Vec<&mut f32> = matches.iter_mut().filter_map(|m| arm(m).as_mut()).collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    for (rank, score) in scores.into_iter().enumerate() {
        *score = (RANK_DAMPING + 1.0) / (RANK_DAMPING + 1.0 + rank as f32);
    }
}

/// A candidate with its score, and what made it up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    pub id: Id,
    #[serde(skip)]
    pub seq: u64,
    #[serde(skip)]
    pub created: Time,
    /// The estimated probability that the record answers the query.
    pub score: f32,
    pub parts: Parts,
}

/// What each step contributed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Parts {
    /// The words arm: its share of the best, times its weight.
    pub words: f32,
    /// The meaning arm, likewise.
    pub meaning: f32,
    /// What it is given for the days that it tells of.
    pub told: f32,
    /// Factors: 1 changes nothing.
    pub speaker: f32,
    pub date: f32,
    pub answer: f32,
    pub asking: f32,
    pub recency: f32,
    pub importance: f32,
    pub evidence: Evidence,
    /// What a model that read question and text together makes of it, from 0 for the worst of
    /// those it read to 1 for the best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reread: Option<f32>,
}

/// What the model's word weighs that read question and text together.
const REREAD: f32 = 0.5;

/// The score of a hit after a model has read it with the question: `score` and `best` are its own
/// and the best hit's, `reread` as in [`Parts`].
pub fn after_rerank(score: f32, best: f32, reread: f32) -> f32 {
    if best <= 0.0 {
        return reread;
    }
    (1.0 - REREAD) * score / best + REREAD * reread
}

/// Orders the candidates, best first, and scores them; equals newest first. Scores never rise from
/// hit to hit.
pub fn rank(
    candidates: &[Candidate],
    recipe: Recipe,
    question: &Question,
    scale: &Scale,
    now: Time,
) -> Vec<Ranked> {
    let (words, meaning) = recipe.shares(scale.fluency);
    let told_weight = (TOLD_ALONE / (1.0 + question.content as f32)).max(TOLD);
    let best = |score: fn(&Candidate) -> f32| {
        let best = candidates.iter().map(score).fold(0.0, f32::max);
        if best > 0.0 { best } else { 1.0 }
    };
    let (best_words, best_meaning) = (best(|c| c.words), best(|c| c.meaning));
    let found = candidates.iter().filter(|c| {
        let by_words = words > 0.0 && c.words > 0.0;
        let by_meaning = meaning > 0.0 && c.features.cosine.max(c.meaning) >= FLOOR;
        by_words || by_meaning || question.told_match(&c.features) > 0.0
    });
    let mut ranked: Vec<Ranked> = found
        .map(|candidate| {
            let features = &candidate.features;
            let date = question.date_match(features.created);
            let told = question.told_match(features);
            Ranked {
                id: candidate.id.clone(),
                seq: features.seq,
                created: features.created,
                score: 0.0,
                parts: Parts {
                    words: words * candidate.words / best_words,
                    meaning: meaning * candidate.meaning / best_meaning,
                    told: told_weight * told,
                    speaker: 1.0 + NAMED * question.speaks(features),
                    date: 1.0 + DATED * date,
                    answer: 1.0 + ANSWERING * question.answers(features) * shortness(features),
                    asking: asking(features),
                    recency: 1.0 + NEW * newness(features.created, now),
                    importance: 1.0 + IMPORTANT * features.importance.clamp(0.0, 1.0),
                    evidence: scale.evidence(candidate, recipe, question, date.max(told)),
                    reread: None,
                },
            }
        })
        .collect();
    ranked.sort_by(|a, b| {
        let fused = b.parts.score().total_cmp(&a.parts.score());
        fused.then(newest_first(a, b))
    });
    for alike in ranked.chunk_by_mut(|a, b| a.parts.is_like(&b.parts)) {
        alike.sort_by(newest_first);
    }
    let mut most = 1.0_f32;
    for (place, ranked) in ranked.iter_mut().enumerate() {
        most = most.min(ranked.parts.evidence.probability(place));
        ranked.score = most;
    }
    ranked
}

/// The order of the recipe `recent`, and of equals.
pub fn newest_first(one: &Ranked, other: &Ranked) -> std::cmp::Ordering {
    (other.created, other.seq).cmp(&(one.created, one.seq))
}

impl Parts {
    /// Whether only a nuance of meaning and the factors tell two hits apart: the same sentence
    /// about different days.
    fn is_like(&self, other: &Self) -> bool {
        let covers = |parts: &Self| parts.evidence.coverage.unwrap_or(0.0);
        self.words > 0.0
            && (self.words - other.words).abs() < 1e-6
            && (covers(self) - covers(other)).abs() < 1e-4
            && (self.meaning - other.meaning).abs() <= SAME_MEANING
    }

    /// What the factors are applied to.
    pub fn sum(&self) -> f32 {
        self.words + self.meaning + self.told
    }

    /// What hits are ordered by, before a model has read them again.
    pub fn score(&self) -> f32 {
        self.sum()
            * self.speaker
            * self.date
            * self.answer
            * self.asking
            * self.recency
            * self.importance
    }
}

fn shortness(features: &Features) -> f32 {
    (ANSWERING_WORDS / features.length.max(1.0)).min(1.0)
}

fn asking(features: &Features) -> f32 {
    let short = (ASKING_WORDS / features.length.max(1.0)).min(1.0);
    1.0 - ASKING * features.asking * short
}

/// 1 now, a half after the half-life, towards 0; what lies ahead is as new as can be.
fn newness(created: Time, now: Time) -> f32 {
    let days = (now.millis() - created.millis()) as f32 / 86_400_000.0;
    (-days.max(0.0) / HALF_LIFE_DAYS).exp2()
}

#[cfg(test)]
mod tests;
