//! Resources: from files, the web and handlers, and those that tools create.

mod caching;
mod contents;
mod custom;
mod dynamic;
mod editing;
mod expiry;
mod files;
mod listing;
mod matches;
mod metadata;
mod next_calls;
mod reading;
mod records;
mod search;
mod search_cost;
mod web;
mod windows;
