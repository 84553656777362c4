//! Signatures of modules: the manifest by which a program describes its modules.

use std::collections::BTreeMap;

use crate::domain::Domain;
use crate::types::Type;
use crate::value::Kind;

/// The modules that a graph can use.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Modules {
    /// The signatures, keyed by the full path of each module.
    pub signatures: BTreeMap<String, Signature>,
    /// The field names of each item type, keyed by the type in its `Display` form.
    #[cfg_attr(feature = "serde", serde(default))]
    pub items: BTreeMap<String, Vec<String>>,
    /// The type arguments for which each generic module exists, keyed by the full path of the
    /// module. A module without an entry exists for all types.
    #[cfg_attr(feature = "serde", serde(default))]
    pub types: BTreeMap<String, Vec<Vec<Type>>>,
    /// True if graphs can also use modules without a signature. Their arguments, ports and types
    /// are not checked.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub is_open: bool,
}

impl Modules {
    /// Returns the field names of an item type, in any of its spellings.
    pub(crate) fn fields(&self, item: &Type) -> &[String] {
        let fits = |known: &str| Type::parse(known).is_ok_and(|known| known.fits(item));
        let exact = self.items.get(&item.to_string());
        let fields = exact.or_else(|| {
            let mut items = self.items.iter();
            items.find_map(|(known, fields)| fits(known).then_some(fields))
        });
        fields.map_or(&[], Vec::as_slice)
    }

    /// Adds the signature of a module.
    pub fn insert(&mut self, signature: Signature) {
        self.signatures.insert(signature.name.clone(), signature);
    }

    /// Returns the index in [`types`](Self::types) of a module's type arguments, or 0 if the module
    /// exists for all types.
    ///
    /// # Errors
    /// Returns the reason if the module does not exist for these types, or if their spelling fits
    /// several.
    pub fn choose(&self, module: &str, types: &[Type]) -> Result<usize, String> {
        let Some(all) = self.types.get(module) else {
            return Ok(0);
        };
        let fits = |known: &[Type]| known.iter().zip(types).all(|(a, b)| a.fits(b));
        let mut found = (0..all.len()).filter(|&index| fits(&all[index]));
        let list = |types: &[Type]| {
            let types: Vec<_> = types.iter().map(Type::to_string).collect();
            format!("`{}`", types.join(", "))
        };
        match (found.next(), found.next()) {
            (Some(index), None) => Ok(index),
            (Some(one), Some(other)) => Err(format!(
                "`{module}` may be for {} or {}: expected more of the path of its type",
                list(&all[one]),
                list(&all[other])
            )),
            (None, _) => {
                let known: Vec<_> = all.iter().map(|types| list(types)).collect();
                Err(format!(
                    "the program has no `{module}` for {}: expected one of {}",
                    list(types),
                    known.join(", ")
                ))
            }
        }
    }
}

/// The interface of a module.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Signature {
    /// The full path of the module, such as `http::Listen`.
    pub name: String,
    /// The documentation.
    #[cfg_attr(feature = "serde", serde(default))]
    pub doc: String,
    /// The names of the type parameters.
    #[cfg_attr(feature = "serde", serde(default))]
    pub generics: Vec<String>,
    /// The parameters, in the order in which positional arguments are assigned to them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub params: Vec<ParamSignature>,
    /// The input ports; empty for a source.
    #[cfg_attr(feature = "serde", serde(default))]
    pub inputs: Vec<PortSignature>,
    /// The output ports, including `dropped` and `failed`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub outputs: Vec<PortSignature>,
    /// The parallelism.
    #[cfg_attr(feature = "serde", serde(default))]
    pub parallelism: Parallelism,
    /// The kind of code.
    #[cfg_attr(feature = "serde", serde(default))]
    pub body: Body,
}

impl Signature {
    /// Creates the signature of a module without ports or parameters.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            doc: String::new(),
            generics: Vec::new(),
            params: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            parallelism: Parallelism::default(),
            body: Body::default(),
        }
    }

    /// Returns the input with this name.
    #[must_use]
    pub fn input(&self, name: &str) -> Option<&PortSignature> {
        self.inputs.iter().find(|port| port.name == name)
    }

    /// Returns the output with this name.
    #[must_use]
    pub fn output(&self, name: &str) -> Option<&PortSignature> {
        self.outputs.iter().find(|port| port.name == name)
    }

    /// Returns the type of a port's items, with `types` in place of the type parameters.
    #[must_use]
    pub fn item(&self, port: &PortSignature, types: &[Type]) -> Type {
        self.replace(&port.item, types)
    }

    /// Returns a type of the signature, with `types` in place of the type parameters.
    pub(crate) fn replace(&self, ty: &Type, types: &[Type]) -> Type {
        ty.replace(&|name| {
            let index = self.generics.iter().position(|generic| generic == name)?;
            types.get(index).cloned()
        })
    }
}

/// A parameter of a module.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ParamSignature {
    /// The name.
    pub name: String,
    /// The kind.
    pub kind: Kind,
    /// The accepted values of this kind.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub domain: Domain,
    /// True if the argument may be omitted.
    #[cfg_attr(feature = "serde", serde(default))]
    pub optional: bool,
    /// The documentation.
    #[cfg_attr(feature = "serde", serde(default))]
    pub doc: String,
}

/// A port of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PortSignature {
    /// The name; the default input is named `run`, and the default output is named `out`.
    pub name: String,
    /// The type of the items.
    pub item: Type,
    /// True if the output must be connected; ignored for an input.
    #[cfg_attr(feature = "serde", serde(default))]
    pub required: bool,
    /// True if the items can be cloned, which is necessary if an output has several edges; ignored
    /// for an input.
    #[cfg_attr(
        feature = "serde",
        serde(default = "can_clone", skip_serializing_if = "bool::clone")
    )]
    pub clones: bool,
    /// The documentation.
    #[cfg_attr(feature = "serde", serde(default))]
    pub doc: String,
}

/// Returns the value of [`PortSignature::clones`] in a manifest that does not state it.
#[cfg(feature = "serde")]
fn can_clone() -> bool {
    true
}

/// The parallelism of a module: which items it may handle at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum Parallelism {
    /// The module may handle any number of items at the same time.
    #[default]
    Element,
    /// The module may handle any number of items at the same time, but its output keeps the order
    /// of its input.
    Ordered,
    /// The module may handle items of different flows at the same time, but only one item of each
    /// flow.
    Flow,
    /// The module handles one item at a time.
    Serial,
}

/// The way in which a module's code may wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum Body {
    /// Code that never waits.
    #[default]
    Plain,
    /// Async code, which may wait at each `.await`.
    Async,
    /// Code that may block an OS thread.
    Blocking,
}

/// Returns the number that stands for a port in the types that macros generate. The number is a
/// hash (FNV-1a) of the port's name, because a string cannot be a const parameter of a type.
#[doc(hidden)]
#[must_use]
pub const fn port_number(name: &str) -> u64 {
    let (name, mut hash, mut at) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
    while at < name.len() {
        hash = (hash ^ name[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    hash
}
