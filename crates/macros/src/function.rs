//! The function under an attribute: its parameters, and the parts that the macro keeps.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, ItemFn, Pat, PathArguments, Result,
    ReturnType, Type, TypePath, Visibility, ext::IdentExt,
};

use crate::argument::Argument;

/// A function that is to become an item.
pub(crate) struct Function {
    pub(crate) name: Ident,
    pub(crate) visibility: Visibility,
    pub(crate) docs: Vec<Attribute>,
    /// Conditions of compilation.
    pub(crate) conditions: Vec<Attribute>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) output: TokenStream,
    pub(crate) is_async: bool,
    /// The function as it was written, named `call`.
    pub(crate) call: ItemFn,
}

pub(crate) enum Parameter {
    Context { is_reference: bool, state: Option<Box<Type>> },
    Argument(Box<Argument>),
}

impl Function {
    pub(crate) fn parse(mut function: ItemFn) -> Result<Self> {
        let signature = &mut function.sig;
        if !signature.generics.params.is_empty() {
            let problem = "callers know no type parameters and lifetimes: give the types";
            return Err(Error::new_spanned(&signature.generics, problem));
        }
        if let Some(variadic) = &signature.variadic {
            return Err(Error::new_spanned(variadic, "an argument needs a name and a type"));
        }

        let output = match &signature.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, ty) if matches!(**ty, Type::ImplTrait(_)) => {
                return Err(Error::new_spanned(ty, "give the type that it returns"));
            }
            ReturnType::Type(_, ty) => quote!(#ty),
        };

        let mut parameters = Vec::new();
        for input in &mut signature.inputs {
            let parameter = parameter(input)?;
            let is_context = |p: &Parameter| matches!(p, Parameter::Context { .. });
            if is_context(&parameter) && parameters.iter().any(is_context) {
                return Err(Error::new_spanned(input, "a call has one context"));
            }
            parameters.push(parameter);
        }

        let is_async = signature.asyncness.is_some();
        let name = signature.ident.clone();
        signature.ident = Ident::new("call", name.span());

        let mut with = |path: &str| -> Vec<Attribute> {
            function.attrs.extract_if(.., |attribute| attribute.path().is_ident(path)).collect()
        };
        let docs = with("doc");
        let conditions = with("cfg");

        let visibility = std::mem::replace(&mut function.vis, Visibility::Inherited);
        function.attrs.retain(|attribute| !attribute.path().is_ident("doc"));

        Ok(Self {
            name,
            visibility,
            docs,
            conditions,
            parameters,
            output,
            is_async,
            call: function,
        })
    }

    /// The name in lists, unless an option gives another one.
    pub(crate) fn listed_name(&self) -> String {
        self.name.unraw().to_string()
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Argument(argument) => Some(&**argument),
            Parameter::Context { .. } => None,
        })
    }

    /// The server's state that the context names.
    pub(crate) fn state(&self) -> Option<&Type> {
        self.parameters.iter().find_map(|parameter| match parameter {
            Parameter::Context { state, .. } => state.as_deref(),
            Parameter::Argument(_) => None,
        })
    }
}

/// Reads a parameter. Takes its attributes, which only the macro understands.
fn parameter(input: &mut FnArg) -> Result<Parameter> {
    let input = match input {
        FnArg::Typed(input) => input,
        FnArg::Receiver(receiver) => {
            let problem = "a function without self: state comes from Context<State>";
            return Err(Error::new_spanned(receiver, problem));
        }
    };

    let attributes = std::mem::take(&mut input.attrs);
    if let Some(context) = context(&input.ty)? {
        return match attributes.first() {
            Some(attribute) => Err(Error::new_spanned(attribute, "the context is no argument")),
            None => Ok(context),
        };
    }

    match &*input.pat {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
            let argument = Argument::new(name.ident.clone(), (*input.ty).clone(), attributes)?;
            Ok(Parameter::Argument(Box::new(argument)))
        }
        pattern => {
            Err(Error::new_spanned(pattern, "an argument needs a name: take it apart in the body"))
        }
    }
}

/// The context, if the type is `Context`, whatever path names it.
fn context(ty: &Type) -> Result<Option<Parameter>> {
    let (ty, reference) = match ty {
        Type::Reference(reference) => (&*reference.elem, Some(reference)),
        ty => (ty, None),
    };

    let Type::Path(TypePath { path, .. }) = ty else { return Ok(None) };
    let Some(last) = path.segments.last().filter(|last| last.ident == "Context") else {
        return Ok(None);
    };

    if let Some(mutability) = reference.and_then(|reference| reference.mutability) {
        return Err(Error::new_spanned(mutability, "the context is shared: take &Context"));
    }

    let state = match &last.arguments {
        PathArguments::AngleBracketed(arguments) => {
            arguments.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(state) => Some(state.clone()),
                _ => None,
            })
        }
        _ => None,
    };

    if let Some(Type::Infer(infer)) = &state {
        return Err(Error::new_spanned(infer, "name the server's state, or write Context alone"));
    }

    Ok(Some(Parameter::Context { is_reference: reference.is_some(), state: state.map(Box::new) }))
}
