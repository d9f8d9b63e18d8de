//! Text cut into sentences, without code, data and tags.

/// Lines and sentences that are prose. Fenced code, JSON, tags of earlier replacements, bullets and
/// heading marks are left out.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        let line = without_marks(without_tag(line));
        if !in_code && !line.is_empty() && !is_fragment(line) {
            cut_line(line, &mut found);
        }
    }
    found.retain(|sentence| !sentence.is_empty() && !is_fragment(sentence));
    found
}

fn cut_line<'a>(line: &'a str, found: &mut Vec<&'a str>) {
    let mut start = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let next = chars.peek().map(|(_, next)| *next);
        let stops = match c {
            '。' | '！' | '？' => !matches!(next, Some('」' | '』' | '）')),
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
            _ => false,
        };
        if stops {
            found.extend(line.get(start..end).map(str::trim));
            start = end;
        }
    }
    found.extend(line.get(start..).map(str::trim));
}

fn without_tag(line: &str) -> &str {
    match line.find("<!-- CONTEXT_OFFLOAD") {
        Some(at) => line.get(..at).unwrap_or_default(),
        None => line,
    }
}

/// Without the bullet, the number or the heading mark that begins it.
fn without_marks(line: &str) -> &str {
    let mut line = line.trim();
    while let Some(rest) = ["- ", "* ", "• ", "+ ", "> ", "# "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .or_else(|| line.strip_prefix('#'))
    {
        line = rest.trim_start();
    }
    line
}

/// A piece of code or data that says nothing by itself.
pub(super) fn is_fragment(line: &str) -> bool {
    const CODE: [&str; 12] = [
        "fn ", "let ", "def ", "class ", "import ", "return ", "const ", "var ", "pub ", "if (",
        "for (", "while (",
    ];
    let line = line.trim();
    let spoken = line
        .chars()
        .filter(|c| c.is_alphanumeric() || *c == ' ')
        .count();
    let all = line.chars().count();
    spoken * 10 < all * 6
        || !line.chars().any(char::is_alphanumeric)
        || line.starts_with(['{', '}', '[', ']', '<', '|', ';', '$', '('])
        || line.starts_with("//")
        || line.starts_with("/*")
        || line.ends_with(['{', '}', ';', '['])
        || line.contains("{\"")
        || line.contains("\":")
        || CODE.iter().any(|word| line.starts_with(word)) && line.contains(['=', ';', '{', '('])
}

/// The beginning of the text, on one line.
pub(super) fn cut(text: &str, chars: usize) -> String {
    let one_line = text.replace(['\n', '\r', '\t'], " ");
    if one_line.chars().count() <= chars {
        return one_line;
    }
    let head: String = one_line.chars().take(chars.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}
