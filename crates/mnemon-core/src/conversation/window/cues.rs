//! Words that tell a sentence worth keeping, in English, Vietnamese and Japanese.

/// Something was settled, or is wanted so.
const DECIDED: &str = "\
    decid, agreed, we will, we'll, let's, i'll, going to, chose, choose, instead of, because, \
    must, should, never, always, prefer, confirmed, approved, deadline, \
    quyết định, chốt, thống nhất, sẽ, phải, vì, thay vì, đồng ý, hạn, thích, luôn, \
    不要, 決定, 決め, ことにし, べき, 必ず, なぜなら, ので, 締め切り, 好き, 承認, 合意";
/// Something is still to be done or to be known.
const OPEN: &str = "\
    todo, to do, still need, not yet, open question, unclear, remaining, next step, \
    follow up, pending, \
    chưa, cần, còn lại, việc tiếp, bước tiếp, \
    まだ, 未定, 未解決, 次に, 残り, 必要";
/// Something went wrong or was put right.
const FAILED: &str = "\
    error, fail, exception, panic, denied, timeout, not found, cannot, can't, fixed, solved, \
    lỗi, thất bại, hỏng, không tìm thấy, không thể, đã sửa, \
    エラー, 失敗, 例外, できな, 見つかりません, 修正, 解決";
/// Something came out of it.
const RESULT: &str = "\
    result, found, done, created, passed, works, total, answer, conclusion, in short, \
    kết quả, tìm thấy, xong, đã tạo, tổng, kết luận, \
    結果, 完了, 見つか, 作成, 合計, 結論";

/// How much a sentence says that a reader would miss.
pub(super) fn worth(sentence: &str) -> f64 {
    let low = sentence.to_lowercase();
    let has = |cues: &str| cues.split(", ").any(|cue| low.contains(cue));
    let mut worth = 0.0;
    for (cues, value) in [(DECIDED, 2.0), (OPEN, 2.0), (FAILED, 2.0), (RESULT, 1.0)] {
        if has(cues) {
            worth += value;
        }
    }
    if sentence.contains(['?', '？']) {
        worth += 1.5;
    }
    worth + numbers(sentence) + names(sentence)
}

/// Whether the text tells of a failure.
pub(super) fn is_failure(text: &str) -> bool {
    let low = text.to_lowercase();
    FAILED.split(", ").any(|cue| low.contains(cue))
}

fn numbers(sentence: &str) -> f64 {
    let words = sentence.split_whitespace();
    let numbers = words
        .filter(|word| word.chars().any(char::is_numeric))
        .count();
    (numbers as f64 * 0.7).min(2.0)
}

/// Names as they are written in running text: a capital inside the sentence, a path or an
/// identifier, something in katakana or in Japanese quotation marks.
fn names(sentence: &str) -> f64 {
    let words = sentence.split_whitespace().enumerate();
    let named = words.filter(|(at, word)| {
        let capital = *at > 0 && word.chars().next().is_some_and(char::is_uppercase);
        let inner = word.trim_matches(|c: char| !c.is_alphanumeric());
        capital
            || inner.contains(['/', '_', ':', '@'])
            || inner.contains('.') && !inner.ends_with('.')
    });
    let katakana = |c: char| ('\u{30a1}'..='\u{30fa}').contains(&c);
    let foreign = sentence.chars().filter(|c| katakana(*c)).count() >= 3;
    let quoted = sentence.contains(['「', '『', '`', '"']);
    let marks = f64::from(u8::from(foreign)) + f64::from(u8::from(quoted));
    (named.count() as f64 * 0.5).min(1.5) + marks * 0.5
}
