//! The signature of a module, made from its types.

use std::any::type_name;

use tussah_weave::{Body, Kind, Parallelism, ParamSignature, PortSignature, Signature, Type};

/// A signature that is being made. `#[module]` calls the methods.
pub struct Describe(pub(crate) Signature);

impl Describe {
    /// Begins the signature of a module.
    #[must_use]
    pub fn new(doc: &str, parallelism: Parallelism, body: Body) -> Self {
        Self(Signature {
            doc: doc.to_owned(),
            parallelism,
            body,
            ..Signature::new("")
        })
    }

    /// Adds a parameter. A type without a kind is known by its name.
    #[must_use]
    pub fn param<T>(mut self, name: &str, kind: Option<fn() -> Kind>, optional: bool) -> Self {
        self.0.params.push(ParamSignature {
            name: name.to_owned(),
            kind: kind.map_or_else(|| Kind::Rust(type_of::<T>()), |kind| kind()),
            optional,
            doc: String::new(),
        });
        self
    }

    /// Adds an input port.
    #[must_use]
    pub fn input<T>(mut self, name: &str) -> Self {
        self.0.inputs.push(port::<T>(name, false));
        self
    }

    /// Adds an output port.
    #[must_use]
    pub fn output<T>(mut self, name: &str, required: bool) -> Self {
        self.0.outputs.push(port::<T>(name, required));
        self
    }
}

fn port<T>(name: &str, required: bool) -> PortSignature {
    PortSignature {
        name: name.to_owned(),
        item: type_of::<T>(),
        required,
        doc: String::new(),
    }
}

fn type_of<T>() -> Type {
    let name = type_name::<T>();
    // A type that cannot be a tree, such as a function pointer, equals itself only.
    Type::parse(name).unwrap_or_else(|_| Type::new(name))
}
