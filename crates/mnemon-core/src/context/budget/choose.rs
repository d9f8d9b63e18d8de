//! Which materials go in: by value per token, within floors and ceilings.

use std::collections::{BTreeMap, BTreeSet};

use super::copies::copies;
use super::render::{self, MESSAGE_TOKENS, REPLY_TOKENS};
use super::{Budget, Counter, Form, Material, Section, Why, cut};

/// A part of fewer tokens is not worth the mark that says it was cut.
const LEAST_ROOM: usize = 32;
/// A part of so many tokens is worth having, however long the whole is.
const WORTH: usize = 64;
/// Of a shorter part at least one in so many tokens must be there.
const FRACTION: usize = 4;
/// A token has about four bytes; what lies so far beyond the room is not looked at for a cut.
const BYTES_PER_TOKEN: usize = 16;
/// One token in so many is kept free for the list of what was left out, and never more than this.
const TAIL_FRACTION: usize = 20;
const TAIL_TOKENS: usize = 400;

/// What became of a material.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fate {
    Open,
    /// With its tokens, and its beginning if it was cut.
    Taken(usize, Option<String>),
    Left(Why),
}

#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    tokens: usize,
    is_open: bool,
}

pub(super) struct Chooser<'a> {
    materials: &'a [Material],
    budget: &'a Budget,
    form: Form,
    counter: &'a dyn Counter,
    /// For each material those that it is a copy of.
    copies: Vec<Vec<usize>>,
    /// For each material those that are a copy of it.
    copied_by: Vec<Vec<usize>>,
    costs: Vec<usize>,
    pub(super) fates: Vec<Fate>,
    headings: BTreeMap<Section, usize>,
    /// What each of the two messages costs that hold sections.
    group: usize,
    groups: BTreeSet<bool>,
    spent: BTreeMap<Section, Spent>,
    used: usize,
    limit: usize,
}

impl<'a> Chooser<'a> {
    pub(super) fn new(
        materials: &'a [Material],
        budget: &'a Budget,
        form: Form,
        counter: &'a dyn Counter,
    ) -> Self {
        let around = |(open, close): &(String, String)| match form {
            Form::Messages => {
                counter.count(&render::in_json(open)) + counter.count(&render::in_json(close))
            }
            _ => counter.count(open) + counter.count(close),
        };
        let mut headings = BTreeMap::new();
        for section in Section::ALL {
            let is_bare = form == Form::Messages && *section == Section::Turns;
            let cost = around(&render::heading(form, *section));
            headings.insert(*section, if is_bare { 0 } else { cost });
        }
        let frame = around(&render::frame(form));
        let (used, group) = match form {
            Form::Messages => (
                REPLY_TOKENS + counter.count("[]"),
                frame + empty_message(counter),
            ),
            _ => (frame, 0),
        };
        let copies = copies(materials);
        let mut chooser = Self {
            materials,
            budget,
            form,
            counter,
            copied_by: reversed(&copies),
            copies,
            costs: Vec::new(),
            fates: vec![Fate::Open; materials.len()],
            headings,
            group,
            groups: BTreeSet::new(),
            spent: BTreeMap::new(),
            used,
            limit: budget.tokens,
        };
        chooser.costs = materials
            .iter()
            .map(|material| chooser.cost(material, &material.text, false))
            .collect();
        chooser.limit -= chooser.reserve();
        chooser
    }

    /// The tokens of this item as it is written.
    fn cost(&self, material: &Material, text: &str, is_cut: bool) -> usize {
        match self.form {
            Form::Messages if material.section == Section::Turns => {
                let message = render::turn_message(material, text, is_cut);
                self.counter.count(&render::in_json(&message.content)) + empty_message(self.counter)
            }
            form => {
                let item = render::item(form, material, text, is_cut);
                match form {
                    Form::Messages => self.counter.count(&render::in_json(&item)),
                    _ => self.counter.count(&item),
                }
            }
        }
    }

    /// The tokens of a whole item.
    pub(super) fn cost_of(&self, at: usize) -> usize {
        self.costs.get(at).copied().unwrap_or_default()
    }

