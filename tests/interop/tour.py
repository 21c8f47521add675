"""A tour of the servers with the official Python client.

    python tour.py legacy|modern EXAMPLE_URL LARDER_URL
"""

import sys
import traceback
import warnings
from contextlib import AsyncExitStack
from typing import Literal

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.extension import ClientExtension, ResultClaim

PATIENCE = 20
TASKS = "io.modelcontextprotocol/tasks"

# Sampling and logging are deprecated, but still part of the tour.
warnings.simplefilter("ignore")


class Task(types.Result):
    """The result of a call that has become a task."""

    result_type: Literal["task"] = "task"
    task_id: str


class TaskParams(types.RequestParams):
    task_id: str


class GetTask(types.Request[TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    name_param = "taskId"


class CancelTask(types.Request[TaskParams, Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"
    name_param = "taskId"


class TaskState(types.Result):
    status: str
    result: types.CallToolResult | None = None


class FollowsTasks(ClientExtension):
    """Follows tasks: the client does not support them, but has the extension points for it."""

    identifier = TASKS

    def __init__(self):
        self.seen = []

    def claims(self):
        return [ResultClaim(result_type="task", model=Task, resolve=self.follow)]

    async def follow(self, task, context):
        params = TaskParams(task_id=task.task_id)
        try:
            while True:
                state = await context.session.send_request(GetTask(params=params), TaskState)
                self.seen.append(state.status)
                if state.status not in ("working", "input_required"):
                    return state.result
                await anyio.sleep(0.05)
        except anyio.get_cancelled_exc_class():
            # A task is not cancelled with the request.
            with anyio.CancelScope(shield=True):
                await context.session.send_request(CancelTask(params=params), types.EmptyResult)
                state = await context.session.send_request(GetTask(params=params), TaskState)
                self.seen.append(state.status)
            raise


class Heard:
    """The notifications and requests of the servers."""

    def __init__(self):
        self.logs, self.updated, self.tools, self.asked = [], [], 0, []

    async def log(self, params):
        self.logs.append(params.data)

    async def message(self, message):
        if isinstance(message, types.ResourceUpdatedNotification):
            self.updated.append(message.params.uri)
        elif isinstance(message, types.ToolListChangedNotification):
            self.tools += 1

    async def elicit(self, _, params):
        self.asked.append(params.message)
        values = {"username": "ana", "email": "ana@example.com", "name": "Ana", "color": "blue"}
        wanted = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={key: values[key] for key in wanted})


async def sample(_, __):
    content = types.TextContent(type="text", text="from the model")
    return types.CreateMessageResult(role="assistant", model="m", content=content)


async def roots(_):
    return types.ListRootsResult(roots=[types.Root(uri="file:///a")])


async def eventually(what, holds):
    with anyio.move_on_after(PATIENCE):
        while not holds():
            await anyio.sleep(0.01)
        return
    raise AssertionError(f"waited too long for {what}")


def text(result):
    assert not result.is_error, result
    return result.content[0].text


async def refused(code, attempt):
    try:
        await attempt
    except MCPError as error:
        assert error.error.code == code, error.error
    else:
        raise AssertionError("the request succeeded")


class Tour:
    def __init__(self, modern, example, larder, heard, follows):
        self.modern, self.example, self.larder = modern, example, larder
        self.heard, self.follows = heard, follows

    async def call(self, name, arguments=None, at=None, **options):
        return text(await (at or self.example).call_tool(name, arguments or {}, **options))

    async def connect(self):
        expected = "2026-07-28" if self.modern else "2025-11-25"
        assert self.example.protocol_version == expected, self.example.protocol_version
        assert self.example.server_info.name == "larder-conformance"

    async def list(self):
        tools = (await self.example.list_tools()).tools
        assert any(tool.name == "test_simple_text" for tool in tools)
        resources = (await self.example.list_resources()).resources
        assert any(str(resource.uri) == "test://static-text" for resource in resources)
        templates = (await self.example.list_resource_templates()).resource_templates
        assert templates[0].uri_template == "test://template/{id}/data"

    async def call_and_fail(self):
        assert await self.call("test_simple_text") == "This is a simple text response for testing."
        failed = await self.example.call_tool("test_error_handling", {})
        assert failed.is_error
        await refused(-32602, self.example.call_tool("nope", {}))

    async def mirrored_header(self):
        assert await self.call("test_custom_header", {"value": "Zürich"}) == "Zürich"

    async def progress(self):
        told = []

        async def tell(progress, total, message):
            told.append(progress)

        await self.call("test_tool_with_progress", progress_callback=tell)
        assert told == [0, 50, 100], told

    async def logging(self):
        if not self.modern:
            await self.example.set_logging_level("info")
        await self.call("test_tool_with_logging")
        await eventually("three log messages", lambda: len(self.heard.logs) == 3)

    async def elicit(self):
        said = await self.call("test_elicitation", {"message": "Who are you?"})
        assert said == "User response: accept ana ana@example.com", said
        assert self.heard.asked == ["Who are you?"], self.heard.asked
        said = await self.call("test_input_required_result_multi_round")
        assert said == "Hello, Ana, who likes blue!", said

    async def sample(self):
        said = await self.call("test_sampling", {"prompt": "Say something."})
        assert said == "LLM response: from the model", said

    async def roots(self):
        said = await self.call("test_input_required_result_list_roots")
        assert said == "There are 1 roots.", said

    async def prompts(self):
        prompts = (await self.example.list_prompts()).prompts
        assert any(prompt.name == "test_simple_prompt" for prompt in prompts)
        arguments = {"arg1": "{a}", "arg2": "b"}
        got = await self.example.get_prompt("test_prompt_with_arguments", arguments)
        assert got.messages[0].content.text == "Prompt with arguments: arg1='{a}', arg2='b'"
        await refused(-32602, self.example.get_prompt("test_prompt_with_arguments"))

    async def completion(self):
        reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        argument = {"name": "arg1", "value": "test"}
        completed = await self.example.complete(reference, argument)
        assert completed.completion.values == ["test", "testValue1", "testing"], completed

    async def list_changed(self):
        if self.modern:
            with anyio.fail_after(PATIENCE):
                async with self.example.listen(tools_list_changed=True) as changes:
                    await self.call("test_trigger_tool_change")
                    async for change in changes:
                        assert type(change).__name__ == "ToolsListChanged", change
                        return
        await self.call("test_trigger_tool_change")
        await eventually("a changed list", lambda: self.heard.tools > 0)

    async def subscribe(self):
        uri = await self.call("create_resource", {"text": "one"}, self.larder)
        update = {"uri": uri, "text": "two"}
        if self.modern:
            with anyio.fail_after(PATIENCE):
                async with self.larder.listen(resource_subscriptions=[uri]) as changes:
                    await self.call("update_resource", update, self.larder)
                    async for change in changes:
                        assert str(change.uri) == uri, change
                        break
        else:
            await self.larder.subscribe_resource(uri)
            await self.call("update_resource", update, self.larder)
            await eventually("an update", lambda: uri in map(str, self.heard.updated))
            await self.larder.unsubscribe_resource(uri)
        assert (await self.larder.read_resource(uri)).contents[0].text == "two"

    async def large_resource(self):
        large = "".join(f'{n} événement «😀» "quoted"\t\\\n' for n in range(30_000))
        uri = await self.call("create_resource", {"text": large}, self.larder)
        assert (await self.larder.read_resource(uri)).contents[0].text == large
        window = {"uri": uri, "offset": 29_999, "limit": 1}
        assert "29999 événement" in await self.call("read_resource", window, self.larder)

    async def missing_resource(self):
        code = -32602 if self.modern else -32002
        await refused(code, self.example.read_resource("test://nope"))

    async def resume(self):
        # In a session, the server closes the connection during this call; in the modern era it does not.
        assert await self.call("test_reconnection") == "The client came back for this."

    async def cancel(self):
        with anyio.move_on_after(0.3) as scope:
            await self.example.call_tool("slow_compute", {"seconds": 60})
        assert scope.cancelled_caught
        assert self.follows.seen[-1:] == (["cancelled"] if self.modern else []), self.follows.seen
        await self.call("test_simple_text")

    async def tasks(self):
        self.follows.seen.clear()
        said = await self.call("slow_compute", {"seconds": 0.3, "label": "it"})
        assert said == "Computed it in 0.3 s.", said
        # Sessions have no tasks, so they get the result itself.
        assert self.follows.seen[-1:] == (["completed"] if self.modern else []), self.follows.seen
        assert not self.modern or "working" in self.follows.seen, self.follows.seen


STEPS = [
    "connect", "list", "call_and_fail", "mirrored_header", "progress", "logging", "elicit",
    "sample", "roots", "prompts", "completion", "list_changed", "subscribe", "large_resource",
    "missing_resource", "resume", "cancel", "tasks",
]


async def main(era, example_url, larder_url):
    modern, heard, follows = era == "modern", Heard(), FollowsTasks()
    options = {
        # "auto" asks the server for its versions instead of assuming one.
        "mode": "auto" if modern else "legacy",
        "elicitation_callback": heard.elicit,
        "sampling_callback": sample,
        "list_roots_callback": roots,
        "logging_callback": heard.log,
        "log_level": "info" if modern else None,
        "message_handler": heard.message,
        "extensions": [follows],
        "read_timeout_seconds": PATIENCE,
    }
    async with AsyncExitStack() as stack:
        example = await stack.enter_async_context(Client(example_url, **options))
        larder = await stack.enter_async_context(Client(larder_url, **options))
        tour = Tour(modern, example, larder, heard, follows)
        for name in STEPS:
            try:
                await getattr(tour, name)()
                print(f"ok    {name.replace('_', ' ')}", flush=True)
            except BaseException:
                print(f"WRONG {name.replace('_', ' ')}: {traceback.format_exc()}", flush=True)
                raise SystemExit(1) from None
    print("ok    close", flush=True)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
