//! The keys under which words, tags and days of a record stand in the inverted index.
//!
//! One GIN index serves all tenants, so a key is a hash of the tenant, of who may see the record,
//! and of the word. A search looks up keys of its own tenant and audiences only. Two words may
//! share a key, which costs a candidate that core does not match.

use mnemon_core::dates::{Asked, Days, Told};
use mnemon_core::index::Terms;
use mnemon_core::{Audience, Filter, Record};

use super::audience_name;

/// Spans up to this many days are kept and asked for day by day; longer ones as blocks of this many days.
const BLOCK: i32 = 32;
/// Blocks of one span at the most.
const BLOCKS: i32 = 48;

/// What stands under a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Item {
    Term(u32),
    Tag(u64),
    /// A day of a span of less than [`BLOCK`] days.
    Day(i32),
    /// A part of such a span.
    ShortBlock(i32),
    /// A part of a longer one.
    LongBlock(i32),
}

impl Item {
    fn tag(tag: &str) -> Self {
        Self::Tag(digest(&tag.to_lowercase()))
    }

    fn number(self) -> u64 {
        let day = |day: i32| u64::from(day.cast_unsigned());
        match self {
            Self::Term(term) => u64::from(term),
            Self::Tag(tag) => tag ^ (1 << 40),
            Self::Day(at) => day(at) | 2 << 40,
            Self::ShortBlock(at) => day(at) | 3 << 40,
            Self::LongBlock(at) => day(at) | 4 << 40,
        }
    }
}

/// Who sees the records under a key, within one tenant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Space(u64);

impl Space {
    fn everyone(tenant: i64) -> Self {
        Self(mix(tenant.cast_unsigned()))
    }

    /// Records of all audiences but everyone, for the tenant itself.
    fn private(tenant: i64) -> Self {
        Self(mix(tenant.cast_unsigned() ^ 1 << 62))
    }

    fn audience(tenant: i64, audience: &Audience) -> Self {
        let name = digest(&audience_name(audience));
        Self(mix(mix(tenant.cast_unsigned() ^ 1 << 61) ^ name))
    }

    /// Where a record of this audience stands.
    fn of_record(tenant: i64, audience: &Audience) -> Vec<Self> {
        match audience {
            Audience::Everyone => vec![Self::everyone(tenant)],
            other => vec![Self::private(tenant), Self::audience(tenant, other)],
        }
    }

    /// Where the records stand that the filter's viewer may see.
    pub(super) fn of_viewer(tenant: i64, filter: &Filter) -> Vec<Self> {
        let everyone = Self::everyone(tenant);
        match filter.viewer.audiences() {
            None => vec![everyone, Self::private(tenant)],
            Some(audiences) => {
                let own = audiences.iter().map(|it| Self::audience(tenant, it));
                std::iter::once(everyone).chain(own).collect()
            }
        }
    }

    pub(super) fn key(self, item: Item) -> i32 {
        (mix(self.0 ^ mix(item.number())) >> 32) as i32
    }
}

/// The keys of the items in all of these spaces.
pub(super) fn keys(spaces: &[Space], items: &[Item]) -> Vec<i32> {
    let pairs = spaces
        .iter()
        .flat_map(|space| items.iter().map(|item| space.key(*item)));
    pairs.collect()
}

/// All keys of a record.
pub(super) fn of_record(
    tenant: i64,
    audience: &Audience,
    record: &Record,
    terms: &Terms,
) -> Vec<i32> {
    let mut items: Vec<Item> = terms.numbers().map(Item::Term).collect();
    items.extend(record.tags.iter().map(|tag| Item::tag(tag)));
    for Told { days, .. } in terms.told() {
        items.extend(mentioned(*days));
    }
    keys(&Space::of_record(tenant, audience), &items)
}

fn is_short(days: Days) -> bool {
    days.to.saturating_sub(days.from) < BLOCK
}

fn blocks(days: Days) -> impl Iterator<Item = i32> {
    let first = days.from.div_euclid(BLOCK);
    first..=days.to.div_euclid(BLOCK).min(first + BLOCKS)
}

fn mentioned(days: Days) -> Vec<Item> {
    if is_short(days) {
        let each = (days.from..=days.to).map(Item::Day);
        return each.chain(blocks(days).map(Item::ShortBlock)).collect();
    }
    blocks(days).map(Item::LongBlock).collect()
}

/// What to look up for days that are asked for.
pub(super) fn asked(asked: &Asked) -> Vec<Item> {
    let days = asked.days;
    let long = blocks(days).map(Item::LongBlock);
    match is_short(days) {
        true => long.chain((days.from..=days.to).map(Item::Day)).collect(),
        false => long.chain(blocks(days).map(Item::ShortBlock)).collect(),
    }
}

/// The keys of the filter's tags; `None` if it asks for none.
pub(super) fn tags(spaces: &[Space], filter: &Filter) -> Option<Vec<i32>> {
    let items: Vec<Item> = filter.tags.iter().map(|tag| Item::tag(tag)).collect();
    (!items.is_empty()).then(|| keys(spaces, &items))
}

/// The number of a session of an audience.
pub(super) fn conversation(audience: &str, session: &str) -> i64 {
    mix(digest(audience) ^ mix(digest(session))).cast_signed()
}

/// A number below 2^31 that looks random and is always the same for an id.
pub(super) fn draw(id: &str) -> i32 {
    (mix(digest(id)) >> 33) as i32
}

/// FNV-1a: these numbers are stored, so they must never change.
fn digest(text: &str) -> u64 {
    let mut digest: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    digest
}

/// The finaliser of SplitMix64.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use mnemon_core::Viewer;

    use super::*;

    #[test]
    fn a_viewer_looks_up_only_what_they_may_see() {
        let tea = Item::Term(mnemon_core::index::hash("tea"));
        let ann = Audience::User("ann".to_owned());
        let stored = |audience: &Audience| keys(&Space::of_record(7, audience), &[tea]);
        let looked_up =
            |viewer: Viewer| keys(&Space::of_viewer(7, &Filter::seen_by(viewer)), &[tea]);
        let finds = |viewer: Viewer, audience: &Audience| {
            let keys = looked_up(viewer);
            stored(audience).iter().any(|key| keys.contains(key))
        };
        assert!(finds(Viewer::user("ann"), &ann) && finds(Viewer::Tenant, &ann));
        assert!(!finds(Viewer::user("bob"), &ann) && !finds(Viewer::ANYONE, &ann));
        for viewer in [Viewer::user("bob"), Viewer::ANYONE, Viewer::Tenant] {
            assert!(finds(viewer, &Audience::Everyone));
        }
        let other = keys(&Space::of_viewer(8, &Filter::all_of_tenant()), &[tea]);
        assert!(
            stored(&Audience::Everyone)
                .iter()
                .all(|key| !other.contains(key))
        );
    }

    #[test]
    fn days_that_overlap_share_a_key() {
        let span = |from, to| Days { from, to };
        let spans = [
            span(100, 100),
            span(95, 110),
            span(90, 200),
            span(-40, 20_000),
        ];
        for one in spans {
            for other in spans {
                let asked = asked(&Asked {
                    days: other,
                    any_year: false,
                });
                let asked: Vec<u64> = asked.into_iter().map(Item::number).collect();
                let mentioned = mentioned(one).into_iter().map(Item::number);
                assert!(
                    mentioned.into_iter().any(|it| asked.contains(&it)),
                    "{one:?} {other:?}"
                );
            }
        }
    }
}
