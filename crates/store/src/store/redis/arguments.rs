//! The arguments of the scripts. Each list below declares the arguments of one script: the struct
//! that Rust fills and the locals that Lua reads have its order, so the two cannot differ.

use super::upload::Chunks;
use crate::redis::Call;

/// Declares the arguments of the script in `$file`, in the order in which they are sent. They follow
/// the five arguments that all scripts take. Only the last ones may be `Option`, because `None` is
/// not sent.
macro_rules! script_arguments {
    (
        $(#[$attribute:meta])*
        struct $name:ident<$life:lifetime> in $file:literal {
            $(#[$first_attribute:meta])*
            $first:ident: $first_type:ty,
            $($(#[$field_attribute:meta])* $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$attribute])*
        pub(super) struct $name<$life> {
            $(#[$first_attribute])*
            pub(super) $first: $first_type,
            $($(#[$field_attribute])* pub(super) $field: $type,)*
        }

        impl $name<'_> {
            /// The script, after a line that declares the arguments as locals.
            pub(super) const SCRIPT: &'static str = concat!(
                "local ", stringify!($first), $(", ", stringify!($field),)*
                " = unpack(ARGV, 6)\n",
                include_str!($file),
            );

            /// Adds the arguments to a call that has the arguments of all scripts.
            pub(super) fn add_to(self, call: Call<'_>) -> Call<'_> {
                let Self { $first, $($field),* } = self;
                call.arg($first)$(.arg($field))*
            }
        }
    };
}

script_arguments! {
    /// The arguments of a commit.
    struct CommitArguments<'a> in "commit.lua" {
        owner: &'a str,
        uri: &'a str,
        /// The ID of the content.
        id: &'a str,
        meta: String,
        blocks: Vec<u8>,
        size: u64,
        /// The time to live in milliseconds; empty keeps the expiry of the predecessor.
        ttl: &'a str,
        /// The ID of the content that is replaced; empty accepts any or none.
        predecessor: &'a str,
        max_bytes: u64,
        max_resources: u64,
        /// The life of replaced content in milliseconds.
        grace: u64,
        /// The length of the content in bytes, as stored.
        stored_bytes: u64,
        /// The last part of the content, if Redis does not have it yet, or nothing.
        rest: &'a Chunks,
        /// The number of revisions to keep, including this one.
        revisions: usize,
        /// The bytes that this revision counts.
        counted: u64,
        /// The ID of the upload's reservation.
        reservation: &'a str,
        /// Whether the reservation stays if the commit is refused.
        outlives: bool,
        /// The number and the times (in milliseconds) of a revision from another store.
        restored_revision: Option<u64>,
        restored_created: Option<u64>,
        restored_updated: Option<u64>,
        restored_expires: Option<u64>,
    }
}

script_arguments! {
    /// The arguments of a deletion.
    struct DeleteArguments<'a> in "delete.lua" {
        owner: &'a str,
        uri: &'a str,
        /// The life of deleted content in milliseconds.
        grace: u64,
        /// The creation time of the version to delete, in milliseconds; empty accepts any version.
        created: String,
        /// The revision of the version to delete.
        revision: String,
    }
}

script_arguments! {
    /// The arguments of a reservation.
    struct ReserveArguments<'a> in "reserve.lua" {
        owner: &'a str,
        id: &'a str,
        bytes: u64,
        max_bytes: u64,
        /// The time to live in milliseconds.
        ttl: u64,
        max_reservations: u64,
    }
}

script_arguments! {
    /// The arguments that discard an upload.
    struct DiscardArguments<'a> in "discard.lua" {
        owner: &'a str,
        /// The ID of the content, or nothing.
        id: &'a str,
        /// The ID of the reservation, or nothing.
        reservation: &'a str,
        /// The bytes that stay reserved; 0 ends the reservation.
        keep: u64,
    }
}
