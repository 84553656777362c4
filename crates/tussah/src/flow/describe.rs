//! The signature of a module, derived from its types.

use std::any::type_name;
#[cfg(feature = "cli")]
use std::sync::Arc;

use tussah_weave::{
    Body, Domain, Kind, Parallelism, ParamSignature, PortSignature, Signature, Type,
};

use super::compiled::ParamSpec;
use super::compiled::ports::OutputSpec;
use super::param::domain;
use super::tap::{ByDebug, Show, Shows};
#[cfg(feature = "cli")]
use super::text::{AnyText, Text};

/// A builder of a module's signature. `#[module]` calls its methods.
pub struct Describe {
    pub(crate) signature: Signature,
    /// The arguments of the signature's type parameters.
    pub(crate) types: Vec<Type>,
    /// The fields of the items of input ports.
    pub(crate) fields: Vec<(Type, &'static [&'static str])>,
    pub(crate) shows: Shows,
    /// The types of the ports, as text.
    #[cfg(feature = "cli")]
    pub(crate) texts: Vec<Arc<dyn AnyText>>,
}

impl Describe {
    /// Creates a builder for the signature of a module.
    #[must_use]
    pub fn new(doc: &str, parallelism: Parallelism, body: Body) -> Self {
        Self {
            signature: Signature {
                doc: doc.to_owned(),
                parallelism,
                body,
                ..Signature::new("")
            },
            types: Vec::new(),
            fields: Vec::new(),
            shows: Vec::new(),
            #[cfg(feature = "cli")]
            texts: Vec::new(),
        }
    }

    /// Uses the documentation of the module's type, unless the `impl` block has its own.
    #[must_use]
    pub fn doc_of(mut self, doc: &str) -> Self {
        if self.signature.doc.is_empty() {
            doc.clone_into(&mut self.signature.doc);
        }
        self
    }

    /// Adds a type parameter. All type parameters must be added before the ports.
    #[must_use]
    pub fn generic<T>(mut self, name: &str) -> Self {
        self.signature.generics.push(name.to_owned());
        self.types.push(type_of::<T>());
        self
    }

    /// Adds a parameter. All type parameters must be added before. If the parameter has no kind in
    /// Weave, the signature shows the name of its Rust type.
    #[must_use]
    pub fn param<T>(mut self, param: &ParamSpec) -> Self {
        let kind = param.kind.clone();
        let domain = match param.names_field {
            // The signature of a generic module is that for all types of items.
            true => Domain {
                field_of: self.general::<T>(param.spelled).args.pop(),
                ..Domain::default()
            },
            false => domain(param.range, param.words),
        };
        self.signature.params.push(ParamSignature {
            name: param.name.to_owned(),
            kind: kind.unwrap_or_else(|| Kind::Rust(type_of::<T>())),
            domain,
            optional: param.optional,
            doc: String::new(),
        });
        self
    }

    /// Adds an input port. `spelled` is the type as written in the `impl` block.
    #[must_use]
    pub fn input<T>(mut self, name: &str, spelled: &str, fields: &'static [&'static str]) -> Self {
        if !fields.is_empty() {
            self.fields.push((type_of::<T>(), fields));
        }
        let port = self.port::<T>(name, spelled);
        self.signature.inputs.push(port);
        self
    }

    /// Adds an output port. `spelled` is the type as written in the `impl` block, and `clones` is
    /// true if the port's items can be cloned.
    #[must_use]
    pub fn output<T>(mut self, output: &OutputSpec, spelled: &str, clones: bool) -> Self {
        let port = self.port::<T>(output.name, spelled);
        self.signature.outputs.push(PortSignature {
            required: output.required,
            clones,
            ..port
        });
        self
    }

    /// Adds the conversions between text and a port's type, for tests and taps of graphs. A generic
    /// module knows only the conversions that its bounds name.
    #[must_use]
    #[cfg_attr(not(feature = "cli"), expect(unused_variables))]
    pub fn text<T: Send + 'static>(
        mut self,
        parse: Option<fn(&str) -> Option<T>>,
        show: Option<Show<T>>,
        debug: Option<Show<T>>,
    ) -> Self {
        self.shows.extend(show.map(|show| Box::new(show) as _));
        let debug_of = |debug| Box::new(ByDebug(debug)) as _;
        self.shows.extend(debug.map(debug_of));
        #[cfg(feature = "cli")]
        if parse.is_some() || show.is_some() || debug.is_some() {
            self.texts.push(Arc::new(Text {
                item: type_of::<T>(),
                parse,
                show,
                debug,
            }));
        }
        self
    }

    fn port<T>(&self, name: &str, spelled: &str) -> PortSignature {
        PortSignature {
            name: name.to_owned(),
            item: self.general::<T>(spelled),
            required: false,
            clones: true,
            doc: String::new(),
        }
    }

    /// Returns a type, with type parameters where `spelled` has them.
    fn general<T>(&self, spelled: &str) -> Type {
        let of = type_of::<T>();
        match Type::parse(spelled) {
            Ok(spelled) => general(&of, &spelled, &self.signature.generics),
            Err(_) => of,
        }
    }
}

/// Returns the type, with type parameters where `spelled` has them. The rest of the type keeps its
/// full paths, which an `impl` block does not contain.
fn general(item: &Type, spelled: &Type, generics: &[String]) -> Type {
    if spelled.args.is_empty() && generics.contains(&spelled.name) {
        return spelled.clone();
    }
    // A type alias hides the arguments of its type.
    if item.args.len() != spelled.args.len() {
        return item.clone();
    }
    let args = item.args.iter().zip(&spelled.args);
    Type {
        name: item.name.clone(),
        args: args
            .map(|(item, spelled)| general(item, spelled, generics))
            .collect(),
    }
}

fn type_of<T>() -> Type {
    let name = type_name::<T>();
    // A type that cannot be a tree, such as a function pointer, equals itself only.
    Type::parse(name).unwrap_or_else(|_| Type::new(name))
}
