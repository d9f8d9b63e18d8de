//! Words that tell what a sentence does, in English, Vietnamese and Japanese.
//!
//! A cue in Latin letters matches at the beginning of a word (`decid` finds "decided"); a space at
//! its end demands the end of the word. Other cues match anywhere.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

/// Something was settled.
const DECIDED: &str = "\
    settled|settle |lock in|locked |conclu|commit to|committed to|we prefer|final |outcome|\
    landed on|accepted|endors|authoris|authoriz|ratif|determined|shall be |elected|wins |won |\
    unanim|green light|thumbs up|go ahead|remains |stays |is now |we set |i've set|i set |\
    all agree|all for |let it be |our pick|our choice|ended up|end up|object|disagree|the deal|\
    the answer for|would like|i'd like|picked to|my choice|the choice|\
    stick with|sticking with|stay with|staying with|settle for|opt for|opted|voted|the vote|\
    verdict|\
    sign off|signed off|made up my mind|made up our mind|it's official|in favour of|in favor of|\
    adopt|\
    resolved that|we're doing|we are doing|we're taking|we're picking|picking |done deal|consensus|\
    the plan is|the winner is|locked in|finalised|finalized|selected|gets the nod|we want |\
    we're going|\
    decid|decision|agreed|we agree |settled on|go with|going with|went with|let's |let us |\
    we'll |we will |i'll go |chose |choose|chosen|picked |we pick|it is for |final call|\
    final choice|final decision|approved|confirmed|we take |we use |we are using|we're using|\
    should be |must be |has to be |have to be |will be |is set to|deadline is|it's going to be |\
    quyết định|chốt|thống nhất|đồng ý|chúng ta sẽ|sẽ dùng|\
    決定|決め|ことにし|合意|承認|採用";
/// Something that was settled before is taken back.
const CORRECTED: &str = "\
    revers|withdr|retract|abandon|dropped |drop |ditch|discard|disregard|cancel|overturn|\
    reconsider|rethink|rethought|amend|undo |walk back|back out|backtrack|swap|after all |\
    differently|off the table|obsolete|outdated|anymore|any more |turned out|changed to|changes to|\
    take back|took back|better than|second look|new one|new plan|new choice|new value|reject|refus|\
    mistake|history|we moved|i moved|i changed|need to change|\
    no longer|on second thought|forget |turns out|change of plan|plans changed|vetoed|ruled out|\
    scrap |\
    scrapped|never mind|hold on|won't work|moves to|moved to|switching|replaced|overruled|\
    take that back|\
    revised|supersed|in place of|from now on|\
    actually|correction|corrected|scratch that|instead of|instead |changed our mind|\
    changed my mind|change of mind|we changed|switched|switch to|was wrong|were wrong|i meant|\
    my mistake|rather than|revert|update on|replaces|\
    đính chính|sửa lại|thực ra|thay vì|đổi sang|nhầm|\
    訂正|やはり|やっぱり|ではなく|変更";
/// The words after these name the value that is no longer valid.
pub(super) const NOT: &str = "\
    not |instead of |rather than |no longer |forget |vetoed |scrap |scrapped |ruled out |\
    turns out |\
    replaces |from |drop |dropped |ditch |discard |disregard |abandon |cancel |withdraw |\
    walk back |\
    better than |không phải |thay vì |no ";
/// Somebody takes something on, or is given it.
const COMMITTED: &str = "\
    look after|keeps an eye|accountab|assign|arrang|promised|promises|offer|gets it |get it |pick |\
    run with|\
    runs with|carries |carry |deliver|implement|does |do this|do that|i'm on|yours |action item|\
    over to |hands on|step up|steps up|signed up|tackle|see to |sees to |manages|i'd love|count me|\
    me do |owning|charge of|\
    has this|on the hook|put |drives |drive |agreed to|pick it up|picks it up|got this|count on me|\
    get started|works on|working on|looks after|takes over|take over|handed |give it to|\
    it's my job|\
    will |'ll |takes |take |took |owns |own |owner|responsible|in charge|volunteer|assigned|\
    assignee|goes to |please do|going to|can do |handle|leads |mine |that's mine|leave it to me|\
    on it |asked |to do it|is doing|picks |by monday|by tuesday|by wednesday|by thursday|\
    by friday|i promise|\
    sẽ|phụ trách|lo việc|đảm nhận|giao cho|\
    担当|引き受け|やります|任せ|対応し";
