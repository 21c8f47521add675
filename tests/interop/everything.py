"""The same requests to server-everything directly and through Larder, with the official Python client.

    python everything.py legacy|modern LARDER_URL SCHEMAS_URL SERVER_COMMAND…

What differs by design is in everything.mjs. SCHEMAS_URL is Larder in front of a server whose schemas
clients refuse.
"""

import json
import re
import sys
import warnings
from contextlib import AsyncExitStack

import anyio
import mcp_types as types
from mcp import MCPError, StdioServerParameters
from mcp.client.client import Client

from tour import PATIENCE, Heard, eventually, roots, sample

# Sampling and logging are deprecated, but still part of the tour.
warnings.simplefilter("ignore")

TIME = re.compile(r"\d{1,2}:\d\d:\d\d( [AP]M)?")
# Nothing of the protocol's era.
SKIPPED = {"resultType", "ttlMs", "cacheScope", "_meta"}
OWN_TEMPLATE = "{+uri}{?lines,bytes,revision}"
URI = "demo://resource/dynamic/text/1"


def comparable(result):
    found = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    kept = {key: value for key, value in found.items() if key not in SKIPPED}
    return json.loads(TIME.sub("now", json.dumps(kept)))


async def outcome(request):
    try:
        return comparable(await request)
    except MCPError as error:
        return error.error.code


async def elicit(_, params):
    return types.ElicitResult(action="accept", content={"name": "Ana", "check": True})


class Tour:
    def __init__(self, modern, server, larder, schemas, heard):
        self.modern, self.server, self.larder, self.schemas = modern, server, larder, schemas
        self.heard = heard

    async def same(self, request):
        expected, got = await outcome(request(self.server)), await outcome(request(self.larder))
        assert got == expected, f"\n{got}\ninstead of\n{expected}"
        return got

    async def called(self, name, **arguments):
        return await self.same(lambda client: client.call_tool(name, arguments))

    async def tools(self):
        async def listed(client):
            tools = comparable(await client.list_tools())["tools"]
            for tool in tools:
                tool["structured"] = tool.pop("outputSchema", None) is not None
                tool.pop("execution", None)
                # Larder adds an argument of its own.
                tool["inputSchema"].setdefault("properties", {}).pop("_larder", None)
            return {tool["name"]: tool for tool in tools}

        expected, got = await listed(self.server), await listed(self.larder)
        for name, tool in expected.items():
            assert got[name] == tool, f"\n{got[name]}\ninstead of\n{tool}"
        assert len(expected) > 10 and "search_resource" in got

    async def prompts(self):
        await self.same(lambda client: client.list_prompts())
        for name, arguments in [
            ("simple-prompt", None),
            ("args-prompt", {"city": "Bern", "state": "BE"}),
            ("completable-prompt", {"department": "Sales", "name": "David"}),
            ("resource-prompt", {"resourceType": "Text", "resourceId": "2"}),
        ]:
            got = await self.same(lambda client: client.get_prompt(name, arguments))
            assert got["messages"], name

    async def resources(self):
        resources = (await self.same(lambda client: client.list_resources()))["resources"]
        assert len(resources) > 5
        for uri in [*(each["uri"] for each in resources), URI, URI.replace("text", "blob")]:
            await self.same(lambda client: client.read_resource(uri))
        templates = [
            [each for each in comparable(await client.list_resource_templates())["resourceTemplates"]
             if each["uriTemplate"] != OWN_TEMPLATE]
            for client in (self.server, self.larder)
        ]
        assert templates[0] == templates[1], templates

    async def calls_of_tools(self):
        await self.called("echo", message='Zürich "😀"')
        await self.called("get-sum", a=2, b=40)
        await self.called("get-sum", a="x")
        await self.called("get-tiny-image")
        await self.called("get-resource-links", count=5)
        await self.called("get-resource-reference", resourceType="Blob", resourceId=3)
        for location in ("Chicago", "New York", "Los Angeles"):
            assert (await self.called("get-structured-content", location=location))["structuredContent"]
        await self.called("get-annotated-message", messageType="error", includeImage=True)

    async def progress(self):
        for client in (self.server, self.larder):
            told = []

            async def tell(progress, total, message):
                told.append((progress, total))

            arguments = {"duration": 0.2, "steps": 4}
            await client.call_tool("trigger-long-running-operation", arguments, progress_callback=tell)
            assert told == [(1, 4), (2, 4), (3, 4), (4, 4)], told

    async def completions(self):
        prompt = types.PromptReference(type="ref/prompt", name="completable-prompt")
        argument = {"name": "department", "value": "S"}
        got = await self.same(lambda client: client.complete(prompt, argument))
        assert got["completion"]["values"], got

    async def questions(self):
        if self.modern:
            return
        for name, arguments in [
            ("trigger-elicitation-request", {}),
            ("trigger-sampling-request", {"prompt": "Say something.", "maxTokens": 10}),
            ("get-roots-list", {}),
        ]:
            assert not (await self.called(name, **arguments)).get("isError"), name

    async def subscribe(self):
        async def toggle():
            await self.larder.call_tool("toggle-subscriber-updates", {})

        if self.modern:
            with anyio.fail_after(PATIENCE):
                async with self.larder.listen(resource_subscriptions=[URI]) as changes:
                    await toggle()
                    async for change in changes:
                        assert str(change.uri) == URI, change
                        break
        else:
            await self.larder.subscribe_resource(URI)
            await toggle()
            await eventually("an update", lambda: URI in map(str, self.heard.updated))
            await self.larder.unsubscribe_resource(URI)
        await toggle()

    async def a_task(self):
        called = await self.larder.call_tool("simulate-research-query", {"topic": "tests"})
        assert called.content[0].text.startswith("# Research Report: tests"), called

    async def schemas_that_clients_refuse(self):
        tools = {tool.name for tool in (await self.schemas.list_tools()).tools}
        assert {"tuple", "broken", "fine"} <= tools, tools
        small = await self.schemas.call_tool("tuple", {})
        assert small.structured_content == {"pair": ["a", 1]}, small
        stored = await self.schemas.call_tool("tuple", {"fill": 100_000})
        assert stored.structured_content["spilled"]["complete"] is False, stored
        assert (await self.schemas.call_tool("broken", {})).content[0].text == "no structure"


STEPS = [
    "tools", "prompts", "resources", "calls_of_tools", "progress", "completions", "questions",
    "subscribe", "a_task", "schemas_that_clients_refuse",
]


async def main(era, larder_url, schemas_url, *command):
    modern, heard = era == "modern", Heard()
    asked = {} if modern else {
        "elicitation_callback": elicit,
        "sampling_callback": sample,
        "list_roots_callback": roots,
    }
    options = {"message_handler": heard.message, "read_timeout_seconds": PATIENCE, **asked}
    async with AsyncExitStack() as stack:
        async def connected(to, mode):
            return await stack.enter_async_context(Client(to, mode=mode, **options))

        server = StdioServerParameters(command=command[0], args=list(command[1:]))
        mode = "auto" if modern else "legacy"
        server = await connected(server, "legacy")
        larder, schemas = await connected(larder_url, mode), await connected(schemas_url, mode)
        tour = Tour(modern, server, larder, schemas, heard)
        for name in STEPS:
            await getattr(tour, name)()
            print(f"ok    {name.replace('_', ' ')}", flush=True)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
