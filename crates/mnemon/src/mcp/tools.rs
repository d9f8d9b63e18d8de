//! Every tool there is.

mod agents;
mod recall;
mod teams;

use super::profile::Profile;
use super::tool::Tool;

fn all() -> Vec<Tool> {
    let groups = [recall::tools(), agents::tools(), teams::tools()];
    groups.into_iter().flatten().collect()
}

/// The tools of these profiles, each once.
pub(super) fn of(profiles: &[Profile]) -> Vec<Tool> {
    let wanted = |tool: &Tool| {
        profiles
            .iter()
            .any(|profile| *profile == Profile::All || tool.profiles.contains(profile))
    };
    all().into_iter().filter(wanted).collect()
}
