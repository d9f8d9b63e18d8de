//! The arguments of a command, made from the fields of its operation.

use std::marker::PhantomData;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches};
use mnemon_core::Invalid;
use mnemon_engine::Memory;
use serde_json::{Map, Value, json};

use super::door::Door;
use super::input;
use crate::Error;
use crate::operation::{Access, Arguments, Field, Interface, Operation, Shape, Spelling};

/// The arguments of an operation as they were given.
#[derive(Debug)]
pub(super) struct Shared<O> {
    given: Map<String, Value>,
    operation: PhantomData<fn() -> O>,
}

/// An operation whose answer a command prints.
pub(super) trait Printed: Operation {
    /// The answer as text for people.
    fn print(answer: &Self::Answer, door: &mut Door) -> Result<(), Error>;
}

fn fields<O: Operation>() -> impl Iterator<Item = Field> {
    let fields = O::fields().into_iter();
    fields.filter(|field| field.is_on(Interface::CommandLine))
}

impl<O: Operation> Shared<O> {
    /// Calls the operation and prints its answer.
    pub(super) async fn run(self, door: &mut Door) -> Result<(), Error>
    where
        O: Printed,
    {
        self.run_as(|answer| json!(answer), door).await
    }

    /// The same with a JSON form of its own.
    pub(super) async fn run_as(
        self,
        json: impl Fn(&O::Answer) -> Value,
        door: &mut Door,
    ) -> Result<(), Error>
    where
        O: Printed,
    {
        let answer = self.call(door).await?;
        return_json!(door, &json(&answer));
        O::print(&answer, door)
    }

    /// Calls the operation.
    pub(super) async fn call(self, door: &Door) -> Result<O::Answer, Error> {
        call::<O>(self.arguments()?, door).await
    }

    /// The same for each value of the field that may be given several times.
    pub(super) async fn call_each(
        self,
        name: &str,
        door: &mut Door,
        mut done: impl FnMut(O::Answer, &mut Door) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut given = self.given;
        let each = match given.remove(name) {
            Some(Value::Array(values)) => values.into_iter().map(Some).collect(),
            _ => vec![None],
        };
        for value in each {
            let mut given = given.clone();
            given.extend(value.map(|value| (name.to_owned(), value)));
            let one = Self {
                given,
                operation: PhantomData,
            };
            done(one.call(door).await?, door)?;
        }
        Ok(())
    }

    /// The text of the one field that may be given beside this option.
    pub(super) fn only(self, name: &str, option: &str) -> Result<Option<String>, Invalid> {
        let mut others = self.given.keys().filter(|given| *given != name);
        if let Some(other) = others.next() {
            let other = spelling(&O::fields(), other).unwrap_or_default();
            let what = format!("is given together with {other}; use one of the two");
            return Err(Invalid::new(option, what));
        }
        let value = self.given.get(name).and_then(Value::as_str);
        Ok(value.map(str::to_owned))
    }

    /// Checked by the same rules as those of every other interface.
    pub(super) fn arguments(mut self) -> Result<Arguments, Error> {
        let fields: Vec<Field> = fields::<O>().collect();
        let spelled = |error: Error| error.spelling(|name| spelling(&fields, name));
        for field in &fields {
            let value = self.given.remove(field.name);
            if let Some(value) = self.read(field, value).map_err(spelled)? {
                self.given.insert(field.name.to_owned(), value);
            }
        }
        Ok(Arguments::check_on(
            Interface::CommandLine,
            &fields,
            self.given,
        )?)
    }

    /// The value of a field: the text on stdin, or the object that pairs make up, where it says so.
    fn read(&self, field: &Field, value: Option<Value>) -> Result<Option<Value>, Error> {
        let is_missing = |other: &str| !self.given.contains_key(other);
        let text = value.as_ref().and_then(Value::as_str);
        Ok(match (&field.shape, text) {
            (_, Some("-")) if field.is_piped => Some(input::stdin()?.into()),
            (_, None) if field.is_piped && field.alternative.is_some_and(is_missing) => {
                Some(input::piped(field.name, O::COMMAND)?.into())
            }
            (Shape::Object, _) if value.as_ref().is_some_and(Value::is_array) => {
                value.map(|value| object(field, &value)).transpose()?
            }
            _ => value,
        })
    }
}

/// Calls an operation for the user of the command line.
pub(super) async fn call<O: Operation>(
    arguments: Arguments,
    door: &Door,
) -> Result<O::Answer, Error> {
    call_on::<O>(&door.memory()?, arguments, door).await
}

/// The same for a memory that is open already.
pub(super) async fn call_on<O: Operation>(
    memory: &Memory,
    arguments: Arguments,
    door: &Door,
) -> Result<O::Answer, Error> {
    let access = Access {
        memory,
        ctx: &door.ctx()?,
        user: None,
        is_tool: false,
    };
    let answer = O::run(&access, arguments).await;
    answer.map_err(|error| error.spelling(|name| spelling(&O::fields(), name)))
}

/// The command line's name for a field.
fn spelling(fields: &[Field], name: &str) -> Option<String> {
    let mut named = fields.iter().filter(|field| field.name == name);
    named
        .next()
        .map(|field| field.spelled(Interface::CommandLine))
}

