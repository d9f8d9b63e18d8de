//! The arguments of a command, made from the fields of its operation.

use std::marker::PhantomData;
use std::sync::Arc;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches};
use mnemon_core::Invalid;
use mnemon_engine::Memory;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::door::Door;
use super::{input, progress};
use mnemon_operations::Error;
use mnemon_operations::operation::routes::{Routed, Target};
use mnemon_operations::operation::{
    self, Access, Arguments, Field, Interface, Operation, Shape, Spelling, Watch, unwatched,
};

/// The arguments of an operation as they were given.
pub(super) struct Shared<O, On = Arc<Memory>> {
    given: Map<String, Value>,
    /// Fields of a JSON object, whose texts are never names of files.
    data: Map<String, Value>,
    operation: PhantomData<fn(On) -> O>,
}

impl<O, On> std::fmt::Debug for Shared<O, On> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(&self.given).finish()
    }
}

/// An answer that a command prints.
pub(super) trait Shown: Serialize {
    /// The answer as text for people.
    fn show(&self, door: &mut Door) -> Result<(), Error>;
}

fn fields<O: Operation<On>, On>() -> impl Iterator<Item = Field> {
    let fields = O::fields().into_iter();
    fields.filter(|field| field.is_on(Interface::CommandLine))
}

impl<O: Routed> Shared<O> {
    /// Calls the operation and prints its answer.
    pub(super) async fn run(self, door: &mut Door) -> Result<(), Error>
    where
        O::Answer: Shown,
    {
        let answer = self.call(door).await?;
        return_json!(door, &O::json(&answer)?);
        answer.show(door)
    }

    /// Calls the operation.
    pub(super) async fn call(self, door: &Door) -> Result<O::Answer, Error> {
        call::<O>(self.arguments()?, door).await
    }

    /// Calls an operation that may take long, and shows how far it is.
    pub(super) async fn call_long(self, door: &Door, noun: &str) -> Result<O::Answer, Error> {
        let arguments = self.arguments()?;
        let bar = progress::bar(&door.out, 0, noun);
        let watch = |done, total: Option<u64>| {
            total.into_iter().for_each(|total| bar.set_length(total));
            bar.set_position(done);
        };
        let answer = match remotely::<O, _>(arguments, door, &watch).await {
            Ok(answer) => answer,
            Err(arguments) => call_watched::<O, _>(&door.memory()?, arguments, door, &watch).await,
        };
        bar.finish_and_clear();
        answer
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
            let one = Self::of(given);
            done(one.call(door).await?, door)?;
        }
        Ok(())
    }
}

impl<O: Routed<On>, On: Target> Shared<O, On> {
    /// Calls the operation on these files, or those of the server, and prints its answer.
    pub(super) async fn run_on(self, files: &On, door: &mut Door) -> Result<(), Error>
    where
        O::Answer: Shown,
    {
        let answer = self.call_on(files, door).await?;
        return_json!(door, &O::json(&answer)?);
        answer.show(door)
    }

    /// Calls the operation on these files, or those of the server.
    pub(super) async fn call_on(self, files: &On, door: &Door) -> Result<O::Answer, Error> {
        let arguments = self.arguments()?;
        match remotely::<O, _>(arguments, door, &unwatched).await {
            Ok(answer) => answer,
            Err(arguments) => call_on::<O, _>(files, arguments, door).await,
        }
    }
}

impl<O: Operation<On>, On> Shared<O, On> {
    fn of(given: Map<String, Value>) -> Self {
        Self {
            given,
            data: Map::new(),
            operation: PhantomData,
        }
    }

    /// The fields of a JSON object, beside those that are given as options.
    pub(super) fn with_json(mut self, field: &str, json: &str) -> Result<Self, Invalid> {
        let Value::Object(data) = json_of(field, json)? else {
            return Err(Invalid::new(field, "is not a JSON object"));
        };
        self.data = data;
        Ok(self)
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
        let fields: Vec<Field> = fields::<O, On>().collect();
        let spelled = |error: Error| error.spelling(|name| spelling(&fields, name));
        for field in &fields {
            let value = self.given.remove(field.name);
            if let Some(value) = self.read(field, value).map_err(spelled)? {
                self.given.insert(field.name.to_owned(), value);
            }
        }
        let mut all = self.data;
        all.extend(self.given);
        Ok(Arguments::check_on(Interface::CommandLine, &fields, all)?)
    }

