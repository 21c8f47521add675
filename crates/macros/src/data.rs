//! Derives for arguments and results, by the paths of the crate `larder`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Error;

/// The direction in which values of a type go.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Direction {
    In,
    Out,
    Both,
}

pub(crate) fn expand(
    options: &TokenStream,
    item: &TokenStream,
    direction: Direction,
) -> TokenStream {
    if !options.is_empty() {
        return Error::new_spanned(options, "this attribute has no options").into_compile_error();
    }

    let deserialize = (direction != Direction::Out)
        .then(|| quote!(#[derive(::larder::__private::serde::Deserialize)]));
    let serialize = (direction != Direction::In)
        .then(|| quote!(#[derive(::larder::__private::serde::Serialize)]));

    quote! {
        #deserialize
        #serialize
        #[derive(::larder::__private::schemars::JsonSchema)]
        #[serde(crate = "::larder::__private::serde")]
        #[schemars(crate = "::larder::__private::schemars")]
        #item
    }
}
