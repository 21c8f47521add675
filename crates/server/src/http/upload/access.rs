//! The permission to store content, and its limits.

use http::StatusCode;
use larder_oauth::{Grant, Identity, Owner};
use larder_protocol::Fault;
use larder_store::store::{ResourceUri, StoreError};

use super::received::BodyProblem;
use crate::{
    admission::Permit,
    http::{Endpoint, error::Reply, problem::Problem},
};

/// The tool that does the same, and whose scopes an upload needs.
const WRITE_TOOL: &str = "create_resource";

/// Checks that the caller may store resources.
pub(super) fn authorize(endpoint: &Endpoint, identity: &Identity) -> Reply<()> {
    if !receives(endpoint) {
        let detail = "This server does not let callers store resources (tools.write).";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail).into());
    }
    Ok(endpoint.dispatcher.authorize_tool(WRITE_TOOL, identity)?)
}

/// Whether the server lets callers store resources.
pub(in crate::http) fn receives(endpoint: &Endpoint) -> bool {
    endpoint.dispatcher.registry().offers(&Grant::All, WRITE_TOOL)
}

/// Refuses content that is announced as too large.
pub(super) fn check_size(size: Option<u64>, max: u64) -> Result<(), Problem> {
    if size.is_none_or(|size| size <= max) {
        Ok(())
    } else {
        Err(BodyProblem::TooLarge(max).into())
    }
}

/// Counts the transfer towards the limits of the owner, and of all owners.
pub(super) fn permit(endpoint: &Endpoint, owner: &Owner) -> Result<Permit, Fault> {
    let limits = endpoint.dispatcher.caller_limits();
    Ok(limits.transfer(owner)?)
}

/// A URI that cannot be guessed.
pub(super) fn minted(endpoint: &Endpoint) -> Result<ResourceUri, StoreError> {
    Ok(ResourceUri::parse(&format!("larder://r/{}", endpoint.random.id()))?)
}
