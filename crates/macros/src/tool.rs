//! `#[tool]`

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Error, ItemFn, Result, spanned::Spanned};

use crate::{forms, function::Function, item, options::Options};

pub(crate) fn expand(options: TokenStream, function: ItemFn) -> Result<TokenStream> {
    let options = Options::parse(options, &["annotations", "spill", "allow_unknown"])?;
    let function = Function::parse(function)?;

    if function.docs.is_empty() && options.description.is_none() {
        let problem = "a tool needs a description: write a doc comment";
        return Err(Error::new_spanned(&function.name, problem));
    }

    let name = options.name.as_ref().map_or_else(|| function.listed_name(), syn::LitStr::value);
    let arguments = item::arguments_struct(&function, &options, &name);
    let pattern = item::arguments_pattern(&function);
    let call = item::call(&function);
    let output = &function.output;

    // The span at which a type that is no result is reported.
    let convert = quote_spanned! {output.span()=>
        (&&&&::larder::__private::Returned::<#output>::new()).convert(__returned)
    };

    let setters = &options.setters;
    let forms = forms::elicited(&function.call.block);
    let description = options.description.as_ref().map(|text| quote!(.description(#text)));
    let own = function.listed_name();

    Ok(item::item(&function, &quote!(Tool), "tool", |state| {
        quote! {
            #[allow(unused_imports)]
            use ::larder::__private::{AsItIs as _, NoResult as _, Value as _, ValueOrError as _};

            #arguments

            ::larder::Tool::new(|__context: ::larder::Context<#state>, __arguments: Arguments| async move {
                let #pattern = __arguments;
                let __returned: #output = #call;
                #convert
            })
            .name(#name)
            .origin(::core::concat!(::core::module_path!(), "::", #own))
            #description
            #(#setters)*
            #(.form::<#forms>())*
        }
    }))
}
