//! Stored resources as the protocol shows them.

use rmcp::model::{self, ContentBlock};

use super::Entry;

impl Entry {
    /// The resource as `resources/list` returns it.
    pub fn to_resource(&self) -> model::Resource {
        let mut resource = model::Resource::new(self.uri.as_str(), &self.name);
        resource.title.clone_from(&self.title);
        resource.description.clone_from(&self.description);
        resource.mime_type = Some(self.mime_type.clone());
        resource.size = Some(self.size);

        let mut annotations = model::Annotations::default();
        annotations.last_modified = Some(self.updated.to_string());
        resource.annotations = Some(annotations);

        resource
    }

    /// A `resource_link` for a tool's result. Put the URI into the text as well, because
    /// many hosts show only the text.
    pub fn to_link(&self) -> ContentBlock {
        ContentBlock::resource_link(self.to_resource())
    }
}
