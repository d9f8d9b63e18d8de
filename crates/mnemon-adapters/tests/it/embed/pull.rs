//! Weights are copied or downloaded whole, or not at all.

use mnemon_adapters::embed::{ModelFile, PullSource, pull};
use mnemon_core::embed::EmbedError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// SHA-256 of "weights".
const FILE: ModelFile = ModelFile {
    name: "w.bin",
    hub_path: "onnx/w.bin",
    bytes: 7,
    sha256: "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c",
};

#[tokio::test]
async fn copies_from_a_folder_once() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dest = to.path().join("a/b");
    let source = PullSource::Folder(from.path().to_owned());
    let error = pull(&dest, &[FILE], &source).await.unwrap_err();
    assert!(
        matches!(
            error,
            EmbedError::Weights {
                source: Some(_),
                ..
            }
        ),
        "{error:?}"
    );
    std::fs::write(from.path().join("w.bin"), "weights").unwrap();
    pull(&dest, &[FILE], &source).await.unwrap();
    assert_eq!(std::fs::read(dest.join("w.bin")).unwrap(), b"weights");
    // Whole files are not asked for again.
    std::fs::remove_file(from.path().join("w.bin")).unwrap();
    pull(&dest, &[FILE], &source).await.unwrap();
    assert_eq!(
        std::fs::read_dir(&dest).unwrap().count(),
        1,
        "nothing is left aside"
    );
}

#[tokio::test]
async fn refuses_what_is_cut_short_or_changed() {
    for (bytes, expected) in [("weight", "6 bytes, not 7"), ("weighty", "SHA-256")] {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(from.path().join("w.bin"), bytes).unwrap();
        let error = pull(
            to.path(),
            &[FILE],
            &PullSource::Folder(from.path().to_owned()),
        )
        .await
        .unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(std::fs::read_dir(to.path()).unwrap().count(), 0);
    }
}

/// Answers one request with these bytes.
async fn hub(status: &'static str, body: &'static str) -> PullSource {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/main/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let n = stream.read(&mut request).await.unwrap();
        assert!(request[..n].starts_with(b"GET /main/onnx/w.bin "));
        let answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    PullSource::Url(url)
}

#[tokio::test]
async fn downloads_and_checks() {
    let to = tempfile::tempdir().unwrap();
    let missing = pull(to.path(), &[FILE], &hub("404 No", "").await)
        .await
        .unwrap_err();
    assert!(
        matches!(missing, EmbedError::Refused { status: 404, .. }),
        "{missing:?}"
    );
    let short = pull(to.path(), &[FILE], &hub("200 OK", "weig").await)
        .await
        .unwrap_err();
    assert!(short.to_string().contains("4 bytes"), "{short}");
    assert!(!to.path().join("w.bin").exists());
    pull(to.path(), &[FILE], &hub("200 OK", "weights").await)
        .await
        .unwrap();
    assert_eq!(std::fs::read(to.path().join("w.bin")).unwrap(), b"weights");
}
