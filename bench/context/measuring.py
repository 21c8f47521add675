"""Runs each task by each way, and compares the answers with the truths."""

import math
import re
from contextlib import contextmanager
from typing import NamedTuple

import servers
import tasks
from client import Ended, Server
from ways import Measured


class Outcome(NamedTuple):
    task: tasks.Task
    way: type
    variant: str
    right: bool
    measured: Measured

    @property
    def bytes(self):
        return self.measured.definitions + self.measured.results + self.measured.arguments


def prepare(folder, log):
    """Make the workbook by its server."""
    server = Server(servers.command("excel", folder), folder, log)
    book = f"{folder}/orders.xlsx"
    for tool, arguments in (
        ("create_workbook", {"path": book}),
        ("import_csv", {"path": book, "csv_path": f"{folder}/orders.csv", "sheet": "orders"}),
    ):
        text, failed = server.call(tool, arguments)
        assert not failed, text
    server.close()


def outcomes(chosen, ways, variants, folder, log, say):
    """Every task by every way, server by server. Each conversation counts the definitions anew."""
    for name in dict.fromkeys(task.server for task in chosen):
        if servers.command(name, folder) is None:
            say(f"{name}: left out, its program is not installed")
            continue
        mine = [task for task in chosen if task.server == name]
        for way in ways:
            yield from by_way(name, way(), mine, variants, folder, log)
        say(f"{name}: measured")


def by_way(name, way, mine, variants, folder, log):
    with started(way, name, folder, log) as server:
        for task in mine:
            for variant in variants:
                yield one(server, way, task, variant, folder, name)


def one(server, way, task, variant, folder, name):
    if isinstance(server, str):
        measured = Measured(None, 0, 0, 0, 0, 0.0, server)
    else:
        others = tuple(other for other in tasks.ALL if other.server == name and other.large and other is not task)
        measured = way.run(server, task, folder, variant, others)
    right = measured.failure is None and same(task.truth(folder), measured.answer)
    if not right and measured.failure is None:
        measured = measured._replace(failure=f"a wrong answer: {str(measured.answer).strip()[:80]!r}")
    return Outcome(task, type(way), variant, right, measured)


@contextmanager
def started(way, name, folder, log):
    """The server as this way starts it, or why it does not start."""
    try:
        server = way.start(name, folder, log)
    except (Ended, OSError, KeyError) as error:
        yield f"the server does not start: {error}"
        return
    try:
        yield server
    finally:
        server.close()


def same(truth, answer):
    """Whether a reader takes an answer for the truth."""
    text = re.sub(r'^["\s]+|["\s]+$', "", str(answer))
    if isinstance(truth, (int, float)):
        try:
            return math.isclose(truth, float(text), rel_tol=1e-9)
        except ValueError:
            return False
    return text == str(truth)
