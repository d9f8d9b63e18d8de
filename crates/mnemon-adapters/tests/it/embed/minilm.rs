//! all-MiniLM-L6-v2, from weights on disk.

use mnemon_adapters::embed::{MiniLm, OnnxRuntime};
use mnemon_core::embed::Embedder;

use super::weights::{folder, runtimes};

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

#[tokio::test]
async fn weights_that_are_missing_or_cut_short_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = async |expected: &str| {
        let e = match MiniLm::open(dir.path(), None) {
            Ok(model) => model.ready().await.unwrap_err(),
            Err(e) => e,
        };
        assert!(
            e.to_string().contains(expected) && e.to_string().contains("model_quantized.onnx"),
            "{e}"
        );
    };
    error("cannot be read").await;
    let path = dir.path().join("model_quantized.onnx");
    std::fs::write(&path, vec![0; 1000]).unwrap();
    error("1000 bytes, not 22972370").await;
    std::fs::write(&path, vec![0; 22_972_370]).unwrap();
    error("SHA-256").await;
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

#[tokio::test]
async fn minilm_matches_the_reference_in_every_runtime() {
    let references = references();
    let mut texts: Vec<&str> = references.iter().map(|r| r.text.as_str()).collect();
    texts.extend(["", " \n"]);
    let mut by_runtime = Vec::new();
    for library in runtimes() {
        let model = MiniLm::open(&folder("MNEMON_MINILM_DIR"), library.as_ref()).unwrap();
        let vectors = model.embed(&texts).await.unwrap();
        assert_eq!(&vectors[references.len()..], [None, None]);
        assert_eq!(
            model.embed(&texts[1..2]).await.unwrap()[0],
            vectors[1],
            "neighbours do not matter"
        );
        let vectors: Vec<Vec<f32>> = vectors.into_iter().flatten().collect();
        for (r, vector) in references.iter().zip(&vectors) {
            // Two runtimes round int8 activations a little differently.
            let cosine = cosine(vector, &r.vector);
            assert!(cosine > 0.999, "{:?}: {cosine}", r.text);
        }
        by_runtime.push(vectors);
    }
    // A store may hold vectors of both.
    let [rten, others @ ..] = by_runtime.as_slice() else {
        panic!("no runtime");
    };
    for (one, other) in others.iter().flat_map(|others| rten.iter().zip(others)) {
        let cosine = cosine(one, other);
        assert!(cosine > 0.999, "{cosine}");
    }
}

#[test]
fn libraries_that_cannot_be_loaded_for_minilm_are_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |path: &std::path::Path| OnnxRuntime::load(path).err().unwrap();
    assert!(refused("libonnxruntime.so".as_ref()).contains("not absolute"));
    assert!(refused(dir.path()).contains("no such file"));
    let path = dir.path().join("libonnxruntime.so");
    std::fs::write(&path, "no library").unwrap();
    assert!(refused(&path).contains("cannot be read"));
    if let Some(library) = std::env::var_os("MNEMON_TEST_ONNXRUNTIME") {
        let bytes = std::fs::read(library).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(refused(&path).contains("not complete"));
    }
}