    /// The value of a field: the text on stdin, or the object that pairs make up, where it says so.
    fn read(&self, field: &Field, value: Option<Value>) -> Result<Option<Value>, Error> {
        let is_missing = |other: &&str| !self.given.contains_key(*other);
        let is_needed = |field: &Field| match field.alternatives {
            [] => false,
            others => others.iter().all(is_missing),
        };
        match value {
            Some(value) => opened(field, value).map(Some),
            None if field.is_piped && is_needed(field) => {
                Ok(Some(input::piped(field.name, O::COMMAND)?.into()))
            }
            None => Ok(None),
        }
    }
}

/// The value of a field with the texts that are on stdin or in files, and the objects that pairs
/// make up.
fn opened(field: &Field, value: Value) -> Result<Value, Error> {
    Ok(match (&field.shape, value) {
        (Shape::Object, pairs @ Value::Array(_)) => object(field, &pairs)?,
        (Shape::List { .. }, Value::Array(items)) => {
            let items = items.into_iter().map(|item| opened(field, item));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        (_, Value::Object(mut parts)) => {
            for part in field.inner() {
                if let Some(value) = parts.remove(part.name) {
                    parts.insert(part.name.to_owned(), opened(part, value)?);
                }
            }
            Value::Object(parts)
        }
        (shape, Value::String(text)) if field.is_from_file => {
            let text = input::given_or_file(&text)?;
            match shape {
                Shape::Json | Shape::Parts(_) | Shape::List { .. } => json_of(field.name, &text)?,
                _ => text.into(),
            }
        }
        (_, Value::String(text)) if field.is_piped => input::given(&text)?.into(),
        (_, value) => value,
    })
}

/// Calls an operation for the user of the command line, here or on the server.
pub(super) async fn call<O: Routed>(arguments: Arguments, door: &Door) -> Result<O::Answer, Error> {
    match remotely::<O, _>(arguments, door, &unwatched).await {
        Ok(answer) => answer,
        Err(arguments) => call_on::<O, _>(&door.memory()?, arguments, door).await,
    }
}

/// The same for an operation that finds what agents and teams wrote into their files, too.
pub(super) async fn call_with_files<O: Routed>(
    arguments: Arguments,
    door: &Door,
) -> Result<O::Answer, Error> {
    match remotely::<O, _>(arguments, door, &unwatched).await {
        Ok(answer) => answer,
        Err(arguments) => {
            let memory = door.memory_with_files().await?;
            call_on::<O, _>(&memory, arguments, door).await
        }
    }
}

/// The answer of the server; the arguments again if none is named.
pub(super) async fn remotely<O: Routed<On>, On: Target>(
    arguments: Arguments,
    door: &Door,
    watch: Watch<'_>,
) -> Result<Result<O::Answer, Error>, Arguments> {
    let Some(remote) = &door.remote else {
        return Err(arguments);
    };
    let answer = remote.call::<O, On>(arguments, &door.out.notices, watch);
    let answer = answer.await;
    Ok(answer.map_err(|error| error.spelling(|name| spelling(&O::fields(), name))))
}

/// Calls a part of another operation, which needs this machine's store.
pub(super) async fn open<O: Operation>(
    arguments: Arguments,
    door: &Door,
) -> Result<O::Answer, Error> {
    call_on::<O, _>(&door.memory()?, arguments, door).await
}

/// The same for a memory that is open already.
pub(super) async fn call_on<O: Operation<On>, On: Sync>(
    memory: &On,
    arguments: Arguments,
    door: &Door,
) -> Result<O::Answer, Error> {
    call_watched::<O, On>(memory, arguments, door, &unwatched).await
}

async fn call_watched<O: Operation<On>, On: Sync>(
    memory: &On,
    arguments: Arguments,
    door: &Door,
    watch: Watch<'_>,
) -> Result<O::Answer, Error> {
    let access = Access {
        memory,
        ctx: &door.ctx()?,
        config: &door.config,
        interface: Interface::CommandLine,
        user: None,
        agent: None,
        own_only: false,
        watch,
    };
    let answer = operation::call::<O, On>(&access, arguments).await;
    answer.map_err(|error| error.spelling(|name| spelling(&O::fields(), name)))
}

/// The command line's name for a field.
fn spelling(fields: &[Field], name: &str) -> Option<String> {
    let parts = fields
        .iter()
        .filter(|field| field.spelling == Spelling::Parts);
    let mut all = fields.iter().chain(parts.flat_map(Field::inner));
    let named = all.find(|field| field.name == name)?;
    Some(named.spelled(Interface::CommandLine))
}

fn json_of(field: &str, text: &str) -> Result<Value, Invalid> {
    let json = serde_json::from_str(text);
    json.map_err(|error| Invalid::new(field, format!("is not JSON: {error}")))
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

impl<O: Operation<On>, On> clap::Args for Shared<O, On> {
    fn augment_args(command: clap::Command) -> clap::Command {
        fields::<O, On>().fold(command, |command, field| command.args(arguments(&field)))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

fn arguments(field: &Field) -> Vec<Arg> {
    if field.spelling == Spelling::Parts {
        // A part is required only where the object is given.
        let parts = field.inner().iter().cloned().map(Field::optional);
        let named = parts.flat_map(|part| arguments(&part)).map(|arg| {
            let id = part_id(field.name, arg.get_id().as_str());
            arg.id(id)
        });
        return named.collect();
    }
    let option = field.option_name();
    let is_option = matches!(field.spelling, Spelling::Option(_));
    let is_required = field.is_required_on(Interface::CommandLine) && !is_option;
    let mut arg = Arg::new(field.name)
        .help(help(field))
        .required(is_required)
        .value_name(field.value_name());
    if let Some(heading) = field.heading {
        arg = arg.help_heading(heading);
    }
    arg = match &field.shape {
        Shape::Flag => arg.action(ArgAction::SetTrue),
        Shape::Choice(words) => arg.value_parser(PossibleValuesParser::new(words)),
        Shape::Choices(words) => {
            let words = PossibleValuesParser::new(words);
            arg.value_parser(words).action(ArgAction::Append)
        }
        Shape::Texts { .. } | Shape::Words { .. } | Shape::Object => arg.action(ArgAction::Append),
        Shape::Whole { .. } | Shape::Number { .. } => arg.allow_negative_numbers(true),
        Shape::List { of, .. } if matches!(field.spelling, Spelling::Values(_)) => {
            let least = of
                .iter()
                .filter(|part| part.is_required_on(Interface::CommandLine))
                .count();
            arg.action(ArgAction::Append)
                .num_args(least..=of.len())
                .value_names(of.iter().map(Field::value_name))
                // With a free last value the next option would be taken for it.
                .allow_hyphen_values(least == of.len())
        }
        _ => arg,
    };
    match field.spelling {
        Spelling::Option(_) | Spelling::Values(_) => {
            let aliases = field.aliases.iter().map(|alias| alias.replace('_', "-"));
            let aliases: Vec<String> = aliases.filter(|alias| *alias != option).collect();
            let mut arg = arg.long(option).aliases(aliases);
            if let Some(letter) = field.short {
                arg = arg.short(letter);
            }
            vec![match field.is_prose {
                true => arg.allow_hyphen_values(true).value_parser(option_text),
                false => arg,
            }]
        }
        Spelling::Positional | Spelling::Parts => vec![arg],
        Spelling::Each => vec![arg.num_args(1..).action(ArgAction::Append)],
        Spelling::Words => words(field, arg),
    }
}

/// The documentation of the field, with what only the command line needs to say.
fn help(field: &Field) -> String {
    let mut help = field.about.to_owned();
    match &field.shape {
        // That is any number.
        Shape::Whole { max, .. } if *max == u64::from(u32::MAX) => {}
        Shape::Whole { min, max } => help.push_str(&format!(", from {min} to {max}")),
        Shape::Number { min, max } if !help.contains("0") => {
            help.push_str(&format!(", from {min} to {max}"));
        }
        Shape::Texts { .. } | Shape::Words { .. } | Shape::Choices(_) | Shape::Object => {
            if let Spelling::Option(_) = field.spelling {
                help.push_str("; repeat for several");
            }
        }
        Shape::List { .. } if matches!(field.spelling, Spelling::Values(_)) => {
            help.push_str("; repeat for several");
        }
        _ => {}
    }
    if field.inner().iter().any(|part| part.is_from_file) && !field.is_from_file {
        help.push_str("; - as TEXT reads it from stdin, @PATH from a file");
    }
    match (field.is_piped, field.alternatives) {
        _ if field.is_from_file => help.push_str("; - reads it from stdin, @PATH from a file"),
        (true, []) => help.push_str("; - reads it from stdin"),
        (true, _) => help.push_str("; without it, or with -, it is read from stdin"),
        _ => {}
    }
    let is_option = matches!(field.spelling, Spelling::Option(_));
    match field.default {
        Some(default) => format!("{help} [default: {default}]"),
        None if field.is_required_on(Interface::CommandLine) && is_option => {
            format!("{help} [required]")
        }
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
fn text_value(text: &str) -> Result<String, String> {
    let else_write = "there is no such option; write `--` before text that begins with a dash";
    plain_text(text, else_write)
}

/// The same for the value of an option.
fn option_text(text: &str) -> Result<String, String> {
    plain_text(
        text,
        "is an option; text that begins with a dash must have a space",
    )
}

fn plain_text(text: &str, else_write: &str) -> Result<String, String> {
    let is_option = text.starts_with('-')
        && !text.chars().nth(1).is_some_and(|c| c.is_ascii_digit())
        && text.chars().any(char::is_alphabetic)
        && !text.contains(char::is_whitespace);
    match is_option {
        true => Err(else_write.to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// The id of the argument for a part of an object.
pub(crate) fn part_id(object: &str, part: &str) -> String {
    format!("{object}.{part}")
}

impl<O: Operation<On>, On> clap::FromArgMatches for Shared<O, On> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = fields::<O, On>().filter_map(|field| {
            let value = given(&field, field.name, matches)?;
            Some((field.name.to_owned(), value))
        });
        Ok(Self::of(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn given(field: &Field, id: &str, matches: &ArgMatches) -> Option<Value> {
    let texts = |id: &str| -> Vec<String> {
        let texts = matches.get_many::<String>(id);
        texts.into_iter().flatten().cloned().collect()
    };
    match (&field.shape, field.spelling) {
        (Shape::Flag, _) => matches.get_flag(id).then_some(Value::Bool(true)),
        (_, Spelling::Parts) => {
            let parts = field.inner().iter().filter_map(|part| {
                let value = given(part, &part_id(id, part.name), matches)?;
                Some((part.name.to_owned(), value))
            });
            let parts: Map<String, Value> = parts.collect();
            (!parts.is_empty()).then(|| parts.into())
        }
        (_, Spelling::Values(_)) => {
            let names = || field.inner().iter().map(|part| part.name.to_owned());
            let groups = matches.get_occurrences::<String>(id)?;
            let objects = groups.map(|values| {
                let values = values.map(|value| Value::from(value.as_str()));
                names().zip(values).collect::<Map<_, _>>()
            });
            Some(objects.collect())
        }
        (_, Spelling::Words) => {
            let [more, behind_dashes] = more_words(field);
            let words = [texts(field.name), texts(&more), texts(&behind_dashes)].concat();
            (!words.is_empty()).then(|| words.join(" ").into())
        }
        (Shape::Texts { .. } | Shape::Words { .. } | Shape::Choices(_) | Shape::Object, _)
        | (_, Spelling::Each) => {
            let texts = texts(id);
            (!texts.is_empty()).then(|| json!(texts))
        }
        _ => Some(texts(id).into_iter().next()?.into()),
    }
}
