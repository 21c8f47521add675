"""The official Python client in sessions that several servers serve, with its streams cut off;
and in the middle, if not just "replicas" are asked for, trouble with a server or with Redis.

    python replicas.py replicas|killed|restarted|emptied URL
"""

import sys
import time
import traceback
import warnings
from collections import Counter
from urllib.parse import urljoin

import anyio
import httpx2
import mcp_types as types
from mcp import MCPError
from mcp.client.client import Client

PATIENCE = 60
SESSIONS = 2
# In each session: calls one after the other, so many at once, and those that the trouble meets.
CALLS, AT_ONCE, LONG = 20, 4, 5
# So soon the calls of a killed server end.
SOON = 15

warnings.simplefilter("ignore")


async def elicit(_, params):
    return types.ElicitResult(action="accept", content={"name": "Ana"})


def text(result):
    assert not result.is_error, result
    return result.content[0].text


class Session:
    """Where the servers know it no more, `gone` is set."""

    def __init__(self, url):
        self.updated, self.gone = [], False
        options = {"elicitation_callback": elicit, "message_handler": self.hear}
        self.client = Client(url, mode="legacy", read_timeout_seconds=PATIENCE, **options)

    async def hear(self, message):
        if isinstance(message, types.ResourceUpdatedNotification):
            self.updated.append(str(message.params.uri))

    async def count(self, to, every, heard):
        """Whatever becomes of the call: of what is heard, nothing is missing, twice, or of another."""
        told = []

        async def tell(progress, total, message):
            told.append((progress, total))
            heard()

        try:
            arguments = {"to": to, "every": every}
            said = text(await self.client.call_tool("count", arguments, progress_callback=tell))
            assert said == f"counted to {to}", said
            # The result may overtake what is told in another task.
            with anyio.move_on_after(PATIENCE):
                while len(told) < to:
                    await anyio.sleep(0.01)
            assert len(told) == to, told
        finally:
            assert told == [(n + 1, to) for n in range(len(told))], told


class Calls:
    """Calls that count, each to a number of its own, and go on in another session if need be."""

    def __init__(self, tour, at):
        self.tour = tour
        self.left = [(4 + SESSIONS * n + at, 5 * (n % 3)) for n in range(CALLS)]

    async def __call__(self, session):
        limiter = anyio.CapacityLimiter(AT_ONCE)
        async with anyio.create_task_group() as calls:
            for call in self.left:
                calls.start_soon(self.limited, limiter, session, call)

    async def limited(self, limiter, session, call):
        async with limiter:
            if await self.count(session, *call):
                self.left.remove(call)

    async def count(self, session, to, every, heard=lambda: None, failed=lambda error: None):
        """Whether it counted in this session, however often it was told to try again."""
        while not session.gone:
            try:
                await session.count(to, every, heard)
                return True
            except MCPError as error:
                if not self.tour.passes(error, session):
                    raise
                failed(error)
                await anyio.sleep(0.1)
        return False


class MeetTrouble(Calls):
    """The same while there is trouble, which meets some calls under way."""

    def __init__(self, tour, at):
        super().__init__(tour, at)
        self.long = [60 + at + SESSIONS * n for n in range(LONG)]

    async def __call__(self, session):
        async with anyio.create_task_group() as calls:
            for to in list(self.long):
                calls.start_soon(self.count_far, session, to)
            await self.tour.asked.wait()
            await super().__call__(session)

    async def count_far(self, session, to):
        heard = lambda: self.tour.under_way(to)
        if await self.count(session, to, 150, heard, self.tour.ended):
            self.long.remove(to)


class Tour:
    def __init__(self, trouble, url):
        self.trouble, self.url = trouble, url
        self.reached, self.silent = Counter(), {60 + n for n in range(SESSIONS * LONG)}
        self.all_under_way, self.asked = anyio.Event(), anyio.Event()
        self.since, self.errors, self.renewed = None, [], 0

    async def take(self):
        async with anyio.create_task_group() as sessions:
            for at in range(SESSIONS):
                sessions.start_soon(self.session, at)
            if self.trouble != "replicas":
                await self.ask_for_trouble()

    async def session(self, at):
        calls = (Calls if self.trouble == "replicas" else MeetTrouble)(self, at)
        steps = [(self.trouble, calls), ("questions", questions), ("subscribe", subscribe)]
        while steps:
            session = Session(self.url)
            async with session.client:
                while steps and not session.gone:
                    name, step = steps[0]
                    await step(session)
                    if not session.gone:
                        steps.pop(0)
                        self.done(name)
            self.renewed += session.gone
        self.done("close")

    def done(self, name):
        self.reached[name] += 1
        if self.reached[name] == SESSIONS:
            if self.trouble != "replicas" and name == self.trouble:
                self.check()
            print(f"ok    {name}", flush=True)

    def under_way(self, to):
        self.silent.discard(to)
        if not self.silent:
            self.all_under_way.set()

    async def ask_for_trouble(self):
        await self.all_under_way.wait()
        self.since = time.monotonic()
        self.asked.set()
        async with httpx2.AsyncClient(timeout=PATIENCE) as client:
            response = await client.post(urljoin(self.url, "/trouble"))
        assert response.status_code == 204, response

    def passes(self, error, session):
        """Whether whoever is told so may well try again, in a new session if this one is gone."""
        if "Send initialize again" in error.message:
            session.gone = self.trouble == "emptied"
            return session.gone
        # Said by the client: of streams that cannot be resumed, and of the proxy's answer where
        # a server dies.
        own = {
            "emptied": "SSE stream ended and reconnection attempts were exhausted",
            "killed": "Server returned an error response",
        }
        again = self.trouble != "replicas" and "again" in error.message
        return again or error.message == own.get(self.trouble)

    def ended(self, error):
        self.errors.append((error, time.monotonic() - self.since))

    def check(self):
        assert self.renewed == (SESSIONS if self.trouble == "emptied" else 0), self.renewed
        if self.trouble == "restarted":
            assert not self.errors, self.errors
        if self.trouble == "killed":
            assert 0 < len(self.errors) < SESSIONS * LONG, self.errors
            for error, after in self.errors:
                assert error.code == -32603 and "again" in error.message, error
                assert after < SOON, (after, error)


async def questions(session):
    for _ in range(3):
        assert text(await session.client.call_tool("greet", {})) == "Hello, Ana."


async def subscribe(session):
    client, updated = session.client, session.updated
    uri = text(await client.call_tool("create_resource", {"text": "one"}))
    await client.subscribe_resource(uri)
    text(await client.call_tool("update_resource", {"uri": uri, "text": "two"}))
    with anyio.move_on_after(PATIENCE):
        while uri not in updated:
            await anyio.sleep(0.01)
    assert updated == [uri], updated
    assert (await client.read_resource(uri)).contents[0].text == "two"


if __name__ == "__main__":
    try:
        anyio.run(Tour(*sys.argv[1:]).take)
    except BaseException:
        print(f"WRONG {traceback.format_exc()}", flush=True)
        raise SystemExit(1) from None
