"""The official Python client in a session that several servers serve, with its streams cut off.

    python replicas.py URL
"""

import sys
import traceback
import warnings

import anyio
import mcp_types as types
from mcp.client.client import Client

PATIENCE = 60
CALLS, AT_ONCE, TO = 40, 8, 6

warnings.simplefilter("ignore")


async def elicit(_, params):
    return types.ElicitResult(action="accept", content={"name": "Ana"})


def text(result):
    assert not result.is_error, result
    return result.content[0].text


async def count(client, number, limiter):
    told = []

    async def tell(progress, total, message):
        told.append(progress)

    async with limiter:
        arguments = {"to": TO, "every": 5 * (number % 4)}
        said = text(await client.call_tool("count", arguments, progress_callback=tell))
    assert said == f"counted to {TO}", said
    # The result may overtake what is told in another task.
    with anyio.move_on_after(PATIENCE):
        while len(told) < TO:
            await anyio.sleep(0.01)
    assert told == list(range(1, TO + 1)), (number, told)


async def main(url):
    updated = []

    async def message(message):
        if isinstance(message, types.ResourceUpdatedNotification):
            updated.append(str(message.params.uri))

    options = {
        "mode": "legacy",
        "elicitation_callback": elicit,
        "message_handler": message,
        "read_timeout_seconds": PATIENCE,
    }
    async with Client(url, **options) as client:
        limiter = anyio.CapacityLimiter(AT_ONCE)
        async with anyio.create_task_group() as calls:
            for number in range(CALLS):
                calls.start_soon(count, client, number, limiter)
        print("ok    calls", flush=True)
        for _ in range(5):
            assert text(await client.call_tool("greet", {})) == "Hello, Ana."
        print("ok    questions", flush=True)
        uri = text(await client.call_tool("create_resource", {"text": "one"}))
        await client.subscribe_resource(uri)
        text(await client.call_tool("update_resource", {"uri": uri, "text": "two"}))
        with anyio.move_on_after(PATIENCE):
            while uri not in updated:
                await anyio.sleep(0.01)
        assert updated == [uri], updated
        assert (await client.read_resource(uri)).contents[0].text == "two"
        print("ok    subscribe", flush=True)
    print("ok    close", flush=True)


if __name__ == "__main__":
    try:
        anyio.run(main, *sys.argv[1:])
    except BaseException:
        print(f"WRONG {traceback.format_exc()}", flush=True)
        raise SystemExit(1) from None
