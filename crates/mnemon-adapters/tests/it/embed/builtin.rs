//! The static model in the binary.

use mnemon_adapters::embed::Builtin;
use mnemon_core::embed::Embedder;

#[tokio::test]
async fn answers_in_order_with_unit_vectors() {
    let model = Builtin::new().unwrap();
    let texts: Vec<String> = (0..100)
        .map(|i| format!("note number {i}"))
        .chain([String::new()])
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = model.embed(&texts).await.unwrap();
    assert_eq!(vectors.len(), texts.len());
    assert_eq!(vectors[100], None);
    for (text, vector) in texts.iter().zip(&vectors).take(100) {
        assert_eq!(vector, &model.embed_one(text));
        let square: f32 = vector.as_ref().unwrap().iter().map(|x| x * x).sum();
        assert!((square - 1.0).abs() < 1e-5);
    }
}

#[test]
fn similar_texts_are_near() {
    let model = Builtin::new().unwrap();
    let v = |t: &str| model.embed_one(t).unwrap();
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    let dog = v("my dog loves long walks");
    assert!(dot(&dog, &v("a puppy enjoys walking")) > dot(&dog, &v("quarterly tax report")) + 0.1);
}
