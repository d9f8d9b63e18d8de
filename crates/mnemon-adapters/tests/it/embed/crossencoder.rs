//! The cross-encoder, from weights on disk.

use mnemon_adapters::embed::CrossEncoder;
use mnemon_core::rerank::Reranker;

use super::weights::{folder, runtimes};

#[test]
fn crossencoder_weights_that_are_missing_or_broken_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = |expected: &str| {
        let error = CrossEncoder::open(dir.path(), None)
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains(expected) && error.contains("model.onnx"),
            "{error}"
        );
    };
    error("cannot be read");
    std::fs::write(dir.path().join("model.onnx"), [7; 1000]).unwrap();
    error("cannot be loaded");
}

#[tokio::test]
async fn crossencoder_puts_the_answer_first_in_every_runtime() {
    let texts = [
        "The weather was fine in Lisbon.",
        "Paris is the capital and largest city of France.",
        "France has a long coast.",
    ];
    let question = "what is the capital of France?";
    for library in runtimes() {
        let folder = folder("MNEMON_CROSSENCODER_DIR");
        let model = CrossEncoder::open(&folder, library.as_ref()).unwrap();
        let scores = model.scores(question, &texts).await.unwrap();
        assert!(scores[1] > scores[0] && scores[1] > scores[2], "{scores:?}");
        let alone = model.scores(question, &texts[1..2]).await.unwrap();
        assert_eq!(alone[0], scores[1], "neighbours do not matter");
    }
}
