//! all-MiniLM-L6-v2, from weights on disk.

use mnemon_adapters::embed::MiniLm;
use mnemon_core::embed::Embedder;

#[derive(serde::Deserialize)]
struct Reference {
    text: String,
    vector: Vec<f32>,
}

/// Made by onnxruntime and the `tokenizers` library from the same weights.
fn references() -> Vec<Reference> {
    let lines = include_str!("../../data/minilm-reference.jsonl").lines();
    lines.map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn folder() -> std::path::PathBuf {
    std::env::var_os("MNEMON_MINILM_DIR")
        .expect("MNEMON_MINILM_DIR names the folder of the weights")
        .into()
}

#[test]
fn weights_that_are_missing_or_cut_short_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = |expected: &str| {
        let e = MiniLm::open(dir.path()).err().unwrap();
        assert!(
            e.to_string().contains(expected) && e.to_string().contains("model_quantized.onnx"),
            "{e}"
        );
    };
    error("cannot be read");
    let path = dir.path().join("model_quantized.onnx");
    std::fs::write(&path, vec![0; 1000]).unwrap();
    error("1000 bytes, not 22972370");
    std::fs::write(&path, vec![0; 22_972_370]).unwrap();
    error("SHA-256");
}

#[tokio::test]
#[ignore = "needs the weights: MNEMON_MINILM_DIR=folder cargo test --features minilm -- --ignored"]
async fn matches_the_reference() {
    let model = MiniLm::open(&folder()).unwrap();
    let references = references();
    let mut texts: Vec<&str> = references.iter().map(|r| r.text.as_str()).collect();
    texts.extend(["", " \n"]);
    let vectors = model.embed(&texts).await.unwrap();
    assert_eq!(&vectors[references.len()..], [None, None]);
    assert_eq!(
        model.embed(&texts[1..2]).await.unwrap()[0],
        vectors[1],
        "neighbours do not matter"
    );
    for (r, vector) in references.iter().zip(&vectors) {
        let vector = vector.as_ref().unwrap();
        let cosine: f32 = vector.iter().zip(&r.vector).map(|(a, b)| a * b).sum();
        // Two runtimes round int8 activations a little differently.
        assert!(cosine > 0.995, "{:?}: {cosine}", r.text);
    }
}
