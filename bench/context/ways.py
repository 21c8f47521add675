"""The ways to an answer. Each is an agent without a model, which may use only what it was shown.

`Conversation` counts what the context has, and refuses arguments with names that nothing in it has shown. An agent that
is refused looks first, as far as its way has a look, and gives up otherwise.
"""

import json
import random
import re
import time
from typing import NamedTuple

import servers
from client import Ended, Server, size
from tasks import INTENTS

CUT = 25_000
CUT_NOTE = "\n\n[Result was cut at 25,000 characters]"
LOOK = 1_500
VARIANTS = ("plain", "wandering", "retrying")

# Words of SQL, jq, Python and regular expressions, which a model knows.
KNOWN = set(
    """select from where group order by desc count sum limit offset like and substr avg max min length floor sort map add
    arrays max_by true false null import json re collections counter most_common findall return await call_tool if
    else for in isinstance str dict list values split startswith key lambda sorted int loads none int len not is or
    content result t_zA_Z""".lower().split()
)
CELL = re.compile(r"[a-z]{1,3}[0-9]+")
WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{2,}")
URI = re.compile(r"larder://[^\s\",}]+")


class GivesUp(Exception):
    """The agent has no answer, and knows it."""


class NotShown(GivesUp):
    """Arguments have a name that nothing has shown."""


class Measured(NamedTuple):
    answer: object
    definitions: int
    results: int
    arguments: int
    calls: int
    seconds: float
    failure: str | None


class Conversation:
    """What the context has, and how it grew."""

    def __init__(self, server, words, tools):
        self.server = server
        self.shown = [words.lower(), json.dumps(tools).lower(), server.instructions.lower()]
        self.definitions = size(tools) + size(server.instructions)
        self.results = self.arguments = self.calls = 0
        self.seconds = 0.0

    def call(self, name, arguments, unchecked=False):
        """The text of a call by this server, and whether it failed."""
        return self.account(name, arguments, lambda: self.server.call(name, arguments), unchecked)

    def account(self, name, arguments, run, unchecked=False):
        if not unchecked:
            self.check(arguments)
        started = time.monotonic()
        text, failed = run()
        self.seconds += time.monotonic() - started
        self.calls += 1
        self.arguments += size(name) + size(arguments)
        self.results += size(text)
        self.shown.append(text.lower())
        return text, failed

    def check(self, arguments):
        for word in WORD.findall(json.dumps(arguments).replace("\\n", " ").replace("\\\"", '"').lower()):
            if word not in KNOWN and not CELL.fullmatch(word) and not any(word in text for text in self.shown):
                raise NotShown(f"nothing showed {word}")


class Way:
    """Calls the server's own tools, and reads whole results."""

    name = "direct"
    ours = False
    peer = False

    def start(self, server_name, folder, log):
        return Server(self.command(servers.command(server_name, folder)), folder, log)

    def command(self, command):
        return command

    def own_tools(self):
        """Tools of the host beside those of the server."""
        return []

    def run(self, server, task, folder, variant, others):
        """Answer a task in a conversation of its own."""
        task = placed(task, folder)
        talk = Conversation(server, task.words, server.tools + self.own_tools())
        seed = random.Random(f"{task.name} {variant}")
        try:
            answer = self.vary(talk, task, variant, seed, others, folder)
            failure = None
        except (GivesUp, Ended) as error:
            answer, failure = None, str(error)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            # Reading as the truth does failed: what the agent has is not the whole, and it sees that.
            answer, failure = None, f"what was shown cannot be read as an answer ({type(error).__name__})"
        return Measured(answer, talk.definitions, talk.results, talk.arguments, talk.calls, talk.seconds, failure)

    def vary(self, talk, task, variant, seed, others, folder):
        self.discover(talk, task)
        if variant == "wandering":
            # Another large result of the server, or the right one without its question.
            other = placed(seed.choice(others or (task,)), folder)
            talk.shown.append(other.words.lower())
            if other.calls != task.calls:
                self.discover(talk, other)
            self.look(talk, other)
            return self.answer(talk, task)
        if variant == "retrying":
            self.mistake(talk, task, seed)
            self.answer(talk, task)
        return self.answer(talk, task)

    def discover(self, talk, task):
        """Find the tools of a task, where they are not listed."""

    def look(self, talk, task):
        """The result of a task's calls, as far as this way shows it."""
        return self.last(talk, task)

    def mistake(self, talk, task, seed):
        """A call with one word misspelt."""
        call = task.calls[0]
        if call.arguments:
            talk.call(call.tool, misspelt(call.complete([]), seed), unchecked=True)

    def last(self, talk, task, **more):
        """Make the calls of a task, and give the text of the last."""
        texts = []
        for number, call in enumerate(task.calls, 1):
            extra = more if number == len(task.calls) else {}
            text, failed = self.tool(talk, call.tool, call.complete(texts) | extra)
            if failed:
                raise GivesUp(f"{call.tool}: {text[:160]}")
            texts.append(text)
        return texts[-1]

    def tool(self, talk, name, arguments):
        return talk.call(name, arguments)

    def answer(self, talk, task):
        return task.read(self.last(talk, task))


