//! Names, each kept once and known by a number.

use std::collections::{HashMap, HashSet};
use std::io;

use crate::search::column_file::{Reading, Writing, wrong};
use crate::search::index::{bytes_of_list, bytes_of_map};

/// No user, no agent, no session, no speaker.
pub(in crate::search::index) const NO_NAME: u32 = 0;

/// Names, each kept once.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    number: HashMap<String, u32>,
    name: Vec<String>,
}

impl Names {
    pub(super) fn number(&mut self, name: Option<&str>) -> u32 {
        let Some(name) = name else {
            return NO_NAME;
        };
        if let Some(known) = self.number.get(name) {
            return *known;
        }
        self.name.push(name.to_owned());
        let number = u32::try_from(self.name.len()).unwrap_or(u32::MAX);
        self.number.insert(name.to_owned(), number);
        number
    }

    pub(super) fn name(&self, number: u32) -> Option<&str> {
        let at = (number as usize).checked_sub(1)?;
        self.name.get(at).map(String::as_str)
    }

    /// The number of a name, if anybody has it.
    pub(super) fn known(&self, name: &str) -> Option<u32> {
        self.number.get(name).copied()
    }

    pub(super) fn bytes(&self) -> usize {
        let names: usize = self.name.iter().map(|name| 2 * (name.len() + 16)).sum();
        bytes_of_list(&self.name) + bytes_of_map(&self.number) + names
    }

    /// Writes the names that are `used`; the others keep their numbers and are forgotten.
    pub(super) fn save(&self, used: &HashSet<u32>, out: &mut Writing<'_>) -> io::Result<()> {
        let names = (1..).zip(&self.name);
        let kept: Vec<&str> = names
            .map(|(number, name)| {
                if used.contains(&number) {
                    name.as_str()
                } else {
                    ""
                }
            })
            .collect();
        out.column(kept.len(), kept.iter().map(|name| name.len() as u32))?;
        let bytes = kept.iter().map(|name| name.len()).sum();
        out.column(bytes, kept.iter().flat_map(|name| name.bytes()))
    }

    pub(super) fn load(from: &mut Reading<'_>) -> io::Result<Self> {
        let lengths: Vec<u32> = from.column()?;
        let text = from.text()?;
        let mut names = Self::default();
        let mut rest = text.as_str();
        for (number, length) in (1..).zip(lengths) {
            let split = rest.split_at_checked(length as usize);
            let (name, behind) = split.ok_or_else(|| wrong("a name is cut"))?;
            rest = behind;
            names.name.push(name.to_owned());
            if !name.is_empty() {
                names.number.insert(name.to_owned(), number);
            }
        }
        Ok(names)
    }
}
