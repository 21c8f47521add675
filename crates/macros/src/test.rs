//! `#[larder::test]`

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ItemFn, Result};

pub(crate) fn expand(options: TokenStream, mut function: ItemFn) -> Result<TokenStream> {
    if !options.is_empty() {
        return Err(Error::new_spanned(options, "this attribute has no options"));
    }
    if function.sig.asyncness.take().is_none() {
        return Err(Error::new_spanned(function.sig.fn_token, "use #[test]: it is not async"));
    }

    let body = &function.block;
    let block = quote!({ ::larder::__private::block_on(async move #body) });
    *function.block = syn::parse2(block)?;

    Ok(quote! {
        #[::core::prelude::v1::test]
        #function
    })
}