/// Metadata from `KEY=VALUE` pairs and JSON objects.
fn object(field: &Field, given: &Value) -> Result<Value, Error> {
    let name = field.name;
    let mut object = Map::new();
    let given = given.as_array().into_iter().flatten();
    for (at, text) in given.filter_map(Value::as_str).enumerate() {
        let pairs = match text.trim_start().starts_with(['{', '[']) {
            true => serde_json::from_str(text)
                .map_err(|error| Invalid::new(name, format!("is not a JSON object: {error}")))?,
            false => match text.split_once('=') {
                Some((key, value)) => Map::from_iter([(key.to_owned(), json!(value))]),
                None => {
                    // The text is not repeated: it may be a value alone, and that a secret.
                    let what =
                        format!("number {} has no `=`; write {}", at + 1, field.value_name());
                    return Err(Invalid::new(name, what).into());
                }
            },
        };
        for (key, value) in pairs {
            if object.contains_key(&key) {
                let what = format!("`{}` is given twice", key.escape_debug());
                return Err(Invalid::new(name, what).into());
            }
            object.insert(key, value);
        }
    }
    Ok(Value::Object(object))
}

/// The words of a text behind its first, and those behind `--`.
fn more_words(field: &Field) -> [String; 2] {
    [format!("{}…", field.name), format!("{}--", field.name)]
}

impl<O: Operation> clap::Args for Shared<O> {
    fn augment_args(command: clap::Command) -> clap::Command {
        fields::<O>().fold(command, |command, field| command.args(arguments(&field)))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

fn arguments(field: &Field) -> Vec<Arg> {
    let option = field.option_name();
    let mut arg = Arg::new(field.name)
        .help(help(field))
        .required(field.is_required && !matches!(field.spelling, Spelling::Option(_)))
        .value_name(field.value_name());
    if let Some(heading) = field.heading {
        arg = arg.help_heading(heading);
    }
    arg = match &field.shape {
        Shape::Flag => arg.action(ArgAction::SetTrue),
        Shape::Choice(words) => arg.value_parser(PossibleValuesParser::new(words)),
        Shape::Texts { .. } | Shape::Words { .. } | Shape::Object => arg.action(ArgAction::Append),
        Shape::Whole { .. } | Shape::Number { .. } => arg.allow_negative_numbers(true),
        _ => arg,
    };
    match field.spelling {
        Spelling::Option(_) => {
            let aliases = field.aliases.iter().map(|alias| alias.replace('_', "-"));
            let aliases: Vec<String> = aliases.filter(|alias| *alias != option).collect();
            vec![arg.long(option).aliases(aliases)]
        }
        Spelling::Positional => vec![arg],
        Spelling::Each => vec![arg.num_args(1..).action(ArgAction::Append)],
        Spelling::Words => words(field, arg),
    }
}

/// The documentation of the field, with what only the command line needs to say.
fn help(field: &Field) -> String {
    let mut help = field.about.to_owned();
    match &field.shape {
        Shape::Whole { min, max } => help.push_str(&format!(", from {min} to {max}")),
        Shape::Number { min, max } if !help.contains("0") => {
            help.push_str(&format!(", from {min} to {max}"));
        }
        Shape::Texts { .. } | Shape::Words { .. } | Shape::Object => {
            help.push_str("; repeat for several");
        }
        _ => {}
    }
    match (field.is_piped, field.alternative) {
        (true, None) => help.push_str("; - reads it from stdin"),
        (true, Some(_)) => help.push_str("; without it, or with -, it is read from stdin"),
        _ => {}
    }
    match field.default {
        Some(default) => format!("{help} [default: {default}]"),
        None => help,
    }
}

/// The first word may begin with a dash if it has spaces, so that a list item is a text. That can
/// only be allowed for an argument with one value: clap takes everything behind for more of them.
fn words(field: &Field, arg: Arg) -> Vec<Arg> {
    let [more, behind_dashes] = more_words(field);
    let required = arg.is_required_set();
    let first = arg
        .allow_hyphen_values(true)
        .value_parser(text_value)
        .required(false);
    let first = match required {
        true => first.required_unless_present(behind_dashes.clone()),
        false => first,
    };
    let hidden = |id: String| Arg::new(id).hide(true).num_args(1..);
    vec![first, hidden(more), hidden(behind_dashes).last(true)]
}

/// A text, unless it looks like an option.
pub(super) fn text_value(text: &str) -> Result<String, String> {
    let is_option = text.starts_with('-')
        && text.chars().any(char::is_alphabetic)
        && !text.contains(char::is_whitespace);
    match is_option {
        true => Err(
            "there is no such option; write `--` before text that begins with a dash".to_owned(),
        ),
        false => Ok(text.to_owned()),
    }
}

impl<O: Operation> clap::FromArgMatches for Shared<O> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = fields::<O>().filter_map(|field| {
            let value = given(&field, matches)?;
            Some((field.name.to_owned(), value))
        });
        Ok(Self {
            given: given.collect(),
            operation: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn given(field: &Field, matches: &ArgMatches) -> Option<Value> {
    let texts = |id: &str| -> Vec<String> {
        let texts = matches.get_many::<String>(id);
        texts.into_iter().flatten().cloned().collect()
    };
    match (&field.shape, field.spelling) {
        (Shape::Flag, _) => matches.get_flag(field.name).then_some(Value::Bool(true)),
        (_, Spelling::Words) => {
            let [more, behind_dashes] = more_words(field);
            let words = [texts(field.name), texts(&more), texts(&behind_dashes)].concat();
            (!words.is_empty()).then(|| words.join(" ").into())
        }
        (Shape::Texts { .. } | Shape::Words { .. } | Shape::Object, _) | (_, Spelling::Each) => {
            let texts = texts(field.name);
            (!texts.is_empty()).then(|| json!(texts))
        }
        _ => Some(texts(field.name).into_iter().next()?.into()),
    }
}