class Direct(Way):
    pass


class Cut(Way):
    """The host cuts results. The agent sees that, and uses the pages of the tool if there are any."""

    name = "cut at 25,000 characters"
    peer = True
    note = CUT_NOTE

    def tool(self, talk, name, arguments):
        return talk.account(name, arguments, lambda: self.cut(*talk.server.call(name, arguments)))

    def cut(self, text, failed):
        return (text if len(text) <= CUT else text[:CUT] + CUT_NOTE), failed

    def answer(self, talk, task):
        text = self.last(talk, task)
        if self.note.strip() not in text:
            return task.read(text)
        if not task.page:
            raise GivesUp("the result was cut, and the tool has no pages")
        return task.read("\n".join(self.pages(talk, task)))

    def pages(self, talk, task):
        number = 0
        while arguments := task.page(number):
            text, failed = self.tool(talk, task.calls[-1].tool, arguments)
            if failed:
                raise GivesUp(text[:160])
            yield text
            number += 1


class File(Way):
    """The host writes large results to files. The agent searches them, as in Claude Code: lines, counts or matches."""

    name = "host's file and grep"
    peer = True
    LINE = 2_000

    def own_tools(self):
        path = {"type": "string"}
        return [
            {
                "name": "Grep",
                "description": "Searches a file for a regular expression. output_mode: content (matching lines), count",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "pattern": path,
                        "path": path,
                        "output_mode": {"enum": ["content", "count"]},
                        "-o": {"type": "boolean", "description": "only the matches"},
                    },
                    "required": ["pattern", "path"],
                },
            },
            {
                "name": "Read",
                "description": "Reads lines of a file: at most 2,000, each cut at 2,000 characters",
                "inputSchema": {
                    "type": "object",
                    "properties": {"path": path, "offset": {"type": "integer"}, "limit": {"type": "integer"}},
                    "required": ["path"],
                },
            },
        ]

    def tool(self, talk, name, arguments):
        return talk.account(name, arguments, lambda: self.file(*talk.server.call(name, arguments)))

    def file(self, text, failed):
        if len(text) <= CUT:
            return text, failed
        self.stored = text
        return f"Output too large ({len(text):,} characters). Saved to results/1.txt\n\nPreview:\n{text[:LOOK]}\n…", failed

    def answer(self, talk, task):
        self.stored = None
        text = self.last(talk, task)
        return task.read(text) if self.stored is None else self.search(talk, task.grep)

    def search(self, talk, grep):
        if grep is None:
            raise GivesUp("no search finds the answer")
        mode = {"output_mode": "content", "-o": True} if grep.read else {"output_mode": "count"}
        arguments = {"pattern": grep.pattern, "path": "results/1.txt", **mode}
        found, _ = talk.account("Grep", arguments, lambda: (self.grep(grep), False))
        return grep.read(found) if grep.read else int(found)

    def grep(self, grep):
        pattern = re.compile(grep.pattern)
        lines = self.stored.splitlines()
        if grep.read:
            return "\n".join(match[0] for line in lines for match in pattern.finditer(line))
        return str(sum(bool(pattern.search(line)) for line in lines))


