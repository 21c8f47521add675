//! `#[prompt]`

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ItemFn, LitStr, Result};

use crate::{function::Function, item, options::Options};

pub(crate) fn expand(options: TokenStream, function: ItemFn) -> Result<TokenStream> {
    let options = Options::parse(options, &["allow_unknown"])?;
    let function = Function::parse(function)?;

    let name = options.name.as_ref().map_or_else(|| function.listed_name(), LitStr::value);
    let arguments = item::arguments_struct(&function, &options, &name);
    let pattern = item::arguments_pattern(&function);
    let call = item::call(&function);
    let output = &function.output;
    let setters = &options.setters;
    let description = options.description.as_ref().map(|text| quote!(.description(#text)));
    let own = function.listed_name();

    Ok(item::item(&function, &quote!(Prompt), "prompt", |state| {
        quote! {
            #arguments

            ::larder::Prompt::new(|__context: ::larder::Context<#state>, __arguments: Arguments| async move {
                let #pattern = __arguments;
                let __returned: #output = #call;
                __returned
            })
            .name(#name)
            .origin(::core::concat!(::core::module_path!(), "::", #own))
            #description
            #(#setters)*
        }
    }))
}
