//! Files and folders as documents.

use std::fs;
use std::path::{Path, PathBuf};

use mnemon_adapters::documents::{FileProblem, Found, TEXT_FILE_BYTES, find, is_gone};
use mnemon_core::ErrorKind;
use mnemon_core::chunk::Syntax;
use tempfile::TempDir;

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder
}

fn below(folder: &Path) -> Found {
    find(&[folder.to_owned()], &[]).unwrap()
}

fn names(found: &Found, root: &Path) -> Vec<String> {
    let files = found.files.iter();
    let names = files.map(|file| file.path.strip_prefix(root).unwrap().display().to_string());
    names.collect()
}

fn problem(found: &Found, name: &str) -> String {
    let not_taken = found.not_taken.iter().find(|it| it.path.ends_with(name));
    not_taken.map(|it| it.why.to_string()).unwrap_or_default()
}

#[test]
fn a_folder_gives_its_texts_and_says_what_it_leaves_out() {
    let folder = folder(&[
        ("README", b"read me"),
        ("a.md", b"# A"),
        ("src/main.rs", b"fn main() {}"),
        ("photo.png", b"\x89PNG"),
        (".hidden.md", b"hidden"),
        ("target/out.md", b"ignored"),
        (".gitignore", b"target/\n"),
        ("drafts/b.md", b"excluded"),
    ]);
    let found = find(&[folder.path().to_owned()], &["drafts/".to_owned()]).unwrap();
    assert_eq!(
        names(&found, folder.path()),
        ["README", "a.md", "src/main.rs"]
    );
    assert_eq!(found.not_taken.len(), 1);
    assert!(problem(&found, "photo.png").contains("file type is not known"));
    assert_eq!(found.files[1].syntax(), Syntax::Markdown);
    assert_eq!(found.files[2].syntax(), Syntax::Code);
    let root = fs::canonicalize(folder.path()).unwrap();
    assert_eq!(found.folders, [root.display().to_string()]);
    assert_eq!(found.files[1].uri, root.join("a.md").display().to_string());
    let text = found.files[1].read().unwrap().into_text().unwrap();
    assert_eq!(text, "# A");
}

#[test]
fn a_path_that_is_named_twice_is_found_once() {
    let folder = folder(&[("a.md", b"# A"), ("b.md", b"# B")]);
    let root = folder.path().to_owned();
    let paths = [root.clone(), root.join("a.md"), root.join(".")];
    let found = find(&paths, &[]).unwrap();
    assert_eq!(found.files.len(), 2);
    assert!(found.files[0].named && !found.files[1].named);
}

#[cfg(unix)]
#[test]
fn links_are_told_and_not_followed() {
    use std::os::unix::fs::symlink;
    let outside = folder(&[("secret.md", b"outside")]);
    let folder = folder(&[("a.md", b"# A"), ("sub/b.md", b"# B")]);
    let root = folder.path();
    symlink(root, root.join("sub/loop")).unwrap();
    symlink(outside.path(), root.join("outside")).unwrap();
    symlink(outside.path().join("secret.md"), root.join("secret.md")).unwrap();
    symlink("self", root.join("self")).unwrap();
    let found = below(root);
    assert_eq!(names(&found, root), ["a.md", "sub/b.md"]);
    for link in ["sub/loop", "outside", "secret.md", "self"] {
        assert!(problem(&found, link).contains("symbolic link"), "{link}");
    }
    let named = find(&[root.join("self"), root.join("secret.md")], &[]).unwrap();
    assert!(
        matches!(named.not_taken[0].why, FileProblem::Unreadable(_)),
        "a loop"
    );
    assert!(named.not_taken[0].named);
    assert!(
        named.files[0].uri.ends_with("secret.md"),
        "a named link is followed"
    );
}

