"""A Larder server of its own, and a client of its tools."""

import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

LISTENING = re.compile(r"larder listening on (http://\S+)")
START_SECONDS = 30
STOP_SECONDS = 10
CALL_SECONDS = 120
# A debug build is many times slower than what people run, and the largest file has 20 MB.
CONFIGURATION = """
[query]
seconds = 90
share_seconds = 90
[compute]
search_seconds = 90
"""


class Answer:
    """What a tool answered: the text that a model reads, and the content for programs."""

    def __init__(self, result):
        self.failed = bool(result.get("isError"))
        self.text = "\n".join(block.get("text", "") for block in result.get("content", []))
        self.structured = result.get("structuredContent") or {}

    @property
    def head(self):
        """The first paragraph, which says how complete the answer is."""
        return self.text.split("\n\n", 1)[0]

    @property
    def body(self):
        """The rows or values below the head."""
        return self.text.split("\n\n", 1)[1] if "\n\n" in self.text else ""

    @property
    def bytes(self):
        """What the answer takes of a model's context."""
        return len(self.text.encode())


class Larder:
    def __init__(self, url):
        self.url = url
        self.session = None
        self.calls = 0
        opened = self.post(
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "questions", "version": "1"},
            },
        )
        assert "result" in opened, opened

    def put(self, uri, content, media_type):
        """Store content under a URI, byte for byte."""
        target = self.url.removesuffix("/mcp") + "/resources?uri=" + urllib.parse.quote(uri, safe="")
        headers = {"Content-Type": media_type}
        request = urllib.request.Request(target, content, headers, method="PUT")
        urllib.request.urlopen(request, timeout=CALL_SECONDS).close()

    def call(self, tool, arguments):
        """Call a tool. An error of the protocol is an answer, too: a model reads it."""
        response = self.post("tools/call", {"name": tool, "arguments": arguments})
        if error := response.get("error"):
            return Answer({"isError": True, "content": [{"text": error["message"]}]})
        return Answer(response["result"])

    def post(self, method, params):
        self.calls += 1
        message = {"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-06-18"}
        request = urllib.request.Request(self.url, json.dumps(message).encode(), headers)

        with urllib.request.urlopen(request, timeout=CALL_SECONDS) as response:
            self.session = response.headers.get("Mcp-Session-Id") or self.session
            text = response.read().decode()
            streamed = "event-stream" in response.headers.get("Content-Type", "")

        if not streamed:
            return json.loads(text)
        messages = (json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:") and line[5:].strip())
        return next(each for each in messages if each.get("id") == self.calls)


@contextmanager
def serving(binary):
    """A server in memory on a free port, which ends with the block."""
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder) / "larder.toml"
        configuration.write_text(CONFIGURATION)
        log_path = Path(folder) / "server.log"
        command = [binary, "serve", "--config", configuration, "--listen", "127.0.0.1:0"]
        with open(log_path, "w") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield Larder(await_url(process, log_path))
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def await_url(process, log_path):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        if match := LISTENING.search(log_path.read_text()):
            return match[1]
        if ended:
            break
        time.sleep(0.05)
    sys.exit(f"The server did not start listening:\n{log_path.read_text()}")
