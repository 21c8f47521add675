"""A proxy before several instances: each request goes to the next one that runs, and streams are cut off."""

import asyncio
import random
import threading
from collections import Counter

# The share of streams that are cut off, and after how many events at most. The first event has an
# id, so that the client can always resume.
CUT_SHARE = 0.7
MOST_EVENTS = 4
# The path at which a client requests the fault of its tour.
FAULT = "/fault"


class Balancer:
    """Serves in its own thread while it is entered.

    A POST to `/fault` calls `fault`, and is answered afterwards.
    """

    def __init__(self, urls, seed, fault=None):
        self.ports = [int(url.split(":")[2].split("/")[0]) for url in urls]
        self.turn = 0
        self.dice = random.Random(seed)
        self.fault, self.faulted = fault, False
        self.served, self.cuts = Counter(), 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        starting = asyncio.run_coroutine_threadsafe(self.start(), self.loop)
        self.url = f"http://127.0.0.1:{starting.result()}/mcp"
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        # A fault that is running may start a process, which others have to end afterwards.
        self.loop.run_until_complete(self.loop.shutdown_default_executor())

    async def start(self):
        server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        return server.sockets[0].getsockname()[1]

    async def accept(self, reader, writer):
        try:
            await self.serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.rstrip().split("\r\n")
        named = {name.lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)}
        body = await reader.readexactly(int(named.get("content-length", 0)))
        if line.split()[1] == FAULT:
            await self.loop.run_in_executor(None, self.fault)
            self.faulted = True
            return await refuse(writer, "204 No Content")
        behind, to = await self.connect()
        # In HTTP/1.0 the body of the response is not chunked and ends with the connection.
        kept = [f for f in fields if not f.lower().startswith("connection:")]
        request = [line.replace("HTTP/1.1", "HTTP/1.0"), *kept]
        to.write("\r\n".join([*request, "", ""]).encode("latin-1") + body)
        answering = asyncio.ensure_future(self.answer(behind, writer, "last-event-id" in named))
        # When the client closes its connection, that to the instance is closed.
        leaving = asyncio.ensure_future(reader.read())
        try:
            await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            answering.cancel()
            leaving.cancel()
            to.close()

    async def connect(self):
        """A connection to the next instance that runs."""
        self.turn += 1
        turn = self.turn
        for offset in range(len(self.ports)):
            port = self.ports[(turn + offset) % len(self.ports)]
            try:
                connection = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            self.served[port] += 1
            return connection
        raise ConnectionRefusedError("no instance runs")

    async def answer(self, behind, writer, resumed):
        try:
            head = (await behind.readuntil(b"\r\n\r\n")).decode("latin-1")
        except (OSError, asyncio.IncompleteReadError):
            # The instance was killed before it responded.
            return await refuse(writer, "502 Bad Gateway")
        line, *fields = head.rstrip().split("\r\n")
        dropped = ("connection:", "transfer-encoding:")
        fields = [f for f in fields if not f.lower().startswith(dropped)]
        sized = any(f.lower().startswith("content-length:") for f in fields)
        fields += ["Connection: close"] if sized else ["Connection: close", "Transfer-Encoding: chunked"]
        line = line.replace("HTTP/1.0", "HTTP/1.1")
        writer.write("\r\n".join([line, *fields, "", ""]).encode("latin-1"))
        stream = "text/event-stream" in head.lower()
        cut = stream and self.dice.random() < CUT_SHARE
        left = self.dice.randint(1, MOST_EVENTS) if cut else None
        while piece := await some(behind):
            if left is not None:
                piece, left = until(piece, left)
            writer.write(piece if sized else b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            if left == 0:
                self.cuts += 1
                # A resumed stream ends properly: after a broken one, the Python client forgets
                # the last event id and resumes at an earlier one.
                if resumed:
                    writer.write(b"0\r\n\r\n")
                    await writer.drain()
                writer.close()
                return
        if not sized:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        writer.close()


async def some(behind):
    """The next bytes, or none at the end. The end of a killed instance counts as one."""
    try:
        return await behind.read(65536)
    except OSError:
        return b""


async def refuse(writer, status):
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()
    writer.close()


def until(piece, events):
    """The part of the piece with at most so many events, and how many more may follow."""
    at = 0
    while events and (end := piece.find(b"\n\n", at)) >= 0:
        at, events = end + 2, events - 1
    return (piece, events) if events else (piece[:at], 0)
