//! A host that starts Larder over standard input and output, and answers what it is asked.

use std::process::Stdio;

use larder::upstream::Settings;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
};

use super::command_line;
use crate::support::{Legacy, patiently, process::larder};

pub(super) struct Host {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    last_id: i64,
    /// The roots that it names.
    pub(super) roots: Vec<String>,
    /// The methods that it was asked.
    pub(super) asked: Vec<String>,
    /// The notifications that it was sent.
    pub(super) told: Vec<String>,
}

impl Host {
    /// Starts Larder in front of an upstream, in this environment.
    pub(super) async fn start(
        settings: &Settings,
        capabilities: Value,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut arguments = vec!["serve", "--stdio", "--"];
        arguments.extend(command_line(settings).iter().map(String::as_str));
        Self::run(&arguments, capabilities, environment).await
    }

    /// Starts Larder with these arguments.
    pub(super) async fn run(
        arguments: &[&str],
        capabilities: Value,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut command = larder(arguments);
        command.envs(environment.iter().copied()).stdin(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let (roots, asked, told) = (Vec::new(), Vec::new(), Vec::new());
        let mut host = Self { child, input, output, last_id: 0, roots, asked, told };

        let mut params = Legacy::initialize("2025-11-25")["params"].clone();
        params["capabilities"] = capabilities;
        host.request("initialize", params).await;
        host.notify("notifications/initialized").await;
        host
    }

    async fn write(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub(super) async fn notify(&mut self, method: &str) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method })).await;
    }

    /// Sends a request, and answers questions until its response comes.
    pub(super) async fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&body).await;
        loop {
            let message = self.next().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Reads a message, and answers it if it is a question.
    pub(super) async fn next(&mut self) -> Value {
        let line = patiently("a message", self.output.next_line()).await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => {
                self.asked.push(method.to_owned());
                let roots: Vec<_> = self.roots.iter().map(|uri| json!({ "uri": uri })).collect();
                let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": roots } });
                self.write(&answer).await;
            }
            (Some(method), None) => self.told.push(method.to_owned()),
            _ => {}
        }
        message
    }

    /// Answers questions until so many were asked.
    pub(super) async fn is_asked(&mut self, times: usize) {
        while self.asked.len() < times {
            self.next().await;
        }
    }

    /// Calls a tool. Returns the text of the first block of its result.
    pub(super) async fn call(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({ "name": tool, "arguments": arguments });
        let response = self.request("tools/call", params).await;
        let text = response["result"]["content"][0]["text"].as_str();
        text.map_or_else(|| response.to_string(), str::to_owned)
    }

    /// The names of the listed tools.
    pub(super) async fn tools(&mut self) -> Vec<String> {
        let response = self.request("tools/list", json!({})).await;
        let tools = response["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Closes the input, and waits until Larder has ended.
    pub(super) async fn end(mut self) {
        drop(self.input);
        let ended = patiently("the end", self.child.wait()).await.unwrap();
        assert_eq!(ended.code(), Some(0));
    }
}
