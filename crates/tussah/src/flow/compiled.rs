//! Compiled graphs, and the checks of their arguments. The compiler evaluates the functions of the
//! checks, and reports their messages as errors.

pub(super) mod ports;

use std::marker::PhantomData;

use tussah_weave::{Kind, Type};

use super::args::Args;
use super::error::WeaveError;
use super::graph::Graph;
use super::module::HasParam;
use super::modules::{Modules, Params};

impl Modules {
    /// Creates a compiled graph. `self` need not contain the modules that the Weave text uses only
    /// in other graphs or in tests.
    ///
    /// Any Rust type is accepted for an argument, because rustc has already checked the arguments.
    /// Only rustc knows whether two spellings, such as a type and its alias, denote the same type.
    ///
    /// # Errors
    /// Returns an error if a parameter of the graph has no value, or an invalid one.
    #[doc(hidden)]
    pub fn compiled(
        mut self,
        file: &str,
        text: &str,
        graph: &str,
        params: &Params,
    ) -> Result<Graph, WeaveError> {
        let signatures = self.signatures.signatures.values_mut();
        for param in signatures.flat_map(|signature| &mut signature.params) {
            if let Kind::Rust(of) = &mut param.kind {
                *of = Type::new("_");
            }
        }
        self.read(file, text, &params.clone().graph(graph), Some(graph))
    }
}

/// A parameter of a module.
pub struct ParamSpec {
    /// The name.
    pub name: &'static str,
    /// The kind of the parameter in Weave, or `None` if its type has no kind.
    pub kind: Option<Kind>,
    /// The type as written in the `impl` block.
    pub spelled: &'static str,
    /// The least and the greatest number that the parameter accepts.
    pub range: (f64, f64),
    /// The texts that the parameter accepts. If it is empty, any text is accepted.
    pub words: &'static [&'static str],
    /// True if the type is a [`FieldName`](super::FieldName), so that `words` are the fields of its
    /// item type.
    pub names_field: bool,
    /// True if the argument may be omitted.
    pub optional: bool,
    /// Returns an error if the argument is missing, or does not fit the parameter.
    pub check: fn(&Args) -> Result<(), String>,
}

/// An argument of an instance.
pub struct Given {
    /// The position in the file, followed by a separator; empty if the compiler shows the position.
    pub place: &'static str,
    /// The name of the module.
    pub module: &'static str,
    /// The number of positional arguments before this one.
    pub before: usize,
    /// The name of the argument, if it has one.
    pub name: Option<&'static str>,
    /// The possible kinds of the value. Empty if the value has a Rust type; a trait then checks
    /// that type.
    pub kinds: &'static [&'static str],
    /// The kind or the type of the value.
    pub found: &'static str,
    /// The value in Weave's syntax, if it is constant.
    pub value: &'static str,
    /// The number in the value, if it is constant and has one. That of a duration is in seconds.
    pub number: Option<f64>,
    /// The value, if it is a constant text.
    pub text: Option<&'static str>,
}

/// Bound, in bytes: the maximum length of a compiler error about an argument. Further names are
/// omitted.
const MESSAGE_MAX: usize = 1024;

/// A compiler error message that is built at compile time.
pub struct Message {
    bytes: [u8; MESSAGE_MAX],
    len: usize,
}

impl Message {
    const fn new(place: &str) -> Self {
        let empty = Self {
            bytes: [0; MESSAGE_MAX],
            len: 0,
        };
        empty.and(place)
    }

    /// Appends a string, or omits it if there is no room.
    const fn and(mut self, text: &str) -> Self {
        let text = text.as_bytes();
        if text.len() <= MESSAGE_MAX - self.len {
            let (_, rest) = self.bytes.split_at_mut(self.len);
            rest.split_at_mut(text.len()).0.copy_from_slice(text);
            self.len += text.len();
        }
        self
    }

    /// Appends a name to a list. The backquote after the last name is left to the caller.
    const fn and_listed(self, name: &str, is_first: bool) -> Self {
        self.and(if is_first { "`" } else { "`, `" }).and(name)
    }

    /// Appends a list of words, each in quotes.
    const fn and_words(self, words: &[&str]) -> Self {
        let mut message = self;
        let mut at = 0;
        while at < words.len() {
            let is_last = at + 1 == words.len();
            let joint = match at {
                0 => "",
                _ if is_last => " or ",
                _ => ", ",
            };
            message = message.and(joint).and("\"").and(words[at]).and("\"");
            at += 1;
        }
        message
    }

    /// Appends a number.
    const fn and_number(self, number: u64) -> Self {
        let message = match number / 10 {
            0 => self,
            rest => self.and_number(rest),
        };
        match str::from_utf8(&[b'0' + (number % 10) as u8]) {
            Ok(digit) => message.and(digit),
            Err(_) => unreachable!(),
        }
    }

    /// Returns the text.
    #[must_use]
    pub const fn text(&self) -> &str {
        match str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => unreachable!(),
        }
    }
}

