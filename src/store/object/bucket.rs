//! Buckets, by whoever keeps them: S3 and what speaks like it, and where they
//! are built in Google's and Azure's.

use std::{str::FromStr, sync::Arc, time::Duration};

use object_store::{
    ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
};

/// How long a request is tried again before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who keeps a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    S3,
    Google,
    Azure,
}

impl Provider {
    /// By the URL, and what that says besides.
    pub(super) fn of(url: &str) -> Option<(Self, &str)> {
        let (scheme, rest) = url.split_once("://")?;
        let keepers = [Self::S3, Self::Google, Self::Azure];
        keepers
            .into_iter()
            .find(|provider| provider.scheme() == scheme)
            .map(|provider| (provider, rest))
    }

    /// How their URLs begin, and what they are called.
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }

    /// The feature that they are built in with, where this is built without it.
    pub(super) fn missing_feature(self) -> Option<&'static str> {
        match self {
            Self::Google if !cfg!(feature = "gcs") => Some("gcs"),
            Self::Azure if !cfg!(feature = "azure") => Some("azure"),
            _ => None,
        }
    }

    /// What a URL of theirs is like, and where the rest is said.
    pub(super) fn usage(self) -> &'static str {
        match self {
            Self::S3 => {
                "s3://bucket/prefix; keys, region and endpoint are in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL"
            }
            Self::Google => {
                "gs://bucket/prefix; credentials are in the file that GOOGLE_APPLICATION_CREDENTIALS names"
            }
            Self::Azure => {
                "az://container/prefix; account and key are in AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY"
            }
        }
    }

    /// Whether they list in the order of keys, from any key on. Azure does not
    /// where an account has a hierarchical namespace.
    pub(super) fn in_order(self) -> bool {
        self != Self::Azure
    }

    /// Whether they drop dots at the end of a part of a key.
    pub(super) fn drops_dots(self) -> bool {
        self == Self::Azure
    }

    /// That bucket, with what is in the environment.
    pub(super) fn open(
        self,
        bucket: &str,
        environment: impl Iterator<Item = (String, String)>,
    ) -> object_store::Result<Arc<dyn ObjectStore>> {
        match self {
            Self::S3 => s3(bucket, environment),
            #[cfg(feature = "gcs")]
            Self::Google => google(bucket, environment),
            #[cfg(feature = "azure")]
            Self::Azure => azure(bucket, environment),
            #[cfg(not(all(feature = "gcs", feature = "azure")))]
            _ => Err(object_store::Error::NotImplemented {
                operation: format!("{}://", self.scheme()),
                implementer: "this build".into(),
            }),
        }
    }
}

fn s3(
    bucket: &str,
    environment: impl Iterator<Item = (String, String)>,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let mut builder = AmazonS3Builder::new();
    for (key, value) in settings(environment, "AWS_") {
        builder = builder.with_config(key, value);
    }
    // Who writes http:// means it.
    if is_plain(builder.get_config_value(&AmazonS3ConfigKey::Endpoint)) {
        builder = builder.with_allow_http(true);
    }
    Ok(Arc::new(builder.with_bucket_name(bucket).with_retry(retry()).build()?))
}

#[cfg(feature = "gcs")]
fn google(
    bucket: &str,
    environment: impl Iterator<Item = (String, String)>,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    use object_store::{
        ClientConfigKey,
        gcp::{GoogleCloudStorageBuilder, GoogleConfigKey},
    };

    let mut builder = GoogleCloudStorageBuilder::new();
    for (key, value) in settings(environment, "GOOGLE_") {
        builder = builder.with_config(key, value);
    }
    if is_plain(builder.get_config_value(&GoogleConfigKey::BaseUrl)) {
        builder = builder.with_config(GoogleConfigKey::Client(ClientConfigKey::AllowHttp), "true");
    }
    Ok(Arc::new(builder.with_bucket_name(bucket).with_retry(retry()).build()?))
}

#[cfg(feature = "azure")]
fn azure(
    container: &str,
    environment: impl Iterator<Item = (String, String)>,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};

    let mut builder = MicrosoftAzureBuilder::new();
    for (key, value) in settings(environment, "AZURE_") {
        builder = builder.with_config(key, value);
    }
    if is_plain(builder.get_config_value(&AzureConfigKey::Endpoint)) {
        builder = builder.with_allow_http(true);
    }
    Ok(Arc::new(builder.with_container_name(container).with_retry(retry()).build()?))
}

/// What is meant for a kind of bucket.
fn settings<K: FromStr>(
    environment: impl Iterator<Item = (String, String)>,
    prefix: &str,
) -> impl Iterator<Item = (K, String)> {
    environment.filter_map(move |(name, value)| {
        // Other programs have variables of their own.
        let key = name.starts_with(prefix).then(|| name.to_ascii_lowercase().parse().ok());
        Some((key.flatten()?, value))
    })
}

fn is_plain(endpoint: Option<String>) -> bool {
    endpoint.is_some_and(|url| url.starts_with("http://"))
}

fn retry() -> RetryConfig {
    RetryConfig { retry_timeout: PATIENCE, max_retries: 3, ..RetryConfig::default() }
}