class LarderTools(Way):
    """The agent calls a tool, gets a preview of what is large, and queries what is stored."""

    name = "Larder's tools"
    ours = True
    environment = {"LARDER_TOOLS__CATALOGUE_CACHE": "off", "LARDER_QUERY__SECONDS": "90"}
    binary = None

    def command(self, command):
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        return ["env", *settings, self.binary, "serve", "--stdio", "--", *command]

    def answer(self, talk, task):
        text = self.last(talk, task)
        return self.query(talk, task, stored(text)) if stored(text) else task.read(text)

    def query(self, talk, task, uri):
        text, failed = self.tool(talk, "query_resource", {"from": uri, **task.projection})
        if failed:
            raise GivesUp(f"query_resource: {text[:200]}")
        return rows_below(text, task.projection)

    def mistake(self, talk, task, seed):
        if not task.projection:
            return super().mistake(talk, task, seed)
        if uri := stored(self.last(talk, task)):
            arguments = {"from": uri, **misspelt(task.projection, seed)}
            talk.account("query_resource", arguments, lambda: talk.server.call("query_resource", arguments), unchecked=True)


class LarderProjections(LarderTools):
    """The agent asks for the answer in the call, if it knows the names; otherwise it looks first."""

    name = "Larder's projections"

    def answer(self, talk, task):
        if not task.large or not task.projection:
            return super().answer(talk, task)
        try:
            talk.check(task.projection)
        except NotShown:
            return super().answer(talk, task)
        return rows_below(self.last(talk, task, _larder=task.projection), task.projection)

    def mistake(self, talk, task, seed):
        if not task.projection:
            return Way.mistake(self, talk, task, seed)
        texts = []
        for call in task.calls[:-1]:
            texts.append(self.tool(talk, call.tool, call.complete(texts))[0])
        arguments = task.calls[-1].complete(texts) | {"_larder": misspelt(task.projection, seed)}
        talk.account(task.calls[-1].tool, arguments, lambda: self.misspelt_call(talk, task, arguments), unchecked=True)

    def misspelt_call(self, talk, task, arguments):
        return talk.server.call(task.calls[-1].tool, arguments)


class LarderFound(LarderProjections):
    """As projections, with `listing = "search"`: the agent finds tools instead of having a list of them."""

    name = "Larder's projections, tools by search"
    environment = LarderProjections.environment | {"LARDER_TOOLS__LISTING": "search"}

    def discover(self, talk, task):
        for call in task.calls:
            find(talk, "find_tools", call.tool)

    def tool(self, talk, name, arguments):
        return talk.call("call_tool", {"name": name, "arguments": arguments})

    def mistake(self, talk, task, seed):
        if not task.projection:
            call = task.calls[0]
            wrapped = {"name": call.tool, "arguments": misspelt(call.complete([]), seed)}
            talk.call("call_tool", wrapped, unchecked=True)
        else:
            super().mistake(talk, task, seed)

    def misspelt_call(self, talk, task, arguments):
        return talk.server.call("call_tool", {"name": task.calls[-1].tool, "arguments": arguments})


class Limiting(Cut):
    name = "FastMCP, ResponseLimiting"
    note = "[Response truncated due to size limit]"
    mode = "limiting"

    def command(self, command):
        return [servers.TARGET / "context-fastmcp-venv/bin/python", servers.HERE / "peer.py", self.mode, "--", *command]

    def tool(self, talk, name, arguments):
        return talk.call(name, arguments)


