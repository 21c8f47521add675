"""A client of a server on standard input and output, which counts what a model would read and write."""

import json
import queue
import subprocess
import threading

SECONDS = 300
# What a host gives a model of a tool.
SHOWN_OF_A_TOOL = ("name", "description", "inputSchema")


class Ended(Exception):
    """The server ended, or did not answer."""


def size(value):
    """Bytes of a text, or of a value as compact JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode())


class Server:
    """A server that was started for one conversation."""

    def __init__(self, command, folder, log):
        self.log = log.open("ab")
        self.process = subprocess.Popen(
            [str(part) for part in command], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log
        )
        self.answers = queue.Queue()
        self.last_id = 0
        self.log_path = log
        threading.Thread(target=self.read, daemon=True).start()

        client = {"name": "context", "version": "1"}
        opened = self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self.instructions = opened["result"].get("instructions") or ""
        self.send({"method": "notifications/initialized"})
        listed = self.ask("tools/list", {})["result"]["tools"]
        self.tools = [{key: tool[key] for key in SHOWN_OF_A_TOOL if tool.get(key)} for tool in listed]

    def read(self):
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if "method" not in message:
                self.answers.put(message)
            elif "id" in message:
                self.send({"id": message["id"], "result": {}})
        self.answers.put(None)

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.last_id += 1
        try:
            self.send({"id": self.last_id, "method": method, "params": params})
            while True:
                answer = self.answers.get(timeout=SECONDS)
                if answer is None:
                    raise Ended(f"the server ended; see {self.log_path}")
                if answer.get("id") == self.last_id:
                    return answer
        except (queue.Empty, OSError) as error:
            raise Ended(f"the server did not answer {method}; see {self.log_path}") from error

    def call(self, name, arguments):
        """The text that a model reads, and whether it is an error."""
        answer = self.ask("tools/call", {"name": name, "arguments": arguments})
        if error := answer.get("error"):
            return error["message"], True
        result = answer["result"]
        texts = [block["text"] for block in result.get("content", []) if "text" in block]
        if not texts and "structuredContent" in result:
            texts = [json.dumps(result["structuredContent"], ensure_ascii=False)]
        return "\n".join(texts), bool(result.get("isError"))

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
