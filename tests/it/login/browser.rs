//! A browser: it keeps cookies, follows redirects until one leads to the client, and answers the
//! question.

use std::collections::BTreeMap;

use reqwest::{Client, Response, Url, redirect};

use super::REDIRECT;
use crate::support::patiently;

pub(super) struct Browser {
    user: String,
    http: Client,
    pub(super) cookies: BTreeMap<String, String>,
    /// The questions that were shown.
    pub(super) pages: Vec<String>,
}

impl Browser {
    /// The browser of this user of the provider.
    pub(super) fn of(user: &str) -> Self {
        Self {
            user: user.to_owned(),
            http: Self::http(),
            cookies: BTreeMap::new(),
            pages: Vec::new(),
        }
    }

    /// An HTTP client that follows no redirects.
    pub(super) fn http() -> Client {
        Client::builder().no_proxy().redirect(redirect::Policy::none()).build().unwrap()
    }

    pub(super) async fn get(&mut self, url: &Url) -> Response {
        let request = self.http.get(url.clone()).header("cookie", self.cookie());
        let response = patiently("a page", request.send()).await.unwrap();
        self.keep_cookies(&response);
        response
    }

    fn cookie(&self) -> String {
        let cookies = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        cookies.collect::<Vec<_>>().join("; ")
    }

    /// Sends the form of a page.
    pub(super) async fn answer(&mut self, page: &Url, form: &str, origin: &str) -> Response {
        let request = self
            .http
            .post(page.clone())
            .header("cookie", self.cookie())
            .header("origin", origin)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.to_owned());
        let response = patiently("a page", request.send()).await.unwrap();
        self.keep_cookies(&response);
        response
    }

    /// Follows redirects. Stops at a URL that `stop` names, before it is requested, or at a page.
    pub(super) async fn follow(
        &mut self,
        mut url: Url,
        stop: &str,
    ) -> Result<Url, (Url, Response)> {
        for _ in 0..12 {
            if url.as_str().contains(stop) || url.as_str().starts_with(REDIRECT) {
                return Ok(url);
            }
            let response = self.get(&url).await;
            let Some(location) = response.headers().get("location") else {
                return Err((url, response));
            };
            url = url.join(location.to_str().unwrap()).unwrap();
            if url.path() == "/auth" && url.query().is_some_and(|q| q.contains("client_id=larder"))
            {
                // Who logs in at the provider.
                url.query_pairs_mut().append_pair("login_hint", &self.user);
            }
        }
        panic!("too many redirects: {url}")
    }

    /// Logs in and answers the question. Returns where the client is reached.
    pub(super) async fn log_in(&mut self, url: Url, decision: &str) -> Url {
        let (page, response) = match self.follow(url, "no such URL").await {
            Ok(back) => return back,
            Err(page) => page,
        };
        let status = response.status();
        let html = patiently("a page", response.text()).await.unwrap();
        assert_eq!(status, 200, "{html}");
        let ticket =
            html.split("name=\"ticket\" value=\"").nth(1).unwrap_or_else(|| panic!("{html}"));
        let form = format!("ticket={}&decision={decision}", ticket.split('"').next().unwrap());
        self.pages.push(html);
        let response = self.answer(&page, &form, &page.origin().ascii_serialization()).await;
        let location = response.headers().get("location").cloned();
        let Some(location) = location else { panic!("{}", response.text().await.unwrap()) };
        page.join(location.to_str().unwrap()).unwrap()
    }

    /// The page that a login ends with.
    pub(super) async fn page(&mut self, url: Url) -> (u16, String) {
        match self.follow(url, "no such URL").await {
            Ok(back) => panic!("{back}"),
            Err((_, response)) => {
                (response.status().as_u16(), patiently("a page", response.text()).await.unwrap())
            }
        }
    }

    fn keep_cookies(&mut self, response: &Response) {
        for cookie in response.headers().get_all("set-cookie") {
            let cookie = cookie.to_str().unwrap();
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }
}
