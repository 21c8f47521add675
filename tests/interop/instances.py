"""The official Python client in sessions that several instances serve, while its streams are cut off.
With any kind but "instances", a fault of an instance or of Redis occurs meanwhile.

    python instances.py instances|killed|restarted|emptied URL
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
# In each session: the number of calls, how many of them at once, and the long calls that run while
# the fault occurs.
CALLS, AT_ONCE, LONG = 20, 4, 5
# How long the calls of a killed instance may take to end, in seconds.
SOON = 15

warnings.simplefilter("ignore")


async def elicit(_, params):
    return types.ElicitResult(action="accept", content={"name": "Ana"})


def text(result):
    assert not result.is_error, result
    return result.content[0].text


class Session:
    """`gone` is set when the instances do not know the session any more."""

    def __init__(self, url):
        self.updated, self.gone = [], False
        options = {"elicitation_callback": elicit, "message_handler": self.hear}
        self.client = Client(url, mode="legacy", read_timeout_seconds=PATIENCE, **options)

    async def hear(self, message):
        if isinstance(message, types.ResourceUpdatedNotification):
            self.updated.append(str(message.params.uri))

    async def count(self, to, every, on_report):
        """Counts, and checks that progress is complete, in order, and that of this call, however the call ends."""
        reported = []

        async def report(progress, total, message):
            reported.append((progress, total))
            on_report()

        try:
            arguments = {"to": to, "every": every}
            said = text(await self.client.call_tool("count", arguments, progress_callback=report))
            assert said == f"counted to {to}", said
            # The result may overtake progress, which another task reports.
            with anyio.move_on_after(PATIENCE):
                while len(reported) < to:
                    await anyio.sleep(0.01)
            assert len(reported) == to, reported
        finally:
            assert reported == [(n + 1, to) for n in range(len(reported))], reported


class Calls:
    """The calls of one session, each of which counts to another number; the rest move to a new session."""

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

    async def count(self, session, to, every, on_report=lambda: None, failed=lambda error: None):
        """Whether it counted in this session, after any number of transient errors."""
        while not session.gone:
            try:
                await session.count(to, every, on_report)
                return True
            except MCPError as error:
                if not self.tour.is_transient(error, session):
                    raise
                failed(error)
                await anyio.sleep(0.1)
        return False


class CallsDuringFault(Calls):
    """The same with long calls that run while the fault occurs."""

    def __init__(self, tour, at):
        super().__init__(tour, at)
        self.long = [60 + at + SESSIONS * n for n in range(LONG)]

    async def __call__(self, session):
        async with anyio.create_task_group() as calls:
            for to in list(self.long):
                calls.start_soon(self.count_far, session, to)
            await self.tour.requested.wait()
            await super().__call__(session)

    async def count_far(self, session, to):
        on_report = lambda: self.tour.runs(to)
        if await self.count(session, to, 150, on_report, self.tour.failed):
            self.long.remove(to)


class Tour:
    def __init__(self, fault, url):
        self.fault, self.url = fault, url
        self.reached, self.waiting = Counter(), {60 + n for n in range(SESSIONS * LONG)}
        self.all_run, self.requested = anyio.Event(), anyio.Event()
        self.since, self.errors, self.renewed = None, [], 0

    async def take(self):
        async with anyio.create_task_group() as sessions:
            for at in range(SESSIONS):
                sessions.start_soon(self.session, at)
            if self.fault != "instances":
                await self.request_fault()

    async def session(self, at):
        calls = (Calls if self.fault == "instances" else CallsDuringFault)(self, at)
        steps = [(self.fault, calls), ("questions", questions), ("subscribe", subscribe)]
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
            if self.fault != "instances" and name == self.fault:
                self.check()
            print(f"ok    {name}", flush=True)

    def runs(self, to):
        self.waiting.discard(to)
        if not self.waiting:
            self.all_run.set()

    async def request_fault(self):
        await self.all_run.wait()
        self.since = time.monotonic()
        self.requested.set()
        async with httpx2.AsyncClient(timeout=PATIENCE) as client:
            response = await client.post(urljoin(self.url, "/fault"))
        assert response.status_code == 204, response

    def is_transient(self, error, session):
        """Whether the error is expected and the call can be repeated, in a new session if this one is gone."""
        if "Send initialize again" in error.message:
            session.gone = self.fault == "emptied"
            return session.gone
        # The client's own errors: for a stream that cannot be resumed, and for the proxy's response
        # when an instance is killed.
        own = {
            "emptied": "SSE stream ended and reconnection attempts were exhausted",
            "killed": "Server returned an error response",
        }
        again = self.fault != "instances" and "again" in error.message
        return again or error.message == own.get(self.fault)

    def failed(self, error):
        self.errors.append((error, time.monotonic() - self.since))

    def check(self):
        assert self.renewed == (SESSIONS if self.fault == "emptied" else 0), self.renewed
        if self.fault == "restarted":
            assert not self.errors, self.errors
        if self.fault == "killed":
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
