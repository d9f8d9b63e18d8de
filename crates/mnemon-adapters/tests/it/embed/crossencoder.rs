//! The cross-encoder, from weights on disk.

use std::path::Path;

use mnemon_adapters::embed::CrossEncoder;
use mnemon_core::rerank::Reranker;

#[test]
fn crossencoder_weights_that_are_missing_or_broken_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = |expected: &str| {
        let error = CrossEncoder::open(folder.path()).err().unwrap().to_string();
        assert!(
            error.contains(expected) && error.contains("model.onnx"),
            "{error}"
        );
    };
    error("cannot be read");
    std::fs::write(folder.path().join("model.onnx"), [7; 1000]).unwrap();
    error("cannot be loaded");
}

#[tokio::test]
#[ignore = "needs weights: MNEMON_CROSSENCODER_DIR=folder cargo test --features crossencoder -- --ignored"]
async fn crossencoder_puts_the_answer_first() {
    let folder = std::env::var_os("MNEMON_CROSSENCODER_DIR").expect("names the folder");
    let model = CrossEncoder::open(Path::new(&folder)).unwrap();
    let texts = [
        "The weather was fine in Lisbon.",
        "Paris is the capital and largest city of France.",
        "France has a long coast.",
    ];
    let scores = model
        .scores("what is the capital of France?", &texts)
        .await
        .unwrap();
    assert!(scores[1] > scores[0] && scores[1] > scores[2], "{scores:?}");
    let alone = model
        .scores("what is the capital of France?", &texts[1..2])
        .await
        .unwrap();
    assert_eq!(alone[0], scores[1], "neighbours do not matter");
}
