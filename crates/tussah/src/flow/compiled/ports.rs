//! Checks of the ports of instances in compiled graphs.

use std::marker::PhantomData;

use tussah_weave::Body;

use super::{Message, contains, is_same};
use crate::flow::module::{HasInput, HasOutput};

/// An input port of a module.
pub struct InputSpec {
    /// The name.
    pub name: &'static str,
    /// The type of the items as written in the `impl` block.
    pub spelled: &'static str,
    /// The names of the fields of the items.
    pub fields: &'static [&'static str],
}

/// An output port of a module.
pub struct OutputSpec {
    /// The name.
    pub name: &'static str,
    /// True if the port must have an edge.
    pub required: bool,
}

/// Returns an error if no edge leads to an instance, or if one of its required outputs lacks an
/// edge. `connected` lists the name of the output at which each edge begins. If an edge begins at
/// an output that does not exist, this function reports no missing outputs: the name may be a
/// misspelling of a required one. Such an edge causes a separate error.
#[must_use]
pub const fn unconnected(
    inputs: &[InputSpec],
    outputs: &[OutputSpec],
    place: &str,
    instance: &str,
    has_input: bool,
    connected: &[&str],
) -> Option<Message> {
    if !inputs.is_empty() && !has_input {
        let message = Message::new(place).and("no edge leads to `");
        return Some(message.and(instance).and("`"));
    }
    let (mut at, mut missing, mut known) = (0, 0, 0);
    while at < outputs.len() {
        match contains(connected, outputs[at].name) {
            true => known += 1,
            false if outputs[at].required => missing += 1,
            false => {}
        }
        at += 1;
    }
    if missing == 0 || known < connected.len() {
        return None;
    }
    let message = Message::new(place).and("the output");
    let mut message = message.and(if missing == 1 { " " } else { "s " });
    let mut is_first = true;
    at = 0;
    while at < outputs.len() {
        if outputs[at].required && !contains(connected, outputs[at].name) {
            message = message.and_listed(outputs[at].name, is_first);
            is_first = false;
        }
        at += 1;
    }
    Some(
        message
            .and("` of `")
            .and(instance)
            .and("` must be connected"),
    )
}

/// An edge from the output `OUT` of the module `F` to the input `IN` of the module `T`.
pub struct Between<F, const OUT: u64, T, const IN: u64>(PhantomData<fn(F, T)>);

/// The items at the two ends of an edge. If `KNOWN` is false, one of the ports does not exist. The
/// items are then the same, because another error names the port.
pub trait Joins<const KNOWN: bool> {
    /// The items that the output sends.
    type Sent;
    /// The items that the input takes.
    type Taken;
    /// False if a generic module cannot clone the items of its output.
    const CLONES: bool;
}

impl<F, const OUT: u64, T, const IN: u64> Joins<true> for Between<F, OUT, T, IN>
where
    F: HasOutput<OUT>,
    T: HasInput<IN>,
{
    type Sent = F::Item;
    type Taken = T::Item;
    const CLONES: bool = F::CLONES;
}

impl<F, const OUT: u64, T, const IN: u64> Joins<false> for Between<F, OUT, T, IN> {
    type Sent = ();
    type Taken = ();
    const CLONES: bool = true;
}

/// Returns an error if an instance has no port of this name. `kind` says which ports count.
#[must_use]
pub const fn unknown_port(
    inputs: &[InputSpec],
    outputs: &[OutputSpec],
    place: &str,
    instance: &str,
    kind: &str,
    port: &str,
) -> Option<Message> {
    let (count, mut at) = (inputs.len() + outputs.len(), 0);
    while at < count {
        if is_same(name_of(inputs, outputs, at), port) {
            return None;
        }
        at += 1;
    }
    let message = Message::new(place).and("`").and(instance);
    let message = message.and("` has no ").and(kind).and(" `").and(port);
    let (mut message, mut at) = (message.and("`: expected "), 0);
    while at < count {
        message = message.and_listed(name_of(inputs, outputs, at), at == 0);
        at += 1;
    }
    Some(message.and(if count == 0 { "none" } else { "`" }))
}

/// Returns the name of a port. The outputs follow the inputs.
const fn name_of(inputs: &[InputSpec], outputs: &[OutputSpec], at: usize) -> &'static str {
    match at < inputs.len() {
        true => inputs[at].name,
        false => outputs[at - inputs.len()].name,
    }
}

/// Returns an error if an instance with shards has no input, or if the items of an input lack the
/// field that chooses the shard. `module` is the name of the module as the graph spells it.
#[must_use]
pub const fn wrong_shards(
    inputs: &[InputSpec],
    place: &str,
    module: &str,
    field: Option<&str>,
) -> Option<Message> {
    if inputs.is_empty() {
        let message = "a source has no shards: it receives no items to divide";
        return Some(Message::new(place).and(message));
    }
    let Some(field) = field else {
        return None;
    };
    let mut at = 0;
    while at < inputs.len() {
        let InputSpec {
            name,
            spelled,
            fields,
        } = &inputs[at];
        if !contains(fields, field) {
            let message = Message::new(place).and("`").and(spelled);
            let message = message.and("`, the item of the input `").and(name);
            let message = message.and("` of `").and(module);
            let message = message
                .and("`, has no field `")
                .and(field)
                .and("`: expected ");
            if fields.is_empty() {
                return Some(message.and("a type that implements `Fields`"));
            }
            let (mut message, mut at) = (message, 0);
            while at < fields.len() {
                message = message.and_listed(fields[at], at == 0);
                at += 1;
            }
            return Some(message.and("`"));
        }
        at += 1;
    }
    None
}

/// Returns an error if an instance that is to be called or fused needs a queue. An instance that
/// keeps state for each flow, or whose output is ordered, needs a queue only in a fused chain.
#[must_use]
pub const fn needs_queue(
    body: Body,
    has_flows: bool,
    is_ordered: bool,
    place: &str,
    instance: &str,
    is_fused: bool,
) -> Option<Message> {
    let why = match body {
        Body::Async => "it awaits",
        Body::Blocking => "it blocks its OS thread",
        Body::Plain if is_fused && has_flows => "it keeps state for each flow",
        Body::Plain if is_fused && is_ordered => "the order of its output is that of its queue",
        Body::Plain => return None,
    };
    let message = Message::new(place)
        .and("`")
        .and(instance)
        .and("` cannot be ");
    let (what, help) = match is_fused {
        true => ("fused: ", "; leave `fuse` out, so that a queue leads to it"),
        false => (
            "called: ",
            "; leave `via call` out, so that a queue leads to it",
        ),
    };
    Some(message.and(what).and(why).and(help))
}
