//! Options whose values are the words of an enum: the parser lists them and suggests the nearest.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use mnemon_core::rank::Recipe;

pub(super) fn recipe() -> impl TypedValueParser<Value = Recipe> {
    let words = Recipe::ALL.iter().map(|recipe| recipe.as_str());
    PossibleValuesParser::new(words).try_map(|word| word.parse::<Recipe>())
}
