//! Text from PDF.

use super::FileProblem;

#[cfg(not(feature = "pdf"))]
pub(super) fn text(_raw: Vec<u8>) -> Result<String, FileProblem> {
    Err(FileProblem::NoPdf)
}

/// The reader panics on files that it does not understand, and may take very long: it works on a
/// thread of its own, which we leave behind if it must be.
#[cfg(feature = "pdf")]
pub(super) fn text(raw: Vec<u8>) -> Result<String, FileProblem> {
    use std::sync::mpsc;
    use std::time::Duration;

    /// How long a file may take.
    const PATIENCE: Duration = Duration::from_secs(60);
    /// Deeply nested objects need it.
    const STACK_BYTES: usize = 64 * 1024 * 1024;

    if !raw.starts_with(b"%PDF-") {
        return Err(FileProblem::Pdf(
            "it does not begin with a PDF header".to_owned(),
        ));
    }
    let (send, receive) = mpsc::channel();
    let work = move || {
        let text = pdf_extract::extract_text_from_mem(&raw);
        // The receiver is gone if it timed out.
        let _ = send.send(text.map_err(|error| error.to_string()));
    };
    std::thread::Builder::new()
        .name(super::PDF_THREAD.to_owned())
        .stack_size(STACK_BYTES)
        .spawn(work)
        .map_err(FileProblem::Unreadable)?;
    match receive.recv_timeout(PATIENCE) {
        Ok(Ok(text)) => Ok(text.replace('\0', "")),
        Ok(Err(what)) => Err(FileProblem::Pdf(what)),
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(FileProblem::Pdf(
            "it is damaged or of an unsupported kind".to_owned(),
        )),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            let seconds = PATIENCE.as_secs();
            Err(FileProblem::Pdf(format!(
                "it takes longer than {seconds} s"
            )))
        }
    }
}
