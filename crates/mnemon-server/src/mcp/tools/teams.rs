//! Tools for teams of agents: shared files, handoffs, blockers, status.

use mnemon_engine::agentfiles::{BlockerInfo, HandoffInfo, TeamInfo, TeamStatus};
use serde_json::{Value, json};

use super::super::answer::{Answer, excerpt};
use super::super::tool::{Call, Tool, Touch};
use super::agents::{Answered, LINE, tool};
use mnemon_operations::Error;
use mnemon_operations::operation::teams::{self, Blocked};

/// Members that are named.
const MEMBERS: usize = 100;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool::<teams::New>(
            "Create a team",
            Touch::Adds,
            "Create a team and its members, or add members to a team that exists. Use it when \
             several agents work together. Files that exist are not changed.",
        ),
        tool::<teams::Activate>(
            "Begin as a member of a team",
            Touch::Reads,
            "Load the memory of a team member: the team's context and decisions, waiting \
             handoffs, and its own memory. Call it instead of agent_activate when you work in a \
             team.",
        )
        .with_max_tokens(),
        tool::<teams::Context>(
            "Read or change a team's context",
            Touch::Edits,
            "Show the context that a team shares, or change lines of it; other lines stay. Use \
             it for information that the whole team needs.",
        )
        .with_max_tokens(),
        tool::<teams::Decide>(
            "Log a decision of a team",
            Touch::Adds,
            "Log a decision in the team's decisions.md, which every member reads. Use it when a \
             choice binds the whole team.",
        ),
        tool::<teams::Edit>(
            "Change or remove a decision of a team",
            Touch::Removes,
            "Change or remove a decision of a team. Use it when an entry is wrong.",
        ),
        tool::<teams::Handoff>(
            "Hand work to another member",
            Touch::Adds,
            "Give work to another member of the team, with all necessary information. Use it \
             when your part is done or another is better suited.",
        ),
        tool::<teams::Accept>(
            "Accept a handoff",
            Touch::Changes,
            "Accept a handoff that waits for a member. Use it before you start that work.",
        ),
        tool::<teams::Complete>(
            "Complete a handoff",
            Touch::Changes,
            "Mark a handoff as done, with its result. Use it when the deliverable is ready.",
        ),
        tool::<teams::Block>(
            "Report or resolve a blocker",
            Touch::Adds,
            "Report something that blocks the team (blocker), or that it is resolved (resolved). \
             Use it as soon as you are blocked.",
        ),
        tool::<teams::Status>(
            "Status of a team",
            Touch::Reads,
            "Show a team's members, open handoffs and blockers, and who should be informed. Use \
             it to find the next work.",
        )
        .with_max_tokens(),
    ]
}

impl Answered for HandoffInfo {
    fn answer(&self, _: &Call) -> Result<Answer, Error> {
        let text = format!("{}: {} ({})", self.heading, self.task, self.status);
        Answer::with(text, self)
    }
}

impl Answered for Blocked {
    fn answer(&self, _: &Call) -> Result<Answer, Error> {
        let verb = if self.resolved { "resolved" } else { "logged" };
        Answer::with(format!("{} is {verb}.", self.id), self)
    }
}

impl Answered for TeamStatus {
    fn answer(&self, call: &Call) -> Result<Answer, Error> {
        let team = &self.team;
        let members: Vec<String> = team.members.iter().take(MEMBERS).cloned().collect();
        let lead = team.lead.as_ref().map(|lead| format!(" (lead {lead})"));
        let lead = lead.unwrap_or_default();
        let head = format!("{}{lead}: {}\n", team.name, members.join(", "));
        let items = self.handoffs.len().max(self.blockers.len());
        Answer::fit(call, items, |room| {
            let chars = room.chars.min(LINE);
            let handoffs = self.handoffs.iter().take(room.items);
            let handoffs = handoffs.map(|one| handoff(one, chars));
            let (open, handoffs): (Vec<String>, Vec<Value>) = handoffs.unzip();
            let blockers = self.blockers.iter().take(room.items);
            let blockers = blockers.map(|one| blocker(one, chars));
            let (blocked, blockers): (Vec<String>, Vec<Value>) = blockers.unzip();
            let all = self.handoffs.len() + self.blockers.len();
            let left_out = all - handoffs.len() - blockers.len();
            let mut text = format!("{head}{}{}", open.concat(), blocked.concat());
            if left_out > 0 {
                text.push_str(&format!("{left_out} more: ask for a larger max_tokens\n"));
            }
            let mut data = json!(TeamInfo {
                members: members.clone(),
                ..team.clone()
            });
            if let Some(data) = data.as_object_mut() {
                data.insert("handoffs".to_owned(), json!(handoffs));
                data.insert("blockers".to_owned(), json!(blockers));
                data.insert("left_out".to_owned(), json!(left_out));
            }
            Answer::with(text, &data)
        })
    }
}

fn handoff(one: &HandoffInfo, chars: usize) -> (String, Value) {
    let [heading, task] = [&one.heading, &one.task].map(|text| excerpt(text, chars));
    let line = format!("handoff {heading}: {task} ({})\n", one.status);
    let mut row = one.clone();
    (row.heading, row.task) = (heading, task);
    (line, json!(row))
}

fn blocker(one: &BlockerInfo, chars: usize) -> (String, Value) {
    let (title, escalation) = (excerpt(&one.title, chars), &one.escalation);
    let line = format!("{}: {title}; escalation: {escalation}\n", one.id);
    let row = BlockerInfo {
        title,
        ..one.clone()
    };
    (line, json!(row))
}
