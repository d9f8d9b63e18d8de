//! English words whose forms no rule leads back to their base: `went`, `children`.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

/// Verbs and nouns: the base first, then its other forms. Forms that are more often another word are
/// left out (`bit` in "a bit", `lives`, `leaves`, `ground`).
const FORMS: &str = "\
    arise arose arisen;awake awoke awoken;bear bore borne;beat beaten;become became;\
    befall befell befallen;beget begot begotten;begin began begun;behold beheld;bend bent;\
    beseech besought;bid bade bidden;bite bitten;bleed bled;blow blew blown;\
    break broke broken;breed bred;bring brought;build built;burn burnt;buy bought;\
    catch caught;choose chose chosen;cling clung;come came;creep crept;\
    deal dealt;dig dug;draw drew drawn;dream dreamt;drink drank drunk;drive drove driven;\
    dwell dwelt;eat ate eaten;fall fell fallen;feed fed;feel felt;fight fought;find found;\
    flee fled;fling flung;fly flew flown;forbid forbade forbidden;foresee foresaw foreseen;\
    forget forgot forgotten;forgive forgave forgiven;forsake forsook forsaken;freeze froze frozen;\
    get got gotten;give gave given;go went gone;grow grew grown;\
    hang hung;hear heard;hide hid hidden;hold held;keep kept;kneel knelt;knit knitted;\
    know knew known;lay laid;lead led;lean leant;leap leapt;learn learnt;leave left;lend lent;\
    lie lain;light lit;lose lost;make made;mean meant;meet met;mislead misled;\
    mistake mistook mistaken;misunderstand misunderstood;mow mown;\
    outdo outdid outdone;outgrow outgrew outgrown;overcome overcame;overhear overheard;\
    oversee oversaw overseen;oversleep overslept;overtake overtook overtaken;\
    overthrow overthrew overthrown;partake partook partaken;pay paid;prove proven;\
    rebuild rebuilt;redo redid redone;remake remade;repay repaid;rewrite rewrote rewritten;\
    ride rode ridden;ring rang rung;rise rose risen;run ran;\
    say said;see saw seen;seek sought;sell sold;send sent;sew sewn;shake shook shaken;\
    shear shorn;shine shone;shoot shot;show shown;shrink shrank shrunk;sing sang sung;\
    sink sank sunk;sit sat;slay slew slain;sleep slept;slide slid;sling slung;smell smelt;\
    sow sown;speak spoke spoken;speed sped;spell spelt;spend spent;spill spilt;spin spun;\
    spit spat;spoil spoilt;spring sprang sprung;stand stood;steal stole stolen;\
    stick stuck;sting stung;stink stank stunk;stride strode stridden;strike struck stricken;\
    string strung;strive strove striven;swear swore sworn;sweep swept;swell swollen;\
    swim swam swum;swing swung;take took taken;teach taught;tear tore torn;tell told;\
    think thought;throw threw thrown;tread trod trodden;undergo underwent undergone;\
    understand understood;undertake undertook undertaken;undo undid undone;\
    uphold upheld;wake woke woken;wear wore worn;weave wove woven;weep wept;win won;\
    withdraw withdrew withdrawn;withhold withheld;withstand withstood;wring wrung;\
    write wrote written;\
    child children;man men;woman women;person people;foot feet;tooth teeth;goose geese;\
    mouse mice;louse lice;ox oxen;half halves;knife knives;wife wives;\
    loaf loaves;shelf shelves;thief thieves;wolf wolves;calf calves;elf elves;\
    scarf scarves;hoof hooves;brother brethren;penny pence;\
    analysis analyses;crisis crises;diagnosis diagnoses;hypothesis hypotheses;\
    oasis oases;parenthesis parentheses;thesis theses;phenomenon phenomena;\
    criterion criteria;bacterium bacteria;curriculum curricula;\
    memorandum memoranda;stratum strata;index indices;matrix matrices;vertex vertices;\
    appendix appendices;cactus cacti;focus foci;fungus fungi;nucleus nuclei;stimulus stimuli;\
    alumnus alumni;syllabus syllabi;radius radii;formula formulae;larva larvae;vertebra vertebrae;\
    antenna antennae;\
    \
    grandchild grandchildren;stepchild stepchildren;fisherman fishermen;fireman firemen;\
    policeman policemen;policewoman policewomen;businessman businessmen;businesswoman businesswomen;\
    chairman chairmen;salesman salesmen;craftsman craftsmen;gentleman gentlemen;sportsman sportsmen;\
    housewife housewives;bookshelf bookshelves;penknife penknives;midwife midwives;\
    eyetooth eyeteeth;dormouse dormice";

/// Forms are no longer than this.
const LONGEST: usize = 14;

static BASES: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let mut bases = HashMap::new();
    for line in FORMS.split(';') {
        let mut words = line.split_whitespace();
        let Some(base) = words.next() else { continue };
        for form in words {
            bases.entry(form).or_insert(base);
        }
    }
    bases
});

static LEFT_OUT: OnceLock<()> = OnceLock::new();

/// Has this process read irregular forms as words of their own from now on, to measure what they
/// are worth. Records and queries have to agree, so there is no switch for a single text.
pub fn leave_out_irregular_forms() {
    LEFT_OUT.get_or_init(|| ());
}

/// The base of an irregular form.
pub(super) fn base(word: &str) -> Option<&'static str> {
    if word.len() > LONGEST || word.len() < 3 || LEFT_OUT.get().is_some() {
        return None;
    }
    BASES.get(word).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_lead_to_their_base() {
        let cases = [
            ("went", "go"),
            ("children", "child"),
            ("feet", "foot"),
            ("saw", "see"),
        ];
        for (form, expected) in cases {
            assert_eq!(base(form), Some(expected), "{form}");
        }
        assert_eq!(base("go"), None);
        assert_eq!(base("housewives-and-more"), None);
    }

    #[test]
    fn no_base_is_itself_a_form_of_another_word() {
        for (form, base_of) in BASES.iter() {
            assert!(form.len() <= LONGEST, "{form}");
            let again = base(base_of);
            assert!(again.is_none(), "{form} → {base_of} → {again:?}");
        }
    }
}
