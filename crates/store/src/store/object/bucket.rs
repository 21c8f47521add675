//! Buckets by service: S3 and compatible services, and with the features `gcs`
//! and `azure` also Google Cloud Storage and Azure Blob Storage.

use std::{str::FromStr, sync::Arc, time::Duration};

use object_store::{
    ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
};

/// The maximum time for which a failed request is retried.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// The service of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StorageService {
    S3,
    Google,
    Azure,
}

impl StorageService {
    /// The service of a URL, and the part of the URL after `://`.
    pub(super) fn from_url(url: &str) -> Option<(Self, &str)> {
        let (scheme, rest) = url.split_once("://")?;
        let service = [Self::S3, Self::Google, Self::Azure]
            .into_iter()
            .find(|service| service.scheme() == scheme)?;
        Some((service, rest))
    }

    /// The scheme of the service's URLs, which is also the backend's name.
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }

    /// The cargo feature that the service needs, if this build lacks it.
    pub(super) fn missing_feature(self) -> Option<&'static str> {
        match self {
            Self::Google if !cfg!(feature = "gcs") => Some("gcs"),
            Self::Azure if !cfg!(feature = "azure") => Some("azure"),
            _ => None,
        }
    }

    /// The format of the service's URLs, and the environment variables with credentials.
    pub(super) fn url_format(self) -> &'static str {
        match self {
            Self::S3 => {
                "s3://bucket/prefix (with keys, region and endpoint in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL)"
            }
            Self::Google => {
                "gs://bucket/prefix (with credentials in the file GOOGLE_APPLICATION_CREDENTIALS)"
            }
            Self::Azure => {
                "az://container/prefix (with account and key in AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY)"
            }
        }
    }

    /// Whether listings are in the order of keys and can start after any key. Azure does not
    /// list in order if the account has a hierarchical namespace.
    pub(super) fn lists_in_order(self) -> bool {
        self != Self::Azure
    }

    /// Whether the service drops dots at the end of a segment of a key.
    pub(super) fn drops_dots(self) -> bool {
        self == Self::Azure
    }

    /// The most bytes of an object that the service copies in one request, before it answers and
    /// within the timeout of a request, 30 s.
    pub(super) fn max_copy_bytes(self) -> u64 {
        match self {
            Self::S3 | Self::Google => 512 << 20,
            // Azure may copy after it has answered.
            Self::Azure => 0,
        }
    }

    /// Opens a bucket, with settings from the environment variables.
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

    // An endpoint with http:// is used unencrypted.
    if is_unencrypted(builder.get_config_value(&AmazonS3ConfigKey::Endpoint)) {
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

    if is_unencrypted(builder.get_config_value(&GoogleConfigKey::BaseUrl)) {
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

    if is_unencrypted(builder.get_config_value(&AzureConfigKey::Endpoint)) {
        builder = builder.with_allow_http(true);
    }

    Ok(Arc::new(builder.with_container_name(container).with_retry(retry()).build()?))
}

/// The environment variables with `prefix` that object_store knows.
fn settings<K: FromStr>(
    environment: impl Iterator<Item = (String, String)>,
    prefix: &str,
) -> impl Iterator<Item = (K, String)> {
    environment.filter_map(move |(name, value)| {
        // Variables of other programs may also have the prefix.
        let key = name.starts_with(prefix).then(|| name.to_ascii_lowercase().parse().ok());
        Some((key.flatten()?, value))
    })
}

fn is_unencrypted(endpoint: Option<String>) -> bool {
    endpoint.is_some_and(|url| url.starts_with("http://"))
}

fn retry() -> RetryConfig {
    RetryConfig { retry_timeout: RETRY_TIMEOUT, max_retries: 3, ..RetryConfig::default() }
}
