//! Puts the weights of a model where an embedder finds them: `mnemon model pull`. Nothing else
//! downloads weights.
//!
//! Each file is checked against the size and SHA-256 known for it, written under another name,
//! synced, and only then given its own: a pull that is cut off leaves nothing that looks whole.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

use super::EmbedError;

/// A file of a model, and what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelFile {
    /// In the model's folder.
    pub name: &'static str,
    /// Under the hub's address for the model.
    pub hub_path: &'static str,
    pub bytes: u64,
    /// Lower-case hexadecimal.
    pub sha256: &'static str,
}

/// Where a hub has all-MiniLM-L6-v2.
pub const MINILM_URL: &str = "https://huggingface.co/Xenova/all-MiniLM-L6-v2/resolve/main";

/// The files of all-MiniLM-L6-v2 as int8. Its vocabulary is the built-in one.
pub const MINILM_FILES: &[ModelFile] = &[MINILM_WEIGHTS];

pub(super) const MINILM_WEIGHTS: ModelFile = ModelFile {
    name: "model_quantized.onnx",
    hub_path: "onnx/model_quantized.onnx",
    bytes: 22_972_370,
    sha256: "afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1",
};

/// Where the files come from.
#[derive(Clone, Debug)]
pub enum PullSource {
    /// The model's address on a hub, such as [`MINILM_URL`].
    Url(String),
    /// A folder that has the files by name, such as an unpacked wheel.
    Folder(PathBuf),
}

/// The hub's time for one file.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Brings `files` into the folder `dest`, which is made where it is missing. Files that are
/// there and right are left alone, so a pull that was cut off can be repeated.
pub async fn pull(dest: &Path, files: &[ModelFile], from: &PullSource) -> Result<(), EmbedError> {
    tokio::fs::create_dir_all(dest)
        .await
        .map_err(|e| weights(dest, "the folder cannot be created", Some(Box::new(e))))?;
    for file in files {
        let target = dest.join(file.name);
        if check(&target, file).is_ok() {
            continue;
        }
        let bytes = match from {
            PullSource::Url(url) => {
                download(
                    &format!("{}/{}", url.trim_end_matches('/'), file.hub_path),
                    file,
                )
                .await?
            }
            PullSource::Folder(folder) => read(&folder.join(file.name), file)?,
        };
        verify(&target, &bytes, file)?;
        put(&target, &bytes)
            .await
            .map_err(|e| weights(&target, "it cannot be written", Some(Box::new(e))))?;
    }
    Ok(())
}

/// Whether a file is whole: the size first, which is cheap, then the hash.
pub(super) fn check(path: &Path, file: &ModelFile) -> Result<Vec<u8>, EmbedError> {
    let bytes = read(path, file)?;
    verify(path, &bytes, file)?;
    Ok(bytes)
}

/// Reads a file that has the size it must have.
fn read(path: &Path, file: &ModelFile) -> Result<Vec<u8>, EmbedError> {
    check_size(path, file)?;
    std::fs::read(path).map_err(|e| unreadable(path, e))
}

pub(super) fn check_size(path: &Path, file: &ModelFile) -> Result<(), EmbedError> {
    let meta = std::fs::metadata(path).map_err(|e| unreadable(path, e))?;
    match meta.len() == file.bytes {
        true => Ok(()),
        false => Err(wrong_size(path, meta.len(), file)),
    }
}

fn unreadable(path: &Path, error: std::io::Error) -> EmbedError {
    weights(path, "it cannot be read", Some(Box::new(error)))
}

fn verify(path: &Path, bytes: &[u8], file: &ModelFile) -> Result<(), EmbedError> {
    if bytes.len() as u64 != file.bytes {
        return Err(wrong_size(path, bytes.len() as u64, file));
    }
    let hash = hex(&Sha256::digest(bytes));
    if hash != file.sha256 {
        return Err(weights(
            path,
            &format!("its SHA-256 is {hash}, not {}", file.sha256),
            None,
        ));
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

async fn download(url: &str, file: &ModelFile) -> Result<Vec<u8>, EmbedError> {
    let unavailable = |e: reqwest::Error| EmbedError::Unavailable {
        what: url.to_owned(),
        source: Some(Box::new(e.without_url())),
    };
    // Without a provider of its own rustls would panic; an earlier one stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .build()
        .map_err(unavailable)?;
    let mut response = client.get(url).send().await.map_err(unavailable)?;
    let status = response.status();
    if !status.is_success() {
        return Err(EmbedError::Refused {
            status: status.as_u16(),
            message: url.to_owned(),
        });
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unavailable)? {
        bytes.extend_from_slice(&chunk);
        // What is too long is wrong already.
        if bytes.len() as u64 > file.bytes {
            break;
        }
    }
    Ok(bytes)
}

/// Writes aside, syncs, renames.
async fn put(target: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let aside = target.with_extension(format!("{}.part", std::process::id()));
    let written = async {
        let mut out = tokio::fs::File::create(&aside).await?;
        out.write_all(bytes).await?;
        out.sync_all().await?;
        tokio::fs::rename(&aside, target).await
    };
    let result = written.await;
    if result.is_err() {
        let _ = tokio::fs::remove_file(&aside).await;
    }
    result
}

fn wrong_size(path: &Path, got: u64, file: &ModelFile) -> EmbedError {
    weights(
        path,
        &format!(
            "it has {got} bytes, not {}: pull the model again",
            file.bytes
        ),
        None,
    )
}

fn weights(
    path: &Path,
    what: &str,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
) -> EmbedError {
    EmbedError::Weights {
        path: path.to_owned(),
        what: what.to_owned(),
        source,
    }
}
