//! The expansion of tools, resources and prompts.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use crate::{
    argument::Argument,
    function::{Function, Parameter},
    options::Options,
};

/// The struct of a function's arguments, with the functions of its defaults.
pub(crate) fn arguments_struct(function: &Function, options: &Options, name: &str) -> TokenStream {
    let fields = function.arguments().map(Argument::field);
    let defaults = function.arguments().filter_map(Argument::default_function);
    let docs = &function.docs;
    let deny = (!options.allow_unknown).then(|| quote!(#[serde(deny_unknown_fields)]));

    // The type itself is named with the cure, beside what the derives say about it.
    let checks = function.arguments().map(|argument| {
        let ty = &argument.ty;
        quote_spanned!(ty.span()=> __argument::<#ty>();)
    });

    quote! {
        const _: fn() = || {
            fn __argument<T: ::larder::__private::Argument>() {}
            #(#checks)*
        };

        #(#defaults)*

        #[derive(::larder::__private::serde::Deserialize, ::larder::__private::schemars::JsonSchema)]
        #[serde(crate = "::larder::__private::serde")]
        #[schemars(crate = "::larder::__private::schemars", rename = #name)]
        #deny
        #(#docs)*
        struct Arguments {
            #(#fields),*
        }
    }
}

/// The pattern that takes the arguments apart.
pub(crate) fn arguments_pattern(function: &Function) -> TokenStream {
    let names = function.arguments().map(|argument| &argument.name);
    quote!(Arguments { #(#names),* })
}

/// The call of the function, in an `async` block with `context` and the arguments.
pub(crate) fn call(function: &Function) -> TokenStream {
    let name = &function.name;
    let values = function.parameters.iter().map(|parameter| match parameter {
        Parameter::Argument(argument) => {
            let name = &argument.name;
            quote!(#name)
        }
        Parameter::Context { is_reference, state } => {
            let context = match state {
                Some(_) => quote!(__context),
                None => quote!(__context.without_state()),
            };
            if *is_reference { quote!(&#context) } else { context }
        }
    });

    let wait = function.is_async.then(|| quote!(.await));
    quote!(#name::call(#(#values),*) #wait)
}

/// The function that returns the item, and the function that was written.
///
/// `build` gets the type of the server's state.
pub(crate) fn item(
    function: &Function,
    kind: &TokenStream,
    what: &str,
    build: impl FnOnce(&TokenStream) -> TokenStream,
) -> TokenStream {
    let Function { name, visibility, docs, conditions, call, .. } = function;
    let (generics, state) = match function.state() {
        Some(state) => (quote!(), quote!(#state)),
        None => {
            let state = quote!(__State);
            (quote!(<#state: ::core::marker::Send + ::core::marker::Sync + 'static>), state)
        }
    };
    let body = build(&state);
    let holder_doc = format!("The function of the {what} `{name}`: `{name}::call`.");
    let call_doc = format!("Runs the {what}.");

    quote! {
        #(#conditions)*
        #(#docs)*
        #[must_use]
        #visibility fn #name #generics () -> ::larder::#kind<#state> {
            #body
        }

        #(#conditions)*
        #[doc = #holder_doc]
        #[allow(non_camel_case_types, dead_code)]
        #visibility struct #name {}

        #(#conditions)*
        impl #name {
            #[doc = #call_doc]
            #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments, clippy::unused_async)]
            #visibility #call
        }
    }
}
