//! Pages for browsers: their frame, and cookies.

mod cookie;
mod frame;

pub(super) use self::{
    cookie::{Cookie, SameSite},
    frame::{Script, escape, form_page, page, sandboxed_page, scripted_page},
};
