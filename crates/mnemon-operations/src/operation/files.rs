//! Operations on the files of agents and teams are tables, since most of them are one call of the
//! engine.

use mnemon_engine::agentfiles::AgentFiles;

use super::Access;

/// Access to the files of agents and teams.
pub(super) type Files<'a> = Access<'a, AgentFiles>;

/// Each row is an operation: its command and its tool, its fields, the call and the answer.
macro_rules! operations_on_files {
    ($($name:ident: $command:literal, $tool:literal, $fields:expr, $call:ident -> $answer:ty;)*) => {
        $(
            pub struct $name;

            impl $crate::operation::Operation<AgentFiles> for $name {
                const COMMAND: &'static str = $command;
                const TOOL: &'static str = $tool;
                type Answer = $answer;

                fn fields() -> Vec<Field> {
                    $fields
                }

                async fn run(access: &Files<'_>, arguments: Arguments) -> Result<$answer, Error> {
                    $call(access, arguments).await
                }
            }
        )*

        /// The table, for a test that compares the interfaces.
        pub fn definitions() -> Vec<$crate::operation::Definition> {
            vec![$($crate::operation::Definition::of::<$name, _>()),*]
        }
    };
}

pub(super) use operations_on_files;