    /// What is kept free for the list of what was left out, if not everything will fit.
    fn reserve(&self) -> usize {
        let all: usize = self.costs.iter().sum();
        let headings: usize = self.headings.values().sum();
        let needed = self.used + headings + all + 2 * self.group;
        if !self.budget.also_known || needed <= self.budget.tokens {
            return 0;
        }
        (self.budget.tokens / TAIL_FRACTION).min(TAIL_TOKENS)
    }

    pub(super) fn run(&mut self) {
        for (at, material) in self.materials.iter().enumerate() {
            if material.text.trim().is_empty() {
                self.set(at, Fate::Left(Why::Empty));
            }
        }
        let by_worth = self.by_worth();
        for at in &by_worth {
            if self.material(*at).is_some_and(|m| m.pinned) {
                self.consider(*at, None);
            }
        }
        for (section, floor) in self.floors() {
            self.fill_floor(&by_worth, section, floor);
        }
        self.fill(&by_worth);
        // Each round takes something that ranks below what it was a copy of, so it ends.
        while self.settle(&by_worth) {}
    }

    /// Looks again at what was left out for an original that has itself gone since. Whether
    /// something was taken.
    fn settle(&mut self, by_worth: &[usize]) -> bool {
        let mut changed = false;
        for at in by_worth.iter().copied() {
            if matches!(self.fates.get(at), Some(Fate::Left(Why::Duplicate { .. }))) {
                self.set(at, Fate::Open);
                self.consider(at, None);
                changed |= matches!(self.fates.get(at), Some(Fate::Taken(..)));
            }
        }
        changed
    }

