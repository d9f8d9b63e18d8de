//! Skills as files: a folder with a `SKILL.md` each, as coding assistants use them, and the plain
//! JSON form. Only text goes in and out here; whoever calls reads and writes the files.

use mnemon_core::Invalid;
use serde::{Deserialize, Serialize};

use crate::memory::scopes::{Sop, ToolSop};

/// The name of a skill's file within its folder.
const FILE: &str = "SKILL.md";
/// The longest name of a folder.
const NAME_CHARS: usize = 64;
/// The longest description.
const DESCRIPTION_CHARS: usize = 1024;
/// The heading over the steps, and over what to prefer.
const STEPS: &str = "## Steps";
const PREFERENCES: &str = "## Preferences";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillFile {
    /// Below the folder of all skills: `NAME/SKILL.md`.
    pub path: String,
    pub text: String,
}

/// The name of a skill's folder: small letters, digits and hyphens.
pub fn skill_folder(sop: &Sop) -> String {
    let from = sop.task_type.as_deref().unwrap_or(&sop.use_when);
    let mut name = String::new();
    for c in from.chars().flat_map(char::to_lowercase) {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c),
            _ if name.ends_with('-') || name.is_empty() => {}
            _ => name.push('-'),
        }
        if name.len() >= NAME_CHARS {
            break;
        }
    }
    let name = name.trim_end_matches('-');
    match name {
        "" => "skill".to_owned(),
        name => name.to_owned(),
    }
}

/// The skill as a file, in a folder of this name.
pub fn skill_file(folder: &str, sop: &Sop) -> SkillFile {
    let described: String = one_line(&sop.use_when)
        .chars()
        .take(DESCRIPTION_CHARS)
        .collect();
    let mut text = format!("---\nname: {folder}\ndescription: {}\n", quoted(&described));
    if let Some(task_type) = &sop.task_type {
        text.push_str(&format!("task_type: {}\n", quoted(task_type)));
    }
    text.push_str(&format!(
        "---\n\n{}\n\n{STEPS}\n\n",
        one_line(&sop.use_when)
    ));
    for (n, step) in sop.tool_sops.iter().enumerate() {
        let action = one_line(&step.action);
        text.push_str(&format!("{}. `{}`: {action}\n", n + 1, step.tool));
    }
    if !sop.preferences.trim().is_empty() {
        text.push_str(&format!("\n{PREFERENCES}\n\n{}\n", sop.preferences.trim()));
    }
    SkillFile {
        path: format!("{folder}/{FILE}"),
        text,
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As YAML reads it, whatever is in it: a JSON string is one.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

fn unquoted(text: &str) -> String {
    let text = text.trim();
    if let Ok(plain) = serde_json::from_str::<String>(text) {
        return plain;
    }
    let single = text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''));
    match single {
        Some(text) => text.replace("''", "'"),
        None => text.to_owned(),
    }
}

/// What the front matter says.
#[derive(Default)]
struct Front {
    name: Option<String>,
    description: Option<String>,
    task_type: Option<String>,
}

impl Front {
    fn slot(&mut self, key: &str) -> Option<&mut Option<String>> {
        match key.trim() {
            "name" => Some(&mut self.name),
            "description" => Some(&mut self.description),
            "task_type" => Some(&mut self.task_type),
            _ => None,
        }
    }

    /// Reads up to the line that ends it; `None` if there is no such line.
    fn read<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut front = Self::default();
        let mut open = "";
        for line in lines {
            if line.trim_end() == "---" {
                return Some(front);
            }
            // A text may go on on indented lines.
            if line.starts_with([' ', '\t']) {
                if let Some(Some(text)) = front.slot(open) {
                    let held = text.trim_start_matches(['>', '|', '-']).to_owned();
                    *text = format!("{held} {}", line.trim()).trim().to_owned();
                }
                continue;
            }
            let (key, value) = line.split_once(':').unwrap_or(("", ""));
            open = key;
            if let Some(slot) = front.slot(key) {
                *slot = Some(unquoted(value));
            }
        }
        None
    }
}

/// The skill in such a file. What has no steps that we understand becomes one step: to read it.
pub fn read_skill_file(text: &str) -> Result<Sop, Invalid> {
    let wrong = |what: &str| Invalid::new(FILE, what);
    let said = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines();
    if lines.next().map(str::trim_end) != Some("---") {
        return Err(wrong("does not begin with front matter (a line with ---)"));
    }
    let Some(front) = Front::read(&mut lines) else {
        return Err(wrong(
            "has front matter that never ends; close it with a line ---",
        ));
    };
    let Some(name) = said(front.name) else {
        return Err(wrong("has no `name` in its front matter"));
    };
    let Some(use_when) = said(front.description) else {
        return Err(wrong("has no `description` in its front matter"));
    };
    let body: Vec<&str> = lines.collect();
    let tool_sops = steps(&body);
    let sop = Sop {
        use_when,
        tool_sops: match tool_sops.is_empty() {
            true => vec![ToolSop {
                tool: name,
                action: shortened(&body.join("\n")),
            }],
            false => tool_sops,
        },
        preferences: section(&body, PREFERENCES).join("\n").trim().to_owned(),
        task_type: front.task_type,
        derived_from: Vec::new(),
        shared: false,
    };
    sop.check()?;
    Ok(sop)
}

/// The lines under a heading, up to the next one.
fn section<'a>(body: &[&'a str], heading: &str) -> Vec<&'a str> {
    let after = body.iter().skip_while(|line| line.trim_end() != heading);
    let lines = after.skip(1).take_while(|line| !line.starts_with("## "));
    lines.copied().collect()
}

fn steps(body: &[&str]) -> Vec<ToolSop> {
    let lines = section(body, STEPS).into_iter();
    let steps = lines.filter_map(|line| {
        let (number, rest) = line.split_once(". `")?;
        number.trim().parse::<usize>().ok()?;
        let (tool, action) = rest.split_once("`: ")?;
        Some(ToolSop {
            tool: tool.to_owned(),
            action: action.trim().to_owned(),
        })
    });
    steps.collect()
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    let head: String = text.chars().take(20_000).collect();
    match head.is_empty() {
        true => "do as it says".to_owned(),
        false => head,
    }
}