/// Instead of an answer: nobody knows, or it is put off.
const DEFERRED: &str = "\
    can't say|cannot say|hard to say|depends|ask again|ask around|should ask|someone should|\
    somebody should|look into|looked into|look it up|read up|have to try|have to test|have to see|\
    have to look|need to check|need to look|will check|let me think|have to think|park |\
    come back to|good question|beats me|who knows|dunno|no clue|wait and see|not certain|uncertain|\
    unsure|unknown|remains to be|open for now|\
    no idea|don't know|do not know|not sure|not yet|let me check|check later|have to ask|\
    need to ask|find out|still open|not decided|undecided|unclear|to be decided|tbd|\
    to be determined|open question|later |nobody knows|ask finance|\
    chưa|không biết|không rõ|để sau|\
    まだ|わかりません|未定|不明|確認します|検討";
/// Something is still to be done or to be known.
const OPEN: &str = "\
    todo|to do |still need|not yet|open question|unclear|remaining|next step|follow up|pending|\
    blocked|waiting for|cần |còn lại|việc tiếp|bước tiếp|未解決|次に|残り|必要";
/// Something is wanted so, or is so for a reason.
const WANTED: &str = "\
    must |should |never |always |prefer|because|need |needs |want |wants |please |important|\
    deadline|before |until |phải|vì |luôn|thích|hạn |べき|必ず|なぜなら|ので|締め切り|好き|ください";
/// Something went wrong.
const FAILED: &str = "\
    dies |died |stuck |hangs |leak|returns nothing|bug|\
    error|fail|exception|panic|denied|timeout|time out|timed out|not found|cannot |can't |crash|\
    broken|breaks |bug |refuse|\
    lỗi|thất bại|hỏng|không tìm thấy|không thể|エラー|失敗|例外|できな|見つかりません";
/// Something was put right.
const FIXED: &str = "\
    stable now|is running|restored|mended|healthy|\
    back to normal|is gone|no more |up again|recovered|patched|repaired|fine now|\
    fixed|solved|resolved|passed|passes|works |work now|working again|again |all green|succeed|\
    success|\
    đã sửa|đã xong|修正|解決|直り";
/// Something came out of it.
const RESULT: &str = "\
    result|found|done|created|passed|works|total|answer|conclusion|in short|\
    kết quả|tìm thấy|xong|đã tạo|tổng|kết luận|結果|完了|見つか|作成|合計|結論";
/// Greetings, thanks, and what is said between them.
const SMALL_TALK: &str = "\
    perfect |makes sense|have a nice|have a good|weekend|wow |awesome|sorry |cheers|no worries|\
    understood|alright|brb |yay |hiểu rồi|dạ |hi all|わかりました|\
    thanks|thank you|hello|hi |hey |good morning|good evening|good night|haha|lol |nice |great |\
    how are you|got it|i see |sounds good|ok |okay |sure |welcome|bye|see you|cool |weather|\
    cảm ơn|xin chào|chào |vâng|ありがとう|おはよう|こんにち|天気|お疲れ|了解";
/// Words that say nothing about the subject of a sentence.
const STOP: &str = "\
    a|an|the|and|or|but|of|for|as|to|in|on|at|by|with|from|about|into|than|then|so|if|is|are|was|\
    were|be|been|being|it|its|this|that|these|those|there|here|i|you|he|she|we|they|me|us|him|\
    her|them|my|your|his|our|their|mine|ours|do|does|did|done|have|has|had|will|would|can|could|\
    should|shall|may|might|must|not|no|yes|what|which|who|whom|whose|when|where|why|how|any|some|\
    all|just|also|too|very|more|most|now|again|still|yet|only|one|ok|okay|let|lets|let's|i'm|\
    i'll|i'd|i've|it's|that's|we'll|we're|we've|don't|didn't|doesn't|isn't|aren't|won't|there's|\
    because|since|please|actually|correction|instead|scratch|sorry|meant|decide|decided|decision|\
    agreed|agree|final|call|go|going|went|use|used|using|take|taken|takes|took|choose|chose|\
    chosen|pick|picked|settled|settle|team|update|switched|switch|changed|change|mind|minds|\
    wrong|think|say|said|suggest|preference|way|get|got|make|made|today|out|up|after|before|\
    need|needs|know|anybody|somebody|anyone|someone|thought|\
    là|và|của|cho|làm|này|đó|thì|mà|có|không|sẽ|đã|rồi|được|với|chúng|ta|tôi|chốt|quyết|định|việc";

