//! A list of tasks: what waits for what, and what can start. Pure.

use std::collections::{HashMap, HashSet};

use mnemon_core::{Invalid, limits};
use serde::{Deserialize, Serialize};

use crate::records::naming::check_name;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskStatus {
    #[default]
    Pending,
    Running,
    Done,
    Failed,
    Cancelled,
}

impl TaskStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its name within the list.
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default)]
    pub status: TaskStatus,
    /// From 0 to 1.
    #[serde(default)]
    pub progress: f64,
    /// Tasks that must be done first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// The step that was logged last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Task {
    /// A task that waits for nothing.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            title: None,
            status: TaskStatus::Pending,
            progress: 0.0,
            depends_on: Vec::new(),
            step: None,
            error: None,
        }
    }

    /// The same, after these.
    #[must_use]
    pub fn after(mut self, others: &[&str]) -> Self {
        self.depends_on = others.iter().map(|&other| other.to_owned()).collect();
        self
    }

    fn check(&self) -> Result<(), Invalid> {
        check_name("tasks.id", &self.id, limits::TASK_CHARS)?;
        let wrong = |what: String| Err(Invalid::new(format!("tasks.{}", self.id), what));
        if !(0.0..=1.0).contains(&self.progress) {
            let progress = self.progress;
            return wrong(format!(
                "its progress is {progress}, it must be between 0 and 1"
            ));
        }
        if self.depends_on.len() > limits::TASK_DEPENDENCIES {
            let (count, most) = (self.depends_on.len(), limits::TASK_DEPENDENCIES);
            return wrong(format!(
                "it depends on {count} tasks, at most {most} are allowed"
            ));
        }
        Ok(())
    }
}

/// The tasks of one flow in one session. Nothing in it waits for itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskList {
    pub tasks: Vec<Task>,
}

impl TaskList {
    /// Puts the tasks into the list, each in place of the one with its name, and checks the whole.
    pub fn merge(&mut self, tasks: Vec<Task>) -> Result<(), Invalid> {
        for mut task in tasks {
            task.check()?;
            if task.status == TaskStatus::Done {
                task.progress = 1.0;
            }
            match self.tasks.iter_mut().find(|known| known.id == task.id) {
                Some(known) => *known = task,
                None => self.tasks.push(task),
            }
        }
        self.check()
    }

    /// Everything that is waited for is in the list, and nothing waits for itself.
    fn check(&self) -> Result<(), Invalid> {
        if self.tasks.len() > limits::TASKS {
            let (count, most) = (self.tasks.len(), limits::TASKS);
            let what = format!("there would be {count}, at most {most} are allowed");
            return Err(Invalid::new("tasks", what));
        }
        let known: HashSet<&str> = self.tasks.iter().map(|task| task.id.as_str()).collect();
        for task in &self.tasks {
            let unknown = task
                .depends_on
                .iter()
                .find(|id| !known.contains(id.as_str()));
            if let Some(unknown) = unknown {
                let what = format!(
                    "it waits for `{}`, which is not in the list; add that task",
                    unknown.escape_debug()
                );
                return Err(Invalid::new(format!("tasks.{}", task.id), what));
            }
        }
        match self.circle() {
            None => Ok(()),
            Some(circle) => Err(Invalid::new(
                "tasks",
                format!(
                    "depend on each other in a cycle: {}; remove one of these dependencies",
                    circle.join(" → ")
                ),
            )),
        }
    }

    /// Tasks that wait for each other, if there are any; the first comes again at the end.
    fn circle(&self) -> Option<Vec<&str>> {
        let mut waits: HashMap<&str, &[String]> = self
            .tasks
            .iter()
            .map(|task| (task.id.as_str(), task.depends_on.as_slice()))
            .collect();
        // Whoever waits for nobody that is left is taken out, until nothing changes.
        loop {
            let free: Vec<&str> = waits
                .iter()
                .filter(|(_, on)| !on.iter().any(|other| waits.contains_key(other.as_str())))
                .map(|(id, _)| *id)
                .collect();
            if free.is_empty() {
                break;
            }
            for id in free {
                waits.remove(id);
            }
        }
        // Everybody left waits for somebody left: following them comes back to where it was.
        let mut at = *waits.keys().min()?;
        let mut path = vec![at];
        loop {
            let next = waits.get(at)?.iter().map(String::as_str);
            at = next.filter(|other| waits.contains_key(other)).min()?;
            if let Some(start) = path.iter().position(|seen| *seen == at) {
                let mut circle: Vec<&str> = path.split_off(start);
                circle.push(at);
                return Some(circle);
            }
            path.push(at);
        }
    }