/// Returns an error if an argument matches no parameter, is given twice, is of the wrong kind, or
/// is a constant that is out of range.
#[must_use]
pub const fn wrong_argument(params: &[ParamSpec], given: &Given) -> Option<Message> {
    let message = Message::new(given.place);
    let place = place_of(params, given.before, given.name);
    if place >= params.len() {
        let message = message.and("`").and(given.module).and("` has ");
        let message = match given.name {
            Some(name) => message.and("no parameter `").and(name).and("`"),
            None => message.and("no parameter for this argument"),
        };
        let mut message = message.and(": expected ");
        let mut at = 0;
        while at < params.len() {
            message = message.and_listed(params[at].name, at == 0);
            at += 1;
        }
        return Some(message.and(if at == 0 { "none" } else { "`" }));
    }
    let param = &params[place];
    let message = message.and("`").and(param.name).and("` of `");
    let message = message.and(given.module);
    if given.name.is_some() && place < given.before {
        return Some(message.and("` is given twice: the first time without its name"));
    }
    match &param.kind {
        Some(kind) if contains(given.kinds, kind.name()) => param.outside(given, message),
        None if given.kinds.is_empty() => None,
        _ => {
            let message = message.and("`: expected `").and(param.kind());
            Some(message.and("`, found `").and(given.found).and("`"))
        }
    }
}

/// Returns the number of the parameter for an argument, or the number of all parameters if there is
/// none. `before` is the number of positional arguments before this one.
const fn place_of(params: &[ParamSpec], before: usize, name: Option<&str>) -> usize {
    let Some(name) = name else {
        return if before < params.len() {
            before
        } else {
            params.len()
        };
    };
    let mut place = 0;
    while place < params.len() && !is_same(params[place].name, name) {
        place += 1;
    }
    place
}

/// Returns whether there is a parameter for an argument. `before` is the number of positional
/// arguments before this one.
#[must_use]
pub const fn has_param(params: &[ParamSpec], before: usize, name: Option<&str>) -> bool {
    place_of(params, before, name) < params.len()
}

/// An argument with a value of the type `V`, for the parameter `PARAM` of the module `M`.
pub struct Argument<M, const PARAM: u64, V>(PhantomData<fn(M, V)>);

/// The type that the parameter for an argument takes. If `KNOWN` is false, there is no such
/// parameter. The type is then that of the argument, because another error names it.
pub trait Takes<const KNOWN: bool> {
    /// The type.
    type Value;
}

impl<M: HasParam<PARAM>, const PARAM: u64, V> Takes<true> for Argument<M, PARAM, V> {
    type Value = M::Value;
}

impl<M, const PARAM: u64, V> Takes<false> for Argument<M, PARAM, V> {
    type Value = V;
}

/// Returns an error if an instance lacks a required argument. `before` is the number of positional
/// arguments, which come first.
#[must_use]
pub const fn missing_arguments(
    params: &[ParamSpec],
    place: &str,
    module: &str,
    before: usize,
    names: &[&str],
) -> Option<Message> {
    let mut message = Message::new(place).and("missing argument of `").and(module);
    let (mut at, mut is_missing) = (before, false);
    while at < params.len() {
        let param = &params[at];
        if !param.optional && !contains(names, param.name) {
            message = message.and(if is_missing { "`, `" } else { "`: `" });
            message = message.and(param.name).and(": ").and(param.kind());
            is_missing = true;
        }
        at += 1;
    }
    match is_missing {
        true => Some(message.and("`")),
        false => None,
    }
}

impl ParamSpec {
    /// Returns an error if the parameter does not accept a constant.
    const fn outside(&self, given: &Given, message: Message) -> Option<Message> {
        let (least, most) = self.range;
        let message = message.and("` is ").and(given.value).and(": expected ");
        match (given.number, given.text) {
            (Some(number), _) if number < least => {
                Some(self.and_bound(message.and("at least "), least))
            }
            (Some(number), _) if number > most => {
                Some(self.and_bound(message.and("at most "), most))
            }
            (_, Some(text)) if !self.words.is_empty() && !contains(self.words, text) => {
                Some(message.and_words(self.words))
            }
            _ => None,
        }
    }

    /// Adds the least or the greatest value. That of a duration is shown in nanoseconds.
    const fn and_bound(&self, message: Message, bound: f64) -> Message {
        match self.kind {
            Some(Kind::Duration) => message.and_number((bound * 1e9 + 0.5) as u64).and(" ns"),
            _ => message.and_number(bound as u64),
        }
    }

    /// Returns the kind or the type.
    const fn kind(&self) -> &str {
        match &self.kind {
            Some(kind) => kind.name(),
            None => self.spelled,
        }
    }
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

const fn contains(names: &[&str], name: &str) -> bool {
    match names {
        [] => false,
        [first, rest @ ..] => is_same(first, name) || contains(rest, name),
    }
}