/// What a cue tells.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cue {
    Decided,
    Corrected,
    Committed,
    Deferred,
    Open,
    Wanted,
    Failed,
    Fixed,
    Result,
    SmallTalk,
}

/// The lists, in the order of [`Cue`].
const LISTS: [&str; 10] = [
    DECIDED, CORRECTED, COMMITTED, DEFERRED, OPEN, WANTED, FAILED, FIXED, RESULT, SMALL_TALK,
];

/// The bits of the lists that have a cue in this sentence. It is gone through once: a cue of Latin
/// letters is looked for where a word begins, any other one everywhere.
fn found(padded: &str) -> u16 {
    type ByFirst = HashMap<char, Vec<(&'static str, u16)>>;
    static CUES: LazyLock<ByFirst> = LazyLock::new(|| {
        let mut cues = ByFirst::new();
        for (bit, list) in LISTS.iter().enumerate() {
            for cue in list.split('|') {
                if let Some(first) = cue.chars().next() {
                    cues.entry(first).or_default().push((cue, 1 << bit));
                }
            }
        }
        cues
    });
    let mut bits = 0;
    let mut before = ' ';
    for (at, c) in padded.char_indices() {
        let starts = before == ' ' || c == '\'' || c >= '\u{3000}';
        before = c;
        let Some(cues) = CUES.get(&c).filter(|_| starts) else {
            continue;
        };
        let rest = padded.get(at..).unwrap_or_default();
        for (cue, bit) in cues {
            if bits & bit == 0 && rest.starts_with(cue) {
                bits |= bit;
            }
        }
    }
    bits
}

fn is_stop(word: &str) -> bool {
    static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP.split('|').collect());
    WORDS.contains(word)
}

/// A sentence in small letters, with one space around every word and no punctuation but
/// apostrophes.
pub(super) fn padded(sentence: &str) -> String {
    let mut padded = String::with_capacity(sentence.len() + 2);
    padded.push(' ');
    for c in sentence.chars().flat_map(char::to_lowercase) {
        match c {
            '’' => padded.push('\''),
            c if c.is_alphanumeric() || c == '\'' => padded.push(c),
            _ if !padded.ends_with(' ') => padded.push(' '),
            _ => {}
        }
    }
    if !padded.ends_with(' ') {
        padded.push(' ');
    }
    padded
}

/// What the cues of a sentence say about it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cues(u16);

impl Cues {
    /// Takes what [`padded`] made.
    pub(super) fn of(padded: &str) -> Self {
        let mut bits = found(padded);
        let corrected = 1 << Cue::Corrected as u16;
        if padded.contains(" not ") && padded.contains(" but ") {
            bits |= corrected;
        } else if padded.contains(" don't forget") {
            bits &= !corrected;
        }
        Self(bits)
    }

    pub(super) fn has(self, cue: Cue) -> bool {
        self.0 & 1 << cue as u16 != 0
    }
}

/// Whether the words after a name say that somebody takes something on: a cue of commitment, but
/// for what a thing does as well ("Kafka will be the queue").
pub(super) fn is_person_verb(after: &str) -> bool {
    let is_thing = [" will be ", " is set ", " is the "];
    let is_doing = [
        " is ", " has ", " said ", " can ", " looks ", " runs ", " leads ",
    ];
    // "Ann to implement"
    let after = after.strip_prefix(" to").unwrap_or(after);
    let does = |cue: &str| after.trim_start().starts_with(cue);
    let committed = COMMITTED.split('|').any(does);
    let is_doing =
        is_doing.iter().any(|verb| after.starts_with(verb)) && Cues::of(after).has(Cue::Committed);
    (committed || is_doing) && !is_thing.iter().any(|thing| after.starts_with(thing))
}

/// Whether the text tells of a failure.
pub(super) fn is_failure(text: &str) -> bool {
    Cues::of(&padded(text)).has(Cue::Failed)
}