#[test]
fn what_is_no_text_says_why() {
    let large = vec![b'x'; usize::try_from(TEXT_FILE_BYTES).unwrap() + 1];
    let folder = folder(&[
        ("nul.txt", b"a\0b"),
        ("latin.txt", b"caf\xe9"),
        ("empty.md", b""),
        ("blank.html", b"<p> </p><script>1</script>"),
        ("large.txt", &large),
        ("fake.pdf", b"no pdf"),
    ]);
    let why = |name: &str| {
        let found = find(&[folder.path().join(name)], &[]).unwrap();
        let text = found.files[0].read().and_then(|file| file.into_text());
        text.unwrap_err()
    };
    assert_eq!(
        why("nul.txt").to_string(),
        "it is a binary file: it holds NUL bytes"
    );
    assert_eq!(
        why("latin.txt").to_string(),
        "it is a binary file: it is not UTF-8"
    );
    assert!(matches!(why("empty.md"), FileProblem::Empty));
    assert!(matches!(why("blank.html"), FileProblem::Empty));
    let large = why("large.txt");
    assert_eq!(large.kind(), ErrorKind::TooLarge);
    assert!(
        large
            .to_string()
            .contains("10485761 bytes, at most 10485760"),
        "{large}"
    );
    let pdf = why("fake.pdf").to_string();
    assert!(
        pdf.contains("--features pdf") || pdf.contains("does not begin"),
        "{pdf}"
    );
}

#[test]
fn missing_and_odd_paths_are_told() {
    let folder = folder(&[("a.md", b"# A")]);
    let missing = folder.path().join("nowhere");
    let found = find(&[missing.clone(), folder.path().join("a.md/b")], &[]).unwrap();
    assert_eq!(found.not_taken.len(), 2);
    assert!(matches!(found.not_taken[0].why, FileProblem::Missing));
    assert!(is_gone(missing.to_str().unwrap()));
    assert!(!is_gone(folder.path().join("a.md").to_str().unwrap()));
    let wrong = find(&[folder.path().to_owned()], &["a[".to_owned()]).unwrap_err();
    assert!(
        wrong.to_string().starts_with("exclude: `a[` is not a glob"),
        "{wrong}"
    );
    assert!(find(&[PathBuf::from(".")], &[" ".to_owned()]).is_err());
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let folder = folder(&[]);
    let pipe = folder.path().join("pipe.txt");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let found = find(&[pipe, folder.path().to_owned()], &[]).unwrap();
    assert!(found.files.is_empty());
    assert!(matches!(found.not_taken[0].why, FileProblem::NotAFile));
}

/// Even one who may read everything cannot read this.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_be_read_says_so() {
    let found = find(&[PathBuf::from("/proc/self/mem")], &[]).unwrap();
    let why = found.files[0].read().unwrap_err();
    assert!(matches!(why, FileProblem::Unreadable(_)), "{why}");
    assert_eq!(why.kind(), ErrorKind::Unavailable);
}

/// The text of a page, or why it has none.
fn of_page(page: &str) -> Result<String, FileProblem> {
    let folder = folder(&[("page.html", page.as_bytes())]);
    below(folder.path()).files[0].read().unwrap().into_text()
}

#[test]
fn a_tangled_page_is_refused_at_once() {
    for elements in ["<div>".repeat(1_000_000), "<b>".repeat(2000)] {
        assert!(matches!(of_page(&elements), Err(FileProblem::Tangled)));
    }
    let nested = |depth: usize| "<div>".repeat(depth) + "tea" + &"</div>".repeat(depth);
    assert_eq!(of_page(&nested(400)).unwrap(), "tea");
    assert!(matches!(of_page(&nested(401)), Err(FileProblem::Tangled)));
}

#[test]
fn a_long_page_is_not_a_deep_one() {
    let page = "<p>one<br><ul><li>two</ul><img src=x><!-- <b><b> --><b>three</b>\
        <script>if (a<b && c<d) { x = '<div>' }</script>";
    assert!(of_page(&page.repeat(2000)).is_ok());
}

