//! [`Surface`]: for whom a route is. It fixes which checks run before the handler, and in which
//! format errors are written.

use super::head::Head;

/// The kind of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surface {
    /// The MCP endpoint.
    Mcp,
    /// Stored content, for scripts of callers with a token.
    Resources,
    /// The logins of a caller with a token at upstreams, for terminals.
    Account,
    /// Content for everyone who has a link.
    Link,
    /// Uploads of everyone who has a link, also by pages of other origins.
    UploadLink,
    /// The requests of the console's page, which has a session.
    Console,
    /// The pages of the console, and where browsers come back to it.
    ConsolePage,
    /// Pages of logins at this server, and at upstreams.
    LoginPage,
    /// The authorization server, for clients.
    LoginClient,
    /// Public documents.
    Document,
    /// The probes, which call by address and are for everyone.
    Probe,
    /// No route.
    Unknown,
}

/// The checks of a surface. Whether callers need a token follows from the handlers of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each check runs or does not")]
pub(super) struct Checks {
    /// Whether the request gets an ID, and is measured and logged.
    pub(super) is_measured: bool,
    /// Whether the Host must be a name of this server.
    pub(super) host: bool,
    /// Whether the Origin, if there is one, must be allowed. Surfaces without this check decide
    /// themselves whose pages may send a request, or are for pages of all origins.
    pub(super) origin: bool,
    pub(super) cors: Cors,
    /// Whether a body is refused that is announced as larger than a message may be.
    pub(super) message_length: bool,
}

/// The pages of other origins that may read responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cors {
    None,
    /// Pages whose origin is allowed.
    Allowed,
    /// All pages: nothing depends on who asks.
    Any,
}

/// How errors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// A JSON-RPC message, and a page for browsers.
    JsonRpc,
    /// A problem document (RFC 9457).
    Problem,
    /// A page for browsers, and a problem document for programs, with headers that let nothing run.
    Link,
    /// `{"error": {"message": …}}`, for programs of this server.
    Message,
    /// An error of OAuth (RFC 6749, section 5.2).
    OAuth,
    /// A page.
    Page,
}

impl Format {
    /// Whether the sender of a request gets a page in place of this format.
    pub(super) fn is_page_for(self, head: &Head) -> bool {
        match self {
            Self::Link => head.accepts_page(),
            Self::JsonRpc => head.is_of_person(),
            Self::Problem | Self::Message | Self::OAuth | Self::Page => false,
        }
    }
}

impl Surface {
    pub(super) const fn checks(self) -> Checks {
        const ALL: Checks = Checks {
            is_measured: true,
            host: true,
            origin: true,
            cors: Cors::Allowed,
            message_length: false,
        };

        match self {
            Self::Mcp => Checks { message_length: true, ..ALL },
            Self::Resources | Self::UploadLink => ALL,
            Self::Account | Self::Link | Self::Unknown => Checks { cors: Cors::None, ..ALL },

            // The console admits its own page only. A login has a sealed ticket or cookie, and its
            // forms have to come from its own pages.
            Self::Console | Self::ConsolePage | Self::LoginPage => {
                Checks { origin: false, cors: Cors::None, ..ALL }
            }
            Self::LoginClient | Self::Document => Checks { origin: false, cors: Cors::Any, ..ALL },

            Self::Probe => Checks {
                is_measured: false,
                host: false,
                origin: false,
                cors: Cors::None,
                message_length: false,
            },
        }
    }

    pub(super) const fn format(self) -> Format {
        match self {
            Self::Mcp | Self::Unknown | Self::Document | Self::Probe => Format::JsonRpc,
            Self::Resources => Format::Problem,
            Self::Link | Self::UploadLink => Format::Link,
            Self::Account | Self::Console => Format::Message,
            Self::LoginClient => Format::OAuth,
            Self::ConsolePage | Self::LoginPage => Format::Page,
        }
    }
}
