//! Which environment variables are settings.

/// Variables of the command line and of `docker-compose.yml`. They share the prefix but are
/// not settings.
const NOT_SETTINGS: [&str; 7] = [
    "LARDER_CONFIG",
    "LARDER_URL",
    "LARDER_TOKEN",
    "LARDER_HOST",
    "LARDER_HTTPS_PORT",
    "LARDER_INSECURE_NO_AUTH",
    "LARDER_LOG_LEVEL",
];

/// Whether a variable with the prefix `LARDER_` is meant as a setting. Others with the prefix
/// belong to the command line, to Compose or to Kubernetes. A misspelt setting is still one,
/// and an error.
pub(super) fn is_setting(name: &str, value: &str) -> bool {
    !NOT_SETTINGS.contains(&name) && !is_service_link(name, value)
}

/// Whether Kubernetes, or Docker for a link, sets this variable to tell where a service is:
/// `LARDER_SERVICE_HOST`, `LARDER_SERVICE_PORT_HTTP`, `LARDER_PORT=tcp://10.0.0.1:80`,
/// `LARDER_PORT_80_TCP_ADDR`; for a service named `larder-redis`, `LARDER_REDIS_PORT` and so on.
fn is_service_link(name: &str, value: &str) -> bool {
    // Two underscores separate a section from its setting.
    if name.contains("__") {
        return false;
    }

    let is_url = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());

    if name.ends_with("_SERVICE_HOST") || (name.ends_with("_PORT") && is_url) {
        return true;
    }
    if let Some((_, port_name)) = name.split_once("_SERVICE_PORT") {
        return (port_name.is_empty() || port_name.starts_with('_')) && is_number(value);
    }

    let Some((_, port)) = name.rsplit_once("_PORT_") else { return false };
    let mut parts = port.split('_');
    let number = parts.next().unwrap_or_default();
    let protocol = parts.next().unwrap_or_default();

    is_number(number)
        && matches!(protocol, "TCP" | "UDP" | "SCTP")
        && matches!(parts.next(), None | Some("PROTO" | "PORT" | "ADDR"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubernetes_injects_is_no_setting() {
        for (name, value) in [
            ("LARDER_SERVICE_HOST", "10.0.0.1"),
            ("LARDER_SERVICE_PORT", "80"),
            ("LARDER_SERVICE_PORT_HTTP", "80"),
            ("LARDER_PORT", "tcp://10.0.0.1:80"),
            ("LARDER_PORT_80_TCP", "tcp://10.0.0.1:80"),
            ("LARDER_PORT_80_TCP_PROTO", "tcp"),
            ("LARDER_PORT_80_TCP_PORT", "80"),
            ("LARDER_PORT_80_TCP_ADDR", "10.0.0.1"),
            ("LARDER_REDIS_SERVICE_HOST", "10.0.0.2"),
            ("LARDER_REDIS_PORT", "tcp://10.0.0.2:6379"),
            ("LARDER_REDIS_PORT_6379_TCP_ADDR", "10.0.0.2"),
            ("LARDER_DNS_PORT_53_UDP", "udp://10.0.0.3:53"),
            ("LARDER_CONFIG", "/etc/larder.toml"),
            ("LARDER_HOST", "mcp.example.com"),
        ] {
            assert!(!is_setting(name, value), "{name}");
        }
    }

    #[test]
    fn what_is_misspelt_is_still_a_setting() {
        for (name, value) in [
            ("LARDER_SERVER__LISTEN", "127.0.0.1:1"),
            ("LARDER_SERVER_LISTEN", "127.0.0.1:1"),
            ("LARDER_SERVER_PORT", "8000"),
            ("LARDER_PORT", "8000"),
            ("LARDER_REDIS__PORT", "tcp://10.0.0.2:6379"),
            ("LARDER_PORT_HTTP", "80"),
            ("LARDER_SERVICE_PORT", "http"),
            ("LARDER_LISTEN", "127.0.0.1:1"),
        ] {
            assert!(is_setting(name, value), "{name}");
        }
    }
}
