//! Files that `scripts/fetch-models` fetched.

use std::path::PathBuf;

use mnemon_adapters::embed::OnnxRuntime;

/// The folder that this variable names.
pub(super) fn folder(variable: &str) -> PathBuf {
    let folder = std::env::var_os(variable);
    let how = "first, for the weights: eval \"$(./scripts/fetch-models)\"";
    folder
        .unwrap_or_else(|| panic!("{variable} is not set; {how}"))
        .into()
}

/// rten, and the ONNX runtime library on the platform for which it was fetched.
pub(super) fn runtimes() -> Vec<Option<OnnxRuntime>> {
    let path = std::env::var_os("MNEMON_TEST_ONNXRUNTIME");
    assert!(
        path.is_some() || !cfg!(all(target_os = "linux", target_arch = "x86_64")),
        "MNEMON_TEST_ONNXRUNTIME is not set"
    );
    let library = path.map(|path| OnnxRuntime::load(path.as_ref()).unwrap());
    [Some(None), library.map(Some)]
        .into_iter()
        .flatten()
        .collect()
}
