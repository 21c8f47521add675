//! [`Person`]: a user, as the identity provider describes them.

use serde::{Deserialize, Serialize};

/// A user of the identity provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The issuer of the provider, within which the subject is unique. With the subject it is the
    /// principal, so it must never change for a user.
    pub issuer: String,
    /// The stable identifier of the user, never an email address.
    pub subject: String,
    /// The email address.
    pub email: Option<String>,
    /// Whether the provider has verified that the address is the user's.
    pub email_verified: bool,
    /// The name to show.
    pub name: Option<String>,
    /// The groups, in the provider's notation; at GitHub `org/team`.
    pub groups: Vec<String>,
    /// The organization whose account it is: Entra's tenant (`tid`), Google's hosted domain
    /// (`hd`).
    pub organization: Option<String>,
}