    fn material(&self, at: usize) -> Option<&'a Material> {
        self.materials.get(at)
    }

    fn section(&self, at: usize) -> Section {
        self.material(at).map_or(Section::Documents, |m| m.section)
    }

    /// All materials, the most value per token first. Turns come newest first whatever their
    /// length: a conversation with holes in it misleads.
    fn by_worth(&self) -> Vec<usize> {
        let mut worths = self.worths();
        worths.sort_by(|(a, one), (b, other)| {
            other.total_cmp(one).then_with(|| self.newest_first(*a, *b))
        });
        worths.into_iter().map(|(at, _)| at).collect()
    }

    fn worths(&self) -> Vec<(usize, f64)> {
        let worth = |at: usize, value: f64| {
            let value = if value.is_finite() { value } else { 0.0 };
            value.clamp(0.0, 1.0) / self.cost_of(at).max(1) as f64
        };
        let all = self.materials.iter().enumerate();
        let mut worths: Vec<(usize, f64)> = all.map(|(at, m)| (at, worth(at, m.value))).collect();
        let mut turns: Vec<usize> = (0..worths.len())
            .filter(|at| self.section(*at) == Section::Turns)
            .collect();
        turns.sort_by(|a, b| self.newest_first(*a, *b));
        let mut least = f64::INFINITY;
        for at in turns {
            if let Some((_, worth)) = worths.get_mut(at) {
                least = least.min(*worth);
                *worth = least;
            }
        }
        worths
    }

    fn newest_first(&self, a: usize, b: usize) -> std::cmp::Ordering {
        let key = |at: usize| self.material(at).map(|m| (m.order, m.id.as_str()));
        key(b).cmp(&key(a)).then(b.cmp(&a))
    }

    /// The floors, scaled down if they exceed the budget together.
    fn floors(&self) -> Vec<(Section, usize)> {
        let named = self.budget.shares.iter();
        let floors: Vec<(Section, usize)> = named
            .filter(|(_, share)| share.floor > 0)
            .map(|(section, share)| (*section, share.floor))
            .collect();
        let total: u128 = floors.iter().map(|(_, floor)| *floor as u128).sum();
        let left = self.limit.saturating_sub(self.used) as u128;
        if total <= left {
            return floors;
        }
        let scaled = |floor: usize| usize::try_from(floor as u128 * left / total).unwrap_or(0);
        floors
            .into_iter()
            .map(|(section, floor)| (section, scaled(floor)))
            .collect()
    }

    fn fill_floor(&mut self, by_worth: &[usize], section: Section, floor: usize) {
        for at in by_worth.iter().copied() {
            if self.section(at) != section {
                continue;
            }
            let spent = self.spent.get(&section).copied().unwrap_or_default().tokens;
            if self.fates.get(at) != Some(&Fate::Open) || spent >= floor {
                continue;
            }
            let whole = self.consider(at, Some(floor - spent));
            if !whole && section == Section::Turns {
                return;
            }
        }
    }

    fn fill(&mut self, by_worth: &[usize]) {
        let mut turns_are_over = false;
        for at in by_worth.iter().copied() {
            let is_turn = self.section(at) == Section::Turns;
            match self.fates.get(at) {
                Some(Fate::Open) if is_turn && turns_are_over => {
                    self.set(at, Fate::Left(Why::OlderTurn));
                    continue;
                }
                Some(Fate::Open) => {}
                // It was cut to fit a floor; now it may have more.
                Some(Fate::Taken(_, Some(_))) => self.give_back(at, Fate::Open),
                _ => continue,
            }
            let whole = self.consider(at, None);
            turns_are_over |= is_turn && !whole;
        }
    }

    /// Takes the material, whole or cut, if there is room. With a cap it is left open otherwise.
    /// Whether all that it says is in.
    fn consider(&mut self, at: usize, cap: Option<usize>) -> bool {
        let Some(material) = self.material(at) else {
            return false;
        };
        if let Some(of) = self.taken_copy(at).filter(|_| !material.pinned) {
            self.set(at, Fate::Left(Why::Duplicate { of }));
            return true;
        }
        let (room, why) = self.room(material.section);
        let room = cap.map_or(room, |cap| {
            room.min(cap.saturating_sub(self.heading(material.section)))
        });
        let cost = self.cost_of(at);
        if cost <= room {
            self.take(at, cost, None);
            return true;
        }
        match self.cut(material, cost, room) {
            Some((cost, text)) => self.take(at, cost, Some(text)),
            None if cap.is_none() => self.set(at, Fate::Left(why)),
            None => {}
        }
        false
    }

    /// A material that was taken whole and says all that this one does.
    fn taken_copy(&self, at: usize) -> Option<crate::model::Id> {
        let copies = self.copies.get(at)?;
        let taken = copies
            .iter()
            .find(|other| matches!(self.fates.get(**other), Some(Fate::Taken(_, None))))?;
        Some(self.material(*taken)?.id.clone())
    }

    fn heading(&self, section: Section) -> usize {
        let spent = self.spent.get(&section).copied().unwrap_or_default();
        match spent.is_open {
            true => 0,
            false => self.headings.get(&section).copied().unwrap_or_default(),
        }
    }

    /// What it costs to write the first item of a section, beside its heading.
    fn opening(&self, section: Section) -> usize {
        let is_message = self.form == Form::Messages && section == Section::Turns;
        let is_open = self.groups.contains(&section.is_stable());
        if is_message || is_open { 0 } else { self.group }
    }

    /// The tokens that an item of the section may have, and what keeps it from having more.
    fn room(&self, section: Section) -> (usize, Why) {
        let heading = self.heading(section);
        let taken = self.used + heading + self.opening(section);
        let left = self.limit.saturating_sub(taken);
        let spent = self.spent.get(&section).copied().unwrap_or_default().tokens;
        let below = match self.budget.share(section).ceiling {
            Some(ceiling) => ceiling.saturating_sub(spent + heading),
            None => usize::MAX,
        };
        match below < left {
            true => (below, Why::Ceiling),
            false => (left, Why::NoRoom),
        }
    }

    fn cut(&self, material: &Material, cost: usize, room: usize) -> Option<(usize, String)> {
        if room < LEAST_ROOM {
            return None;
        }
        let most_bytes = room.saturating_mul(BYTES_PER_TOKEN);
        let cost_of = |text: &str| self.cost(material, text, true);
        let text = cut::beginning(&material.text, most_bytes, |text| cost_of(text) <= room)?;
        let part = cost_of(text);
        let is_worth_it = part >= WORTH || part * FRACTION >= cost;
        // Halving may miss by a hair: what does not fit is not taken.
        (is_worth_it && part <= room).then(|| (part, text.to_owned()))
    }

    fn take(&mut self, at: usize, cost: usize, cut: Option<String>) {
        let section = self.section(at);
        let heading = self.heading(section);
        self.used += heading + self.opening(section) + cost;
        if !(self.form == Form::Messages && section == Section::Turns) {
            self.groups.insert(section.is_stable());
        }
        let spent = self.spent.entry(section).or_default();
        spent.is_open = true;
        spent.tokens += heading + cost;
        let is_whole = cut.is_none();
        self.set(at, Fate::Taken(cost, cut));
        if is_whole {
            self.drop_copies_of(at);
        }
    }

    /// What was taken before and says nothing more than this one makes room.
    fn drop_copies_of(&mut self, at: usize) {
        let Some(id) = self.material(at).map(|m| m.id.clone()) else {
            return;
        };
        let copies = self.copied_by.get(at).cloned().unwrap_or_default();
        for copy in copies {
            let is_pinned = self.material(copy).is_some_and(|m| m.pinned);
            if matches!(self.fates.get(copy), Some(Fate::Taken(..))) && !is_pinned {
                self.give_back(copy, Fate::Left(Why::Duplicate { of: id.clone() }));
            }
        }
    }

    fn give_back(&mut self, at: usize, fate: Fate) {
        if let Some(Fate::Taken(cost, _)) = self.fates.get(at) {
            let (cost, section) = (*cost, self.section(at));
            self.used = self.used.saturating_sub(cost);
            let spent = self.spent.entry(section).or_default();
            spent.tokens = spent.tokens.saturating_sub(cost);
        }
        self.set(at, fate);
    }

    fn set(&mut self, at: usize, fate: Fate) {
        if let Some(slot) = self.fates.get_mut(at) {
            *slot = fate;
        }
    }

    /// Gives up what is worth least until `excess` tokens are free. Whether anything was left to
    /// give up.
    pub(super) fn shrink(&mut self, excess: usize) -> bool {
        let mut order = self.by_worth();
        // The last ones go first, and what is pinned goes last.
        order.sort_by_key(|at| !self.material(*at).is_some_and(|m| m.pinned));
        let mut freed = 0;
        for at in order.into_iter().rev() {
            if freed >= excess {
                break;
            }
            if let Some(Fate::Taken(cost, _)) = self.fates.get(at) {
                freed += cost;
                self.give_back(at, Fate::Left(Why::NoRoom));
            }
        }
        self.disown();
        freed > 0
    }

    /// What was left out for an original that is not there any more has lost its reason.
    fn disown(&mut self) {
        for at in 0..self.fates.len() {
            if matches!(self.fates.get(at), Some(Fate::Left(Why::Duplicate { .. }))) {
                let why = match self.taken_copy(at) {
                    Some(of) => Why::Duplicate { of },
                    None => Why::NoRoom,
                };
                self.set(at, Fate::Left(why));
            }
        }
    }

    /// The tokens that are not used.
    pub(super) fn left(&self) -> usize {
        self.budget.tokens.saturating_sub(self.used)
    }

    /// The tokens of each section, its heading included.
    pub(super) fn tokens_of(&self, section: Section) -> usize {
        self.spent.get(&section).map_or(0, |spent| spent.tokens)
    }

    /// What a text costs that stands between others, and what it costs to have it at all.
    pub(super) fn tail_cost(&self, text: &str) -> usize {
        match self.form {
            Form::Messages => self.counter.count(&render::in_json(text)),
            _ => self.counter.count(text),
        }
    }

    pub(super) fn tail_opening(&self) -> usize {
        let (open, close) = render::tail_heading(self.form);
        let group = if self.groups.contains(&false) {
            0
        } else {
            self.group
        };
        self.tail_cost(&open) + self.tail_cost(&close) + group
    }
}

fn reversed(copies: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut copied_by = vec![Vec::new(); copies.len()];
    for (copy, originals) in copies.iter().enumerate() {
        for original in originals {
            if let Some(list) = copied_by.get_mut(*original) {
                list.push(copy);
            }
        }
    }
    copied_by
}

fn empty_message(counter: &dyn Counter) -> usize {
    counter.count("{\"role\":\"assistant\",\"content\":\"\"},") + MESSAGE_TOKENS
}
