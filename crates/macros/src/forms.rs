//! The forms that a function shows, so that they are checked when the server is built.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Block, Type};

/// Keywords of items, whose names are unknown outside the function.
const ITEMS: [&str; 9] =
    ["use", "struct", "enum", "union", "type", "fn", "impl", "mod", "macro_rules"];

/// The types in `elicit::<T>`. Empty if the function has items, which a type could name.
pub(crate) fn elicited(body: &Block) -> Vec<Type> {
    let mut forms = Vec::new();
    if find(body.to_token_stream(), &mut forms).is_none() {
        return Vec::new();
    }
    forms
}

/// Adds the forms in these tokens. `None` if there is an item.
fn find(tokens: TokenStream, forms: &mut Vec<Type>) -> Option<()> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => find(group.stream(), forms)?,
            TokenTree::Ident(word) if ITEMS.iter().any(|item| word == item) => return None,
            TokenTree::Ident(word) if word == "elicit" => {
                let form = argument(&tokens[at + 1..]);
                forms.extend(form);
            }
            _ => {}
        }
    }
    Some(())
}

/// The type in `::<T>` at the start of these tokens.
fn argument(tokens: &[TokenTree]) -> Option<Type> {
    let is =
        |token: &TokenTree, punct| matches!(token, TokenTree::Punct(p) if p.as_char() == punct);
    let [first, second, open, rest @ ..] = tokens else { return None };
    if !(is(first, ':') && is(second, ':') && is(open, '<')) {
        return None;
    }

    let mut depth = 1;
    let end = rest.iter().position(|token| {
        depth += i32::from(is(token, '<')) - i32::from(is(token, '>'));
        depth == 0
    })?;

    let form: Type = syn::parse2(rest[..end].iter().cloned().collect()).ok()?;
    (!matches!(form, Type::Infer(_))).then_some(form)
}