    /// What can start now: pending, and all that it waits for is done.
    pub fn startable(&self) -> Vec<&Task> {
        let done: HashSet<&str> = self
            .tasks
            .iter()
            .filter(|task| task.status == TaskStatus::Done)
            .map(|task| task.id.as_str())
            .collect();
        let ready = |task: &&Task| {
            let mut on = task.depends_on.iter();
            task.status == TaskStatus::Pending && on.all(|id| done.contains(id.as_str()))
        };
        self.tasks.iter().filter(ready).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(tasks: Vec<Task>) -> Result<TaskList, Invalid> {
        let mut list = TaskList::default();
        list.merge(tasks).map(|()| list)
    }

    fn ids(tasks: &[&Task]) -> Vec<String> {
        tasks.iter().map(|task| task.id.clone()).collect()
    }

    #[test]
    fn a_circle_is_refused_and_named() {
        let tasks = vec![
            Task::new("x").after(&["a"]),
            Task::new("a").after(&["b"]),
            Task::new("b").after(&["c"]),
            Task::new("c").after(&["a"]),
        ];
        let error = list(tasks).unwrap_err().to_string();
        assert!(error.contains("a → b → c → a"), "{error}");
        let itself = list(vec![Task::new("a").after(&["a"])]).unwrap_err();
        assert!(itself.to_string().contains("a → a"), "{itself}");
    }

    #[test]
    fn a_circle_made_by_a_later_change_is_refused() {
        let mut tasks = list(vec![Task::new("a"), Task::new("b").after(&["a"])]).unwrap();
        assert!(tasks.merge(vec![Task::new("a").after(&["b"])]).is_err());
    }

    #[test]
    fn an_unknown_dependency_and_bad_numbers_are_refused() {
        let error = list(vec![Task::new("a").after(&["b"])]).unwrap_err();
        assert!(error.to_string().contains("`b`"), "{error}");
        for progress in [-0.1, 1.1, f64::NAN] {
            let bad = Task {
                progress,
                ..Task::new("a")
            };
            assert!(list(vec![bad]).is_err(), "{progress}");
        }
        assert!(list(vec![Task::new(" ")]).is_err());
        let many = (0..=limits::TASKS).map(|n| Task::new(n.to_string()));
        assert!(list(many.collect()).is_err());
        let on: Vec<String> = (0..=limits::TASK_DEPENDENCIES)
            .map(|n| n.to_string())
            .collect();
        let on: Vec<&str> = on.iter().map(String::as_str).collect();
        assert!(list(vec![Task::new("a").after(&on)]).is_err());
    }

    #[test]
    fn what_is_done_lets_others_start() {
        let mut tasks = list(vec![
            Task::new("a"),
            Task::new("b").after(&["a"]),
            Task::new("c").after(&["a", "b"]),
        ])
        .unwrap();
        assert_eq!(ids(&tasks.startable()), ["a"]);
        let done = |id: &str, on: &[&str]| Task {
            status: TaskStatus::Done,
            ..Task::new(id).after(on)
        };
        tasks.merge(vec![done("a", &[])]).unwrap();
        assert_eq!(ids(&tasks.startable()), ["b"]);
        assert!((tasks.tasks[0].progress - 1.0).abs() < f64::EPSILON);
        tasks.merge(vec![done("b", &["a"])]).unwrap();
        assert_eq!(ids(&tasks.startable()), ["c"]);
    }

    proptest! {
        /// Whatever is accepted can be worked off; whatever is refused cannot.
        #[test]
        fn a_list_is_accepted_exactly_if_it_can_be_worked_off(
            edges in proptest::collection::vec((0..8_usize, 0..8_usize), 0..14)
        ) {
            let name = |n: usize| n.to_string();
            let tasks: Vec<Task> = (0..8).map(|n| Task {
                depends_on: edges.iter().filter(|(a, _)| *a == n).map(|(_, b)| name(*b)).collect(),
                ..Task::new(name(n))
            }).collect();
            let mut plain = TaskList { tasks: tasks.clone() };
            for _ in 0..8 {
                let ready = ids(&plain.startable());
                for task in &mut plain.tasks {
                    if ready.contains(&task.id) {
                        task.status = TaskStatus::Done;
                    }
                }
            }
            let finished = plain.tasks.iter().all(|task| task.status == TaskStatus::Done);
            prop_assert_eq!(list(tasks).is_ok(), finished);
        }
    }
}
