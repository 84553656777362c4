//! Reading the arguments of a method.

use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{GenericArgument, Ident, Pat, PathArguments, Type, TypeParamBound, TypeReference};

use crate::module::{Argument, Output, Port, plain};

impl Port {
    /// Reads an argument, and adds the output that it names.
    pub(super) fn argument(
        &self,
        pattern: &Pat,
        of: &Type,
        outputs: &mut Vec<Output>,
    ) -> syn::Result<Argument> {
        let of = plain_type(of);
        let (inner, optional) = match generic(of, "Option") {
            Some(inner) => (inner, true),
            None => (of, false),
        };
        let referenced = match plain_type(inner) {
            Type::Reference(reference) => Some(&*reference.elem),
            _ => None,
        };
        if let Some((kind, item)) = out(referenced.unwrap_or(inner)) {
            let expected = if self.is_async { "AsyncOut" } else { "Out" };
            if kind != expected || referenced.is_none() {
                let what = if self.is_async {
                    "an `async fn`"
                } else {
                    "a plain `fn`"
                };
                return Err(syn::Error::new_spanned(
                    of,
                    format!("an output of {what} is `&impl {expected}<T>`"),
                ));
            }
            let name = name(pattern)?;
            let output = Output {
                name: plain(&name),
                span: name.span(),
                item: item.clone(),
                required: !optional,
            };
            add(outputs, output)?;
            return Ok(Argument::Out { name, optional });
        }
        if let Type::Reference(reference) = of
            && reference
                .lifetime
                .as_ref()
                .is_none_or(|it| it.ident != "static")
        {
            return self.reference(of, reference);
        }
        if self.item().is_some() {
            return Err(syn::Error::new_spanned(
                of,
                "a method takes one item; expected one argument by value",
            ));
        }
        Ok(Argument::Item(of.clone()))
    }

    /// Reads an argument by reference that is no output.
    fn reference(&self, of: &Type, reference: &TypeReference) -> syn::Result<Argument> {
        if reference.mutability.is_none() && is(&reference.elem, "Flow") {
            return Ok(Argument::Flow);
        }
        if reference.mutability.is_none() && is(&reference.elem, "Wake") {
            return Ok(Argument::Wake);
        }
        if reference.mutability.is_none() {
            return Err(syn::Error::new_spanned(
                of,
                "an item is taken by value, the state of a flow by `&mut`, and an output by \
                 `&impl Out<..>` or `&impl AsyncOut<..>`",
            ));
        }
        if is(&reference.elem, "Batch")
            && let Some(item) = generic(&reference.elem, "Batch")
            && self.item().is_none()
        {
            return Ok(Argument::Items(item.clone()));
        }
        if self.state().is_some() {
            return Err(syn::Error::new_spanned(
                of,
                "a flow has one state; expected one argument by `&mut`",
            ));
        }
        Ok(Argument::State((*reference.elem).clone()))
    }
}

/// Adds an output, which other methods may have named already.
fn add(outputs: &mut Vec<Output>, output: Output) -> syn::Result<()> {
    let Some(known) = outputs.iter_mut().find(|it| it.name == output.name) else {
        outputs.push(output);
        return Ok(());
    };
    known.required |= output.required;
    let (one, other) = (known.item.to_token_stream(), output.item.to_token_stream());
    if one.to_string() == other.to_string() {
        return Ok(());
    }
    let mut error = syn::Error::new(
        output.span,
        format!(
            "the output `{}` sends `{other}` here and `{one}` elsewhere; expected one type",
            output.name
        ),
    );
    error.combine(syn::Error::new(known.span, "it is elsewhere here"));
    Err(error)
}

/// Returns the trait and the item type of `impl Out<T>` or `impl AsyncOut<T>`.
fn out(of: &Type) -> Option<(&'static str, &Type)> {
    let Type::ImplTrait(bounds) = plain_type(of) else {
        return None;
    };
    bounds.bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else {
            return None;
        };
        let last = bound.path.segments.last()?;
        let kind = ["Out", "AsyncOut"]
            .into_iter()
            .find(|it| last.ident == it)?;
        Some((kind, argument(&last.arguments)?))
    })
}

/// Returns a type without the invisible delimiters around a macro fragment such as `$t:ty`.
pub(in crate::module) fn plain_type(of: &Type) -> &Type {
    match of {
        Type::Group(group) => plain_type(&group.elem),
        of => of,
    }
}

/// Returns `T` of `Name<T>`.
pub(in crate::module) fn generic<'a>(of: &'a Type, name: &str) -> Option<&'a Type> {
    let Type::Path(path) = plain_type(of) else {
        return None;
    };
    let last = path
        .path
        .segments
        .last()
        .filter(|last| last.ident == name)?;
    argument(&last.arguments)
}

fn argument(arguments: &PathArguments) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(of) => Some(of),
        _ => None,
    })
}

pub(super) fn is(of: &Type, name: &str) -> bool {
    let Type::Path(path) = plain_type(of) else {
        return false;
    };
    path.path.segments.last().is_some_and(|it| it.ident == name)
}

pub(super) fn name(pattern: &Pat) -> syn::Result<Ident> {
    match pattern {
        Pat::Ident(ident) => Ok(ident.ident.clone()),
        other => Err(syn::Error::new(
            other.span(),
            "the name of this argument is a name in the graph; expected a plain name",
        )),
    }
}
