//! The files under `deploy/`: they fit each other and the binary.

use serde_json::Value;
use tokio::process::Command;

use crate::support::process::{larder, run};

const COMPOSE: &str = include_str!("../../../docker-compose.yml");
const DOCKERFILE: &str = include_str!("../../../Dockerfile");
const MAKEFILE: &str = include_str!("../../../Makefile");
const REALM: &str = include_str!("../../../deploy/identity/realm.json");
const IDENTITY: &str = include_str!("../../../deploy/identity/larder.toml");

async fn assert_usable(check: Command) {
    let checked = run(check).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

/// The variables that `docker-compose.yml` sets, with the defaults for its own variables.
fn environment() -> Vec<(String, String)> {
    let lines = COMPOSE.lines().skip_while(|line| !line.contains("environment:"));
    let lines = lines.skip(1).take_while(|line| line.starts_with("      "));
    let settings = lines.filter_map(|line| line.trim().split_once(": "));
    let settings = settings.filter(|(name, _)| name.starts_with("LARDER_"));
    settings.map(|(name, value)| (name.to_owned(), with_defaults(value))).collect()
}

/// `${NAME:-default}` as `default`, and `${NAME:?problem}` as a value that somebody gave.
fn with_defaults(value: &str) -> String {
    let mut value = value.trim_matches('"').to_owned();
    while let Some((before, rest)) = value.split_once("${") {
        let (variable, after) = rest.split_once('}').unwrap();
        let default = variable.split_once(":-").map_or("given", |(_, default)| default);
        value = format!("{before}{default}{after}");
    }
    value
}

#[tokio::test]
async fn the_composed_configuration_is_valid_without_and_with_the_identity_provider() {
    let environment = environment();
    assert!(environment.len() >= 8, "{environment:?}");
    let mut check = larder(&["config", "check"]);
    check.envs(environment.clone());
    assert_usable(check).await;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/identity/larder.toml");
    let mut check = larder(&["config", "check"]);
    check.envs(environment).env("LARDER_CONFIG", file);
    check.env("LARDER_SERVER__INSECURE_NO_AUTH", "false");
    assert_usable(check).await;
    assert!(COMPOSE.contains("./deploy/identity/larder.toml:/etc/larder/identity.toml:ro"));
}

#[test]
fn the_image_and_make_dist_list_dependencies_by_the_same_program() {
    let version = |text: &str, before: &str| -> String {
        let line = text.lines().find_map(|line| line.strip_prefix(before));
        line.unwrap_or_else(|| panic!("no {before}")).to_owned()
    };
    let image = version(DOCKERFILE, "ARG CARGO_AUDITABLE=");
    assert_eq!(image, version(MAKEFILE, "CARGO_AUDITABLE := "));
    for text in [DOCKERFILE, MAKEFILE] {
        assert!(text.contains("cargo auditable build --profile dist"));
        assert!(!text.contains("cargo build --profile dist"));
    }
}

#[test]
fn the_realm_issues_tokens_with_the_required_scopes_and_audience() {
    let realm: Value = serde_json::from_str(REALM).unwrap();
    let config: Value =
        serde_json::to_value(toml::from_str::<toml::Table>(IDENTITY).unwrap()).unwrap();
    let issuer = config["auth"]["issuers"][0]["issuer"].as_str().unwrap();
    let (port, name) = issuer
        .strip_prefix("http://localhost:")
        .and_then(|rest| rest.split_once("/realms/"))
        .unwrap();
    assert_eq!(realm["realm"], name);
    assert!(COMPOSE.contains(&format!("--http-port={port}")));
    assert!(COMPOSE.contains(&format!("127.0.0.1:{port}:{port}")));
    // The scopes that exist; and the claims of each token, `sub` and `aud`.
    let defined: Vec<&Value> =
        realm["clientScopes"].as_array().unwrap().iter().map(|scope| &scope["name"]).collect();
    let client = &realm["clients"][0];
    for kind in ["defaultClientScopes", "optionalClientScopes"] {
        for scope in client[kind].as_array().unwrap() {
            assert!(defined.contains(&scope), "{scope}");
        }
    }
    let mut asked: Vec<&Value> =
        config["auth"]["required_scopes"].as_array().unwrap().iter().collect();
    asked.extend(
        config["auth"]["scopes"].as_object().unwrap().values().flat_map(|s| s.as_array().unwrap()),
    );
    for scope in asked {
        assert!(client["optionalClientScopes"].as_array().unwrap().contains(scope), "{scope}");
    }
    let mappers = realm["clientScopes"][0]["protocolMappers"].as_array().unwrap();
    let mapper = |kind: &str| mappers.iter().find(|m| m["protocolMapper"] == kind).unwrap();
    assert_eq!(mapper("oidc-sub-mapper")["config"]["access.token.claim"], "true");
    let audience = &mapper("oidc-audience-mapper")["config"]["included.custom.audience"];
    let public = environment().into_iter().find(|(name, _)| name.ends_with("PUBLIC_URL")).unwrap();
    assert_eq!(*audience, public.1);
}
