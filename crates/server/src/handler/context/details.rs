//! The setters of builders that store content with metadata.

/// Setters of the field `details`.
macro_rules! details_setters {
    () => {
        /// The short name. Default: the last segment of the URI.
        pub fn name(mut self, name: impl Into<String>) -> Self {
            self.details.name = Some(name.into());
            self
        }

        /// The name to display.
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.details.title = Some(title.into());
            self
        }

        /// A description of the content.
        pub fn description(mut self, description: impl Into<String>) -> Self {
            self.details.description = Some(description.into());
            self
        }

        /// The media type. Default: depends on the kind of content.
        pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
            self.details.mime_type = Some(mime_type.into());
            self
        }

        /// The time to live. Default: `store.default_ttl`, one day.
        pub fn ttl(mut self, ttl: std::time::Duration) -> Self {
            self.details.ttl = Some(ttl);
            self
        }
    };
}

pub(in crate::handler) use details_setters;
