//! Skills as files.

use mnemon_engine::learn::{read_skill_file, skill_file, skill_folder};
use mnemon_engine::{Sop, ToolSop};
use proptest::prelude::*;

fn sop(use_when: &str, steps: &[(&str, &str)]) -> Sop {
    let steps = steps.iter().map(|(tool, action)| ToolSop {
        tool: (*tool).to_owned(),
        action: (*action).to_owned(),
    });
    Sop {
        use_when: use_when.to_owned(),
        tool_sops: steps.collect(),
        preferences: "use pnpm if available".to_owned(),
        task_type: Some("deploy_app".to_owned()),
        derived_from: Vec::new(),
        shared: false,
    }
}

#[test]
fn a_skill_is_a_folder_with_front_matter() {
    let skill = sop(
        "deploy Next.js app to Vercel",
        &[
            ("create_repo", "create repo from template"),
            ("run_cmd", "npm install"),
        ],
    );
    let file = skill_file(&skill_folder(&skill), &skill);
    assert_eq!(file.path, "deploy-app/SKILL.md");
    assert_eq!(
        file.text,
        "---\nname: deploy-app\ndescription: \"deploy Next.js app to Vercel\"\n\
         task_type: \"deploy_app\"\n---\n\ndeploy Next.js app to Vercel\n\n## Steps\n\n\
         1. `create_repo`: create repo from template\n2. `run_cmd`: npm install\n\n\
         ## Preferences\n\nuse pnpm if available\n"
    );
    assert_eq!(read_skill_file(&file.text).unwrap(), skill);
}

#[test]
fn others_files_are_read_as_one_step() {
    let text = "---\nname: pdf\ndescription: >-\n  Work with PDF files:\n  merge and split.\n\
                license: MIT\n---\n# PDF\n\nRun the script.\n";
    let sop = read_skill_file(text).unwrap();
    assert_eq!(sop.use_when, "Work with PDF files: merge and split.");
    assert_eq!(sop.tool_sops.len(), 1);
    assert_eq!(sop.tool_sops[0].tool, "pdf");
    assert!(sop.tool_sops[0].action.contains("Run the script."));
}

#[test]
fn what_is_no_skill_file_is_refused() {
    for (text, why) in [
        ("# Hello", "front matter"),
        ("---\nname: x\ndescription: y", "never ends"),
        ("---\ndescription: y\n---\n", "no `name`"),
        ("---\nname: x\n---\n", "no `description`"),
    ] {
        let error = read_skill_file(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text:?}: {error}");
    }
}

proptest! {
    #[test]
    fn every_skill_comes_back_from_its_file(
        use_when in "[^\\p{C}]{1,60}",
        tools in prop::collection::vec("[a-zA-Z0-9_.:/-]{1,20}", 1..6),
        action in "[^\\p{C}]{1,60}",
    ) {
        let action = action.split_whitespace().collect::<Vec<_>>().join(" ");
        let use_when = use_when.split_whitespace().collect::<Vec<_>>().join(" ");
        prop_assume!(!action.is_empty() && !use_when.is_empty());
        let steps: Vec<(&str, &str)> = tools.iter().map(|t| (t.as_str(), action.as_str())).collect();
        let skill = sop(&use_when, &steps);
        let folder = skill_folder(&skill);
        let name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        prop_assert!(!folder.is_empty() && folder.len() <= 64 && folder.chars().all(name));
        let back = read_skill_file(&skill_file(&folder, &skill).text).unwrap();
        prop_assert_eq!(back, skill);
    }

    #[test]
    fn no_text_makes_reading_panic(text in "(---\n)?(name: .{0,9}\n)?(description: .{0,9}\n)?.{0,40}") {
        let _ = read_skill_file(&text);
    }
}