class CodeMode(Way):
    """The agent finds tools, gets their parameters, and runs Python that returns the answer."""

    name = "FastMCP, CodeMode"
    peer = True
    mode = "code"
    command = Limiting.command

    def discover(self, talk, task):
        for call in task.calls:
            find(talk, "search", call.tool)
        talk.call("get_schema", {"tools": [call.tool for call in task.calls]})

    def answer(self, talk, task):
        try:
            text = self.execute(talk, task, task.python)
        except NotShown:
            self.look(talk, task)
            text = self.execute(talk, task, task.python)
        return unwrapped(text) if task.large else task.read(contents(text))

    def look(self, talk, task):
        return self.execute(talk, task, f"return str(t)[:{LOOK}]")

    def mistake(self, talk, task, seed):
        try:
            self.execute(talk, task, misspelt({"code": task.python}, seed)["code"], unchecked=True)
        except GivesUp:
            pass

    def execute(self, talk, task, program, unchecked=False):
        code = self.fetching(task) + program
        text, failed = talk.call("execute", {"code": code}, unchecked)
        if failed:
            raise GivesUp(f"execute: {text[:200]}")
        return text

    def fetching(self, task):
        """The lines that leave the last result in `t`. Text is in a member where a server has a schema for it."""
        lines = []
        for call in task.calls:
            arguments = repr(call.arguments) if not callable(call.arguments) else '{"paths": paths}'
            if callable(call.arguments):
                lines.append("paths = ['manifests/' + l.split(' ')[1] for l in t.split('\\n') if l]")
            lines.append(f'r = await call_tool("{call.tool}", {arguments})')
            lines.append("t = r['content'] if isinstance(r, dict) and 'content' in r else r")
        if task.large and "if isinstance" not in task.python:
            lines.append("t = t['result'] if isinstance(t, dict) else t")
        return "\n".join(lines) + "\n"


WAYS = (Direct, Cut, File, LarderTools, LarderProjections, LarderFound, Limiting, CodeMode)


def find(talk, finder, tool):
    """Find a tool by what it does."""
    text, _ = talk.call(finder, {"query": INTENTS[tool]}, unchecked=True)
    if not re.search(rf"\b{re.escape(tool)}\b", text):
        raise GivesUp(f"{finder} for {INTENTS[tool]!r} does not show {tool}")


def stored(text):
    """The URI in a preview, or None."""
    match = URI.search(text)
    return match[0] if match and text.startswith("PREVIEW") else None


def rows_below(text, projection):
    """The values below the first paragraph, without the header of SQL."""
    head, _, body = text.partition("\n\n")
    if "not complete" in head or not body:
        raise GivesUp(f"the answer is not complete: {head[:160]}")
    return body.split("\n", 1)[1] if "sql" in projection else body


def unwrapped(text):
    """What code returned, which FastMCP gives as a member `result` or as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value.get("result", value) if isinstance(value, dict) else value


def contents(text):
    """The text of a tool's result that code returned as it was."""
    value = unwrapped(text)
    if isinstance(value, dict) and len(value) == 1 and isinstance(next(iter(value.values())), str):
        value = next(iter(value.values()))
    return value if isinstance(value, str) else json.dumps(value)


def placed(task, folder):
    """A task with the folder in its words and arguments."""

    def fill(value):
        if isinstance(value, str):
            return value.replace("{folder}", str(folder))
        return {key: fill(each) for key, each in value.items()} if isinstance(value, dict) else value

    calls = tuple(call._replace(arguments=fill(call.arguments)) for call in task.calls)
    page = task.page and (lambda number: fill(task.page(number)))
    return task._replace(words=fill(task.words), calls=calls, page=page)


def misspelt(arguments, seed):
    """The arguments with two letters swapped in one word of one text."""
    texts = [key for key, value in arguments.items() if isinstance(value, str) and WORD.search(value)]
    if not texts:
        return arguments
    key = seed.choice(texts)
    word = seed.choice(list(WORD.finditer(arguments[key])))
    wrong = word[0][1] + word[0][0] + word[0][2:]
    return arguments | {key: arguments[key][: word.start()] + wrong + arguments[key][word.end() :]}
