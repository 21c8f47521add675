"""The files that the servers work on: those of pinned packages, and those that a fixed seed makes."""

import csv
import http.server
import json
import os
import random
import shutil
import sqlite3
import subprocess
import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "tests/questions/node_modules"
SEED = 20260728

COPIED = {
    "db.json": "mime-db/db.json",
    "package.json": "mime-db/package.json",
    "airports.csv": "vega-datasets/data/airports.csv",
    "movies.json": "vega-datasets/data/movies.json",
    "earthquakes.json": "vega-datasets/data/earthquakes.json",
    "countries.json": "world-countries/dist/countries.json",
}
AUTHORS = ("Ada", "Grace", "Edsger", "Barbara", "Donald")
AREAS = ("store", "query", "gateway", "docs")
REGIONS = ("north", "south", "east", "west")
STATES = ("paid", "open", "overdue")


def make(folder):
    """Fill an empty folder."""
    for name, source in COPIED.items():
        shutil.copyfile(PACKAGES / source, folder / name)
    shutil.copytree(PACKAGES / "simple-icons/icons", folder / "icons")
    manifests(folder)
    repository(folder / "repo")
    database(folder)
    graph(folder / "memory.jsonl")
    page(folder / "invoices.html")


def manifests(folder):
    """The manifests of packages of the tests' servers, in one folder, under the names of the packages."""
    (folder / "manifests").mkdir()
    for source in sorted((ROOT / "tests/upstreams/node_modules").glob("*/package.json"))[:80]:
        shutil.copyfile(source, folder / "manifests" / f"{source.parent.name}.json")


def repository(folder):
    """A repository of 400 commits with fixed dates, the last of which adds a large file."""
    chosen = random.Random(SEED)
    stream = []
    for number in range(1, 401):
        author = chosen.choice(AUTHORS)
        message = f"fix({chosen.choice(AREAS)}): case {number} of {chosen.randint(1, 9)}"
        content = f"{number}\n" if number < 400 else large_source(chosen)
        stream.append(f"commit refs/heads/main\nmark :{number}\n")
        who = f"{author} <{author.lower()}@example.org> {1750000000 + number * 3600} +0000"
        stream.append(f"author {who}\ncommitter {who}\ndata {len(message)}\n{message}\n")
        stream.append(f"M 100644 inline file{number % 40}.txt\ndata {len(content)}\n{content}\n")
    git = partial(subprocess.run, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=git_environment())
    git(["git", "init", "--initial-branch", "main", folder])
    git(["git", "-C", folder, "fast-import"], input="".join(stream).encode())
    git(["git", "-C", folder, "checkout", "--force", "main"])
    (folder / "new.txt").write_text("not added\n")


def git_environment():
    """Git without the settings of the user and of the system."""
    return os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def large_source(chosen):
    lines = (f"step {n}: {'TODO' if chosen.random() < 0.07 else 'done'} {chosen.getrandbits(64):016x}" for n in range(3000))
    return "\n".join(lines) + "\n"


def orders():
    """The orders of the database, of the sheet and of the page."""
    chosen = random.Random(SEED + 1)
    return [
        {
            "id": number,
            "region": chosen.choice(REGIONS),
            "status": chosen.choice(STATES),
            "amount": chosen.randint(100, 99_999),
        }
        for number in range(1, 1502)
    ]


def database(folder):
    """The orders as a database, and as CSV, from which the server of sheets makes a workbook."""
    rows = orders()
    connection = sqlite3.connect(folder / "shop.db")
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, region TEXT, status TEXT, amount INTEGER)")
    connection.executemany("INSERT INTO orders VALUES (:id, :region, :status, :amount)", rows)
    connection.commit()
    connection.close()

    with open(folder / "orders.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def entities():
    """The entities of the memory server, and where they work."""
    chosen = random.Random(SEED + 2)
    people = [f"person_{number}" for number in range(600)]
    return [(name, chosen.choice(("Acme", "Globex", "Initech"))) for name in people]


def graph(path):
    lines = [{"type": "entity", "name": n, "entityType": "company", "observations": []} for n in ("Acme", "Globex", "Initech")]
    for name, company in entities():
        lines.append({"type": "entity", "name": name, "entityType": "person", "observations": [f"joined {company}"]})
        lines.append({"type": "relation", "from": name, "to": company, "relationType": "works_at"})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def page(path):
    rows = "".join(
        f"<tr><td>{o['id']}</td><td>{o['region']}</td><td>{o['status']}</td><td>{o['amount']}</td></tr>\n" for o in orders()
    )
    head = "<tr><th>id</th><th>region</th><th>status</th><th>amount</th></tr>\n"
    path.write_text(f"<!doctype html><title>Invoices</title><h1>Invoices</h1><table>\n{head}{rows}</table>\n")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def web(folder):
    """Serves a folder on this machine. The port is fixed, because addresses count in the bytes."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 18765), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()
