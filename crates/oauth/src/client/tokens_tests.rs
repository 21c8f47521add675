#![allow(clippy::unwrap_used)]

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};

use super::*;

/// An endpoint on this machine that answers one request. The task returns the request.
async fn endpoint(status: u16, body: &'static str) -> (Url, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/token", listener.local_addr().unwrap()).parse().unwrap();

    let answered = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut request = String::new();
        while !is_complete(&request) {
            let mut bytes = [0; 4096];
            let read = connection.read(&mut bytes).await.unwrap();
            assert!(read > 0, "{request}");
            request.push_str(str::from_utf8(&bytes[..read]).unwrap());
        }

        let length = body.len();
        let response = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}");
        connection.write_all(response.as_bytes()).await.unwrap();
        request
    });
    (url, answered)
}

fn is_complete(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length.is_some_and(|(_, length)| length.parse() == Ok(body.len()))
}

/// The form in a request.
fn form(request: &str) -> Vec<(String, String)> {
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    let mut form: Vec<_> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    form.sort();
    form
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

fn fetcher() -> Fetcher {
    crate::install_crypto();
    Fetcher::new().unwrap()
}

fn client(secret: Option<&str>, is_secret_in_body: bool) -> ClientIdentity {
    ClientIdentity { id: "lar der".into(), secret: secret.map(str::to_owned), is_secret_in_body }
}

const CODE: CodeGrant<'_> =
    CodeGrant { code: "c&d", code_verifier: "v", redirect_uri: "https://a.example/callback" };

/// The result of a token request, and the request.
async fn asked<T>(
    (status, body): (u16, &'static str),
    client: &ClientIdentity,
    ask: impl AsyncFnOnce(TokenEndpoint<'_>) -> T,
) -> (T, String) {
    let (url, answered) = endpoint(status, body).await;
    let resource = Some("https://mcp.example/mcp");
    let result = ask(TokenEndpoint { fetcher: &fetcher(), url: &url, client, resource }).await;
    (result, answered.await.unwrap())
}

#[tokio::test]
async fn a_code_is_redeemed_with_the_verifier_and_the_secret_where_the_server_wants_it() {
    let body = r#"{"access_token":"a","token_type":"Bearer","refresh_token":"r","id_token":"i",
        "expires_in":60,"scope":"one two"}"#;
    let code = [
        ("code", "c&d"),
        ("code_verifier", "v"),
        ("grant_type", "authorization_code"),
        ("redirect_uri", "https://a.example/callback"),
        ("resource", "https://mcp.example/mcp"),
    ];

    let header = client(Some("s&t"), false);
    let (tokens, request) = asked((200, body), &header, async |e| e.redeem(&CODE).await).await;
    // lar+der:s%26t, as RFC 6749, section 2.3.1, encodes it.
    assert!(request.contains("authorization: Basic bGFyK2RlcjpzJTI2dA==\r\n"), "{request}");
    assert_eq!(form(&request), pairs(&code));

    let tokens = tokens.unwrap();
    assert!(tokens.is_bearer);
    assert_eq!((&*tokens.access, tokens.refresh.as_deref()), ("a", Some("r")));
    assert_eq!((tokens.id.as_deref(), tokens.lifetime), (Some("i"), Some(Duration::from_secs(60))));
    assert_eq!(tokens.scopes.unwrap(), ["one", "two"]);

    for secret in [Some("s&t"), None] {
        let identity = client(secret, true);
        let (_, request) = asked((200, body), &identity, async |e| e.redeem(&CODE).await).await;
        assert!(!request.contains("authorization:"), "{request}");

        let mut expected = pairs(&code);
        expected.push(("client_id".to_owned(), "lar der".to_owned()));
        expected.extend(secret.map(|secret| ("client_secret".to_owned(), secret.to_owned())));
        expected.sort();
        assert_eq!(form(&request), expected);
    }
}

#[tokio::test]
async fn a_refresh_names_the_resource() {
    let body = r#"{"access_token":"a","token_type":"bearer"}"#;
    let public = client(None, false);
    let (tokens, request) = asked((200, body), &public, async |e| e.refresh("r").await).await;

    let expected = [
        ("client_id", "lar der"),
        ("grant_type", "refresh_token"),
        ("refresh_token", "r"),
        ("resource", "https://mcp.example/mcp"),
    ];
    assert_eq!(form(&request), pairs(&expected));
    let tokens = tokens.unwrap();
    assert!(tokens.refresh.is_none() && tokens.scopes.is_none() && tokens.lifetime.is_none());
}

#[tokio::test]
async fn an_exchange_is_a_grant_of_its_own_and_may_be_refused_with_any_status_of_the_client() {
    let scopes = ["one".to_owned(), "two".to_owned()];
    let grant = ExchangeGrant { subject_token: "subject", audience: Some("crm"), scopes: &scopes };
    let identity = client(Some("s"), false);

    let body = r#"{"access_token":"a","token_type":"N_A"}"#;
    let (tokens, request) = asked((200, body), &identity, async |e| e.exchange(&grant).await).await;
    assert!(!tokens.unwrap().is_bearer);
    let expected = [
        ("audience", "crm"),
        ("grant_type", EXCHANGE),
        ("requested_token_type", ACCESS_TOKEN),
        ("resource", "https://mcp.example/mcp"),
        ("scope", "one two"),
        ("subject_token", "subject"),
        ("subject_token_type", ACCESS_TOKEN),
    ];
    assert_eq!(form(&request), pairs(&expected));

    let body = r#"{"error":"access_denied"}"#;
    for status in [400, 401, 403] {
        let (refused, _) =
            asked((status, body), &identity, async |e| e.exchange(&grant).await).await;
        assert_eq!(refused.unwrap_err(), refusal("access_denied"), "{status}");
    }
}

fn refusal(code: &str) -> TokenError {
    TokenError::Refused { code: code.to_owned(), description: None }
}

#[tokio::test]
async fn only_the_statuses_of_the_rfc_and_an_error_with_status_200_are_verdicts() {
    let identity = client(None, false);
    let error = r#"{"error":"invalid_grant"}"#;
    for status in [200, 400, 401] {
        let (refused, _) = asked((status, error), &identity, async |e| e.refresh("r").await).await;
        assert_eq!(refused.unwrap_err(), refusal("invalid_grant"), "{status}");
    }

    let token = r#"{"access_token":"hush","token_type":"bearer"}"#;
    let cases = [(403, error), (429, error), (503, error), (201, token), (200, "hush"), (200, "")];
    for (status, body) in cases {
        let (none, _) = asked((status, body), &identity, async |e| e.refresh("r").await).await;
        let problem = none.unwrap_err();
        assert!(matches!(problem, TokenError::Unavailable(_)), "{status} {body}");
        assert!(!problem.to_string().contains("hush"), "{problem}");
    }
}

#[tokio::test]
async fn tokens_are_revoked_on_this_machine_over_http_too() {
    let identity = client(Some("s"), true);
    let revoked = async |status, body, token| {
        let (url, answered) = endpoint(status, body).await;
        let result = identity.revoke(&fetcher(), &url, token).await;
        (result, form(&answered.await.unwrap()))
    };

    let (result, form) = revoked(200, "", Revocation::Refresh("r")).await;
    result.unwrap();
    let expected = [
        ("client_id", "lar der"),
        ("client_secret", "s"),
        ("token", "r"),
        ("token_type_hint", "refresh_token"),
    ];
    assert_eq!(form, pairs(&expected));

    let unsupported = r#"{"error":"unsupported_token_type"}"#;
    let (result, form) = revoked(400, unsupported, Revocation::Access("a")).await;
    result.unwrap();
    assert!(form.contains(&("token_type_hint".to_owned(), "access_token".to_owned())));

    let (result, _) = revoked(400, r#"{"error":"invalid_client"}"#, Revocation::Access("a")).await;
    assert_eq!(result.unwrap_err(), refusal("invalid_client"));
    let (result, _) = revoked(503, unsupported, Revocation::Access("a")).await;
    assert!(matches!(result.unwrap_err(), TokenError::Unavailable(_)));
}