/// The words that a sentence is about: no articles, no verbs of deciding, plurals as singulars.
/// Japanese has no spaces: runs of one script stand for words.
pub(super) fn content_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in padded(text).split(' ') {
        let word = word.trim_matches('\'');
        let word = word.strip_suffix("'s").unwrap_or(word);
        if !word.is_empty() && !is_stop(word) {
            words.extend(scripts(word).into_iter().map(singular));
        }
    }
    words.sort();
    words.dedup();
    words
}

/// A word as a number: a hash, so that messages can be read one by one and compared later.
pub(super) type Word = u64;

/// The words as numbers, sorted, each of them once.
pub(super) fn numbered(words: &[String]) -> Vec<Word> {
    let number = |word: &String| {
        let mut hasher = DefaultHasher::new();
        word.hash(&mut hasher);
        hasher.finish()
    };
    let mut numbers: Vec<Word> = words.iter().map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The words that a sentence is about, as numbers.
pub(super) fn words_of(text: &str) -> Vec<Word> {
    numbered(&content_words(text))
}

fn singular(word: String) -> String {
    let long = word.chars().count() > 3;
    for (end, instead) in [
        ("ies", "y"),
        ("shes", "sh"),
        ("ches", "ch"),
        ("xes", "x"),
        ("sses", "ss"),
    ] {
        if long && let Some(stem) = word.strip_suffix(end) {
            return format!("{stem}{instead}");
        }
    }
    match word.strip_suffix('s') {
        Some(stem) if long && !stem.ends_with(['s', 'u', 'i']) => stem.to_owned(),
        _ => word,
    }
}

/// A word in Latin letters as it is; of Japanese text the runs of kanji, katakana and Latin
/// letters, without the hiragana between them.
fn scripts(word: &str) -> Vec<String> {
    let script = |c: char| match c {
        '\u{3041}'..='\u{309f}' => 1,
        '\u{30a0}'..='\u{30ff}' => 2,
        '\u{3400}'..='\u{9fff}' => 3,
        _ => 0,
    };
    let mut runs: Vec<(u8, String)> = Vec::new();
    for c in word.chars() {
        match runs.last_mut() {
            Some((last, run)) if *last == script(c) => run.push(c),
            _ => runs.push((script(c), c.to_string())),
        }
    }
    let kept = runs.into_iter().filter(|(script, _)| *script != 1);
    kept.map(|(_, run)| run).collect()
}

/// Runs of words with a capital that do not begin the sentence, and the one that begins it if
/// other names follow the same pattern: a name, a product, a place.
pub(super) fn names(sentence: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut in_name = false;
    for word in sentence.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let bare = bare.strip_suffix("'s").unwrap_or(bare);
        // "An" is a name after "Nguyễn", and an article anywhere else.
        let capital = bare.chars().next().is_some_and(char::is_uppercase)
            && (in_name || !is_stop(&bare.to_lowercase()));
        match (capital, in_name, names.last_mut()) {
            (true, true, Some(name)) => {
                name.push(' ');
                name.push_str(bare);
            }
            (true, _, _) => names.push(bare.to_owned()),
            _ => {}
        }
        in_name = capital && word.ends_with(bare);
    }
    names
}

/// How much a sentence says that a reader would look for: numbers, names, paths, quotations.
pub(super) fn details(sentence: &str) -> f64 {
    let words = || sentence.split_whitespace();
    let numbers = words()
        .filter(|word| word.chars().any(char::is_numeric))
        .count();
    let named = words().enumerate().filter(|(at, word)| {
        let capital = *at > 0
            && word.chars().next().is_some_and(char::is_uppercase)
            && word.chars().count() > 1
            && !word.starts_with("I'");
        let inner = word.trim_matches(|c: char| !c.is_alphanumeric());
        capital
            || inner.contains(['/', '_', ':', '@'])
            || inner.contains('.') && !inner.ends_with('.')
    });
    let katakana = |c: char| ('\u{30a1}'..='\u{30fa}').contains(&c);
    let foreign = sentence.chars().filter(|c| katakana(*c)).count() >= 3;
    let quoted = sentence.contains(['「', '『', '`', '"']);
    let marks = f64::from(u8::from(foreign)) + f64::from(u8::from(quoted));
    (numbers as f64).min(2.0) + (named.count() as f64 * 0.5).min(1.5) + marks * 0.5
}