#[test]
fn headings_and_paragraphs_are_kept_and_scripts_are_not() {
    let page = "<!doctype html><html><head><title>Tea</title><style>p{}</style></head><body>\
        <script>alert(1)</script><h2>How to <em>brew</em></h2><p>Boil\n  water.<br>Wait.</p>\
        <div>Then <b>pour</b>.<noscript>no</noscript></div><img alt=\"a cup\"></body></html>";
    assert_eq!(
        of_page(page).unwrap(),
        "# Tea\n\n## How to brew\n\nBoil water.\nWait.\n\nThen pour.\n\na cup"
    );
}

#[test]
fn a_heading_of_the_first_rank_is_the_title() {
    let page = "<title>Site</title><h1>The <br> page</h1>text";
    assert_eq!(of_page(page).unwrap(), "# The page\n\ntext");
}

#[test]
fn lists_tables_and_code_become_markdown() {
    let list = "<ol><li><p>one</p></li><li>two<ul><li>inner</li></ul></li></ol>";
    assert_eq!(of_page(list).unwrap(), "1. one\n\n2. two\n\n  - inner");
    let table = "<table><tr><th>a</th><th>b</th></tr><tr><td><p>1</p></td><td>2</td></tr></table>x";
    assert_eq!(
        of_page(table).unwrap(),
        "| a | b |\n|---|---|\n| 1 | 2 |\n\nx"
    );
    let code = "<p>See</p><pre>  let a;\n\n  b<br>c</pre>end";
    assert_eq!(
        of_page(code).unwrap(),
        "See\n\n```\n  let a;\n\n  b\nc\n```\n\nend"
    );
}

#[test]
fn html_is_read_as_markdown() {
    let folder = folder(&[("page.html", b"<title>Tea</title><h2>Milk</h2><p>Never.</p>")]);
    let found = below(folder.path());
    assert!(found.files[0].is_converted());
    assert_eq!(found.files[0].syntax(), Syntax::Markdown);
    let text = found.files[0].read().unwrap().into_text().unwrap();
    assert_eq!(text, "# Tea\n\n## Milk\n\nNever.");
}

#[cfg(feature = "pdf")]
mod pdf {
    use super::*;

    /// The smallest file that shows a line of text.
    fn page(words: &str) -> Vec<u8> {
        let stream = format!("BT /F1 24 Tf 72 700 Td ({words}) Tj ET");
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R \
             /Resources << /Font << /F1 4 0 R >> >> >>"
                .to_owned(),
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
                .to_owned(),
            format!(
                "<< /Length {} >>\nstream\n{stream}\nendstream",
                stream.len()
            ),
        ];
        let mut file = b"%PDF-1.4\n".to_vec();
        let mut places = Vec::new();
        for (n, object) in objects.iter().enumerate() {
            places.push(file.len());
            file.extend(format!("{} 0 obj\n{object}\nendobj\n", n + 1).bytes());
        }
        let table = file.len();
        let rows: String = places
            .iter()
            .map(|at| format!("{at:010} 00000 n \n"))
            .collect();
        let tail = format!(
            "xref\n0 6\n0000000000 65535 f \n{rows}trailer\n<< /Size 6 /Root 1 0 R >>\n\
             startxref\n{table}\n%%EOF\n"
        );
        file.extend(tail.bytes());
        file
    }

    fn text(bytes: &[u8]) -> Result<String, FileProblem> {
        let folder = folder(&[("a.pdf", bytes)]);
        let found = below(folder.path());
        found.files[0].read().and_then(|file| file.into_text())
    }

    #[test]
    fn the_words_of_a_pdf_are_read() {
        let text = text(&page("Descale the kettle")).unwrap();
        assert!(text.contains("Descale the kettle"), "{text}");
    }

    #[test]
    fn a_damaged_pdf_is_reported_and_harms_nobody() {
        let whole = page("Descale the kettle");
        for cut in (10..whole.len()).step_by(37) {
            // Whatever comes out, it comes back.
            let _ = text(&whole[..cut]);
            let mut bent = whole.clone();
            bent[cut] ^= 0x15;
            let _ = text(&bent);
        }
        assert!(matches!(
            text(b"%PDF-1.4\nnothing"),
            Err(FileProblem::Pdf(_))
        ));
    }
}
