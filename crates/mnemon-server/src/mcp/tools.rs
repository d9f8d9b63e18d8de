//! Every tool there is.

mod agents;
mod conversations;
mod learning;
mod notes;
mod recall;
mod teams;

use mnemon_engine::access::Rights;
use mnemon_engine::longterm::{self, Mode};

use super::profile::Profile;
use super::served::RemoteCaller;
use super::tool::{Tool, Touch};

fn all() -> Vec<Tool> {
    let groups = [
        notes::tools(),
        notes::housekeeping(),
        recall::tools(),
        conversations::tools(),
        learning::tools(),
        agents::tools(),
        teams::tools(),
    ];
    groups.into_iter().flatten().collect()
}

/// The tools of these profiles, each once. In static mode the model has no tools of the long-term
/// memory: the server uses it for them.
pub(super) fn of(profiles: &[Profile], long_term: Mode, remote: Option<RemoteCaller>) -> Vec<Tool> {
    let wanted = |tool: &Tool| {
        let is_in_profile = profiles
            .iter()
            .any(|profile| *profile == Profile::All || tool.profiles.contains(profile));
        let is_of_agent_mode = [longterm::RECORD, longterm::RETRIEVE].contains(&tool.name);
        let is_allowed = remote.is_none_or(|remote| allows(remote, tool));
        is_in_profile && is_allowed && !(is_of_agent_mode && long_term == Mode::Static)
    };
    let mut tools: Vec<Tool> = all().into_iter().filter(wanted).collect();
    if remote.is_some() {
        // Files of the server are none of theirs.
        for tool in &mut tools {
            tool.fields.retain(|field| !field.is_local);
        }
    }
    tools
}

/// Whether a caller from another machine may use the tool.
fn allows(remote: RemoteCaller, tool: &Tool) -> bool {
    let is_of_files = ["agent_", "team_"]
        .iter()
        .any(|group| tool.name.starts_with(group));
    let is_of_tenant = tool.name == "memory_cleanup" && remote.rights < Rights::Admin;
    let may_write = remote.rights >= Rights::Write || tool.touch == Touch::Reads;
    may_write && !is_of_tenant && !(is_of_files && remote.is_bound)
}

/// The tools as clients see them: briefly, if only the smallest set is served, and with schemas of
/// the answers if all tools answer with structured content.
pub(super) fn listed(tools: &[Tool], structured: bool) -> Vec<rmcp::model::Tool> {
    let is_small = |tool: &Tool| tool.profiles.contains(&Profile::Small);
    let describe = match tools.iter().all(is_small) {
        true => Tool::described_briefly,
        false => Tool::described,
    };
    let described = tools.iter().map(|tool| match structured {
        true => tool.with_answer(describe(tool)),
        false => describe(tool),
    });
    described.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use mnemon_core::budget::Family;

    use super::super::field::schema;
    use super::*;

    fn names(profiles: &[Profile]) -> Vec<&'static str> {
        of(profiles, Mode::Agent, None)
            .iter()
            .map(|tool| tool.name)
            .collect()
    }

    #[test]
    fn the_small_set_is_small() {
        let small = [
            "memory_add",
            "memory_search",
            "memory_get",
            "memory_list",
            "memory_update",
            "memory_delete",
            "memory_undo",
            "memory_context",
        ];
        assert_eq!(names(&[Profile::Small]), small);
        let tools = of(&[Profile::Small], Mode::Agent, None);
        let listed = serde_json::json!(listed(&tools, false)).to_string();
        let tokens = mnemon_operations::wiring::counter(Family::O200k).count(&listed);
        assert!(tokens <= 1200, "{tokens} tokens: {listed}");
    }

    #[test]
    fn every_tool_is_in_all_and_in_another_profile() {
        let all = names(&[Profile::All]);
        let others = names(&[Profile::Small, Profile::Notes, Profile::Agent]);
        assert_eq!(all, others);
        let unique: HashSet<&str> = all.iter().copied().collect();
        assert_eq!(unique.len(), all.len());
        assert_eq!(all.len(), 40);
        let in_static = of(&[Profile::All], Mode::Static, None);
        assert_eq!(in_static.len(), 38);
    }

    #[test]
    fn every_tool_says_when_to_use_it_and_bounds_its_fields() {
        for tool in of(&[Profile::All], Mode::Agent, None) {
            let about = tool.about.to_lowercase();
            assert!(
                about.contains("use it") || about.contains("call it") || about.contains("then"),
                "{}: {about}",
                tool.name
            );
            let schema = serde_json::json!(schema(&tool.fields)).to_string();
            let texts = schema.matches("\"type\":\"string\"").count();
            let bounds = schema.matches("maxLength").count() + schema.matches("\"enum\"").count();
            assert_eq!(texts, bounds, "{}: {schema}", tool.name);
        }
    }

    #[test]
    fn every_tool_has_a_schema_of_its_answer() {
        let tools = of(&[Profile::All], Mode::Agent, None);
        for tool in listed(&tools, true) {
            let schema = tool.output_schema.expect("a schema");
            assert_eq!(schema["type"], "object", "{}", tool.name);
        }
        let known = mnemon_operations::schema::document()["tools"]
            .as_object()
            .unwrap();
        assert_eq!(known.len(), tools.len());
        let plain = listed(&tools, false);
        assert!(plain.iter().all(|tool| tool.output_schema.is_none()));
    }

    #[test]
    fn no_name_of_a_field_means_two_fields() {
        for tool in of(&[Profile::All], Mode::Agent, None) {
            for field in &tool.fields {
                for name in field.aliases.iter().chain([&field.name]) {
                    let called = tool.fields.iter().filter(|field| field.is_called(name));
                    assert_eq!(called.count(), 1, "{}: {name}", tool.name);
                }
            }
        }
    }

    #[test]
    fn what_takes_away_says_so() {
        let removing: Vec<&str> = of(&[Profile::All], Mode::Agent, None)
            .iter()
            .filter(|tool| tool.touch == Touch::Removes)
            .map(|tool| tool.name)
            .collect();
        assert_eq!(
            removing,
            [
                "memory_delete",
                "memory_clear_short_term",
                "memory_clear_all",
                "memory_cleanup",
                "agent_edit",
                "team_edit"
            ]
        );
    }
}
