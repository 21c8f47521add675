//! Pages for browsers: their frame, and cookies.

mod cookie;
mod frame;

pub(super) use self::{
    cookie::{Cookie, SameSite},
    frame::{Script, escape, page, plain_page, scripted_page},
};
