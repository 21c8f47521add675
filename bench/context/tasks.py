"""The tasks: a question in words, the calls that give its data, the truth, and what an agent of each kind writes.

A truth is computed from the files, by no way that is measured. `read` is what a reader without fault makes of a whole
result. The programs (`sql`, `jq`, `grep`, `python`) may use names only that the question, the definitions or earlier
results showed; ways.py checks that.
"""

import csv
import json
import re
import subprocess
from collections import Counter
from typing import Callable, NamedTuple

import workspace

# What an agent looks for where tools are not listed.
INTENTS = {
    "read_text_file": "read a text file",
    "list_directory": "list a directory",
    "read_multiple_files": "read multiple files",
    "git_log": "commit history",
    "git_show": "contents of a commit",
    "git_status": "status of the working tree",
    "read_query": "SELECT query",
    "read_range": "read cells of a sheet",
    "read_graph": "read the entire knowledge graph",
    "open_nodes": "open nodes by name",
    "browser_navigate": "navigate to a URL",
    "browser_snapshot": "snapshot of the page",
    "fetch": "fetch a URL",
    "get-sum": "sum of two numbers",
    "convert_time": "convert time between timezones",
}
PAGE = "http://127.0.0.1:18765/invoices.html"


class Call(NamedTuple):
    tool: str
    # Arguments, or a function of the texts that the calls before showed.
    arguments: dict | Callable

    def complete(self, texts):
        return self.arguments(texts) if callable(self.arguments) else self.arguments


class Grep(NamedTuple):
    """A search in a file: the number of matching lines, or the matches, from which the agent reads the answer."""

    pattern: str
    read: Callable | None = None


class Task(NamedTuple):
    name: str
    server: str
    words: str
    calls: tuple
    truth: Callable
    # None where an agent without a program cannot be expected to find the answer.
    read: Callable
    large: bool = True
    projection: dict = {}
    grep: Grep | None = None
    # Python of code mode over `t`, the text or value of the last call.
    python: str = "return t"
    # Arguments for the page from a number of records or characters on, where the tool has any.
    page: Callable | None = None


def most(values):
    """The most frequent value. No task has two."""
    return Counter(values).most_common(1)[0][0]


def rows(folder, name):
    with open(folder / name, newline="") as file:
        return list(csv.DictReader(file))


def value(folder, name):
    return json.loads((folder / name).read_text())


def table(text):
    return list(csv.DictReader(text.splitlines()))


def literals(text, name):
    """The numbers of one member in a list that Python printed."""
    return [int(number) for number in re.findall(rf"'{name}': (\d+)", text)]


def median(values):
    """The middle of an odd number of values."""
    return sorted(values)[len(values) // 2]


def matches(text):
    """What a search by `grep -o` found, a line each."""
    return [line.split(":", 1)[-1] for line in text.splitlines()]


FILES = (
    Task(
        "media types",
        "filesystem",
        "How many media types in db.json, one object by type, have the source iana and are compressible (true)?",
        (Call("read_text_file", {"path": "db.json"}),),
        lambda folder: sum(t.get("source") == "iana" and t.get("compressible") is True for t in value(folder, "db.json").values()),
        lambda text: sum(t.get("source") == "iana" and t.get("compressible") is True for t in json.loads(text).values()),
        projection={"jq": '[.[] | select(.source == "iana" and .compressible)] | length'},
        grep=Grep(
            r'"source": "iana"|"compressible": true|^  "',
            lambda text: sum("iana" in part and "compressible" in part for part in re.split(r'(?m)^(?=  ")', text)),
        ),
        python="import json\nreturn sum(1 for m in json.loads(t).values() if 'iana' == (m['source'] if 'source' in m else '') "
        "and 'compressible' in m and m['compressible'])",
    ),
    Task(
        "airports",
        "filesystem",
        "Which state has the most airports in airports.csv?",
        (Call("read_text_file", {"path": "airports.csv"}),),
        lambda folder: most(row["state"] for row in rows(folder, "airports.csv")),
        lambda text: most(row["state"] for row in table(text)),
        projection={"sql": "SELECT state FROM t GROUP BY state ORDER BY count(*) DESC LIMIT 1"},
        # Quoted names may have commas, so the state is not a fixed number of commas away from the line's begin.
        grep=Grep(r",[A-Z]{2},USA,", lambda text: most(match[1:3] for match in matches(text))),
        python="import collections, re\nreturn collections.Counter(re.findall(',([A-Z][A-Z]),USA,', t)).most_common(1)[0][0]",
    ),
    Task(
        "countries",
        "filesystem",
        "countries.json lists countries. What is the sum of the area of those that are landlocked?",
        (Call("read_text_file", {"path": "countries.json"}),),
        lambda folder: sum(country["area"] for country in value(folder, "countries.json") if country["landlocked"]),
        lambda text: sum(country["area"] for country in json.loads(text) if country["landlocked"]),
        projection={"jq": "[.[] | select(.landlocked) | .area] | add"},
        grep=Grep(
            r'"landlocked": ?true|"area": ?[0-9.]+',
            lambda text: sum(float(area) for area in re.findall(r'"landlocked": ?true\D*?"area": ?([0-9.]+)', text)),
        ),
        python="import json\nreturn sum([c['area'] for c in json.loads(t) if c['landlocked']])",
    ),
    Task(
        "earthquakes",
        "filesystem",
        "earthquakes.json is GeoJSON. How many of its features have a magnitude of 5 or more?",
        (Call("read_text_file", {"path": "earthquakes.json"}),),
        lambda folder: sum((f["properties"]["mag"] or 0) >= 5 for f in value(folder, "earthquakes.json")["features"]),
        lambda text: sum((f["properties"]["mag"] or 0) >= 5 for f in json.loads(text)["features"]),
        projection={"jq": "[.features[] | select(.properties.mag >= 5)] | length"},
        grep=Grep(r'"mag": ?[0-9.]+', lambda text: sum(float(match.split(":")[-1]) >= 5 for match in text.splitlines())),
        python="import json\nreturn sum(1 for f in json.loads(t)['features'] if (f['properties']['mag'] or 0) >= 5)",
    ),
    Task(
        "films",
        "filesystem",
        "movies.json lists films. Which title has the highest Worldwide Gross?",
        (Call("read_text_file", {"path": "movies.json"}),),
        lambda folder: max(value(folder, "movies.json"), key=lambda film: film["Worldwide Gross"] or 0)["Title"],
        lambda text: max(json.loads(text), key=lambda film: film["Worldwide Gross"] or 0)["Title"],
        projection={"jq": 'max_by(."Worldwide Gross") | .Title'},
        grep=Grep(
            r'"Title": ?("[^"]*"|[^,]*)|"Worldwide Gross": ?[0-9]+',
            lambda text: max(
                re.findall(r'"Title": ?"?(.*?)"?\n(?:\d+:)?"Worldwide Gross": ?(\d+)', text), key=lambda pair: int(pair[1])
            )[0],
        ),
        python="import json\nreturn max(json.loads(t), key=lambda f: f['Worldwide Gross'] or 0)['Title']",
    ),
    Task(
        "icons",
        "filesystem",
        "How many files in the folder icons have a name that begins with google?",
        (Call("list_directory", {"path": "icons"}),),
        lambda folder: len(list((folder / "icons").glob("google*"))),
        lambda text: len(re.findall(r"(?m)^\[FILE\] google", text)),
        projection={"sql": "SELECT count(*) FROM t WHERE line LIKE '[FILE] google%'"},
        grep=Grep(r"\[FILE\] google"),
        python="return t.count('[FILE] google')",
    ),
    Task(
        "licences",
        "filesystem",
        "The folder manifests has manifests of packages. How many have the license MIT?",
        (
            Call("list_directory", {"path": "manifests"}),
            Call("read_multiple_files", lambda texts: {"paths": manifest_paths(texts[0])}),
        ),
        lambda folder: sum(json.loads(file.read_text()).get("license") == "MIT" for file in (folder / "manifests").iterdir()),
        lambda text: len(re.findall(r'(?m)^\s*"license": "MIT"', text)),
        projection={"sql": "SELECT count(*) FROM t WHERE line LIKE '%\"license\": \"MIT\"%'"},
        grep=Grep(r'"license": "MIT"'),
        python="return t.count('\"license\": \"MIT\"')",
    ),
    Task(
        "a manifest",
        "filesystem",
        "What is the version of the package whose manifest is package.json?",
        (Call("read_text_file", {"path": "package.json"}),),
        lambda folder: value(folder, "package.json")["version"],
        lambda text: json.loads(text)["version"],
        large=False,
        projection={"jq": ".version"},
    ),
)


def manifest_paths(listed):
    return [f"manifests/{name}" for name in re.findall(r"\[FILE\] (\S+)", listed)]


def authors(folder):
    """The author of each commit, as git says."""
    command = ["git", "-C", folder / "repo", "log", "--format=%an"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


REPOSITORY = (
    Task(
        "commits",
        "git",
        "Who is the author of the most commits among the last 400 of the repository repo?",
        (Call("git_log", {"repo_path": "repo", "max_count": 400}),),
        lambda folder: most(authors(folder)),
        lambda text: most(re.findall(r"(?m)^Author: (\w+)", text)),
        projection={"sql": "SELECT substr(line, 9) FROM t WHERE line LIKE 'Author: %' GROUP BY line ORDER BY count(*) DESC LIMIT 1"},
        grep=Grep(r"^Author: .*", lambda text: most(re.findall(r"Author: (\w+)", text))),
        python="import collections, re\nreturn collections.Counter(re.findall('Author: ([a-zA-Z]+)', t)).most_common(1)[0][0]",
    ),
    Task(
        "a large change",
        "git",
        "How many lines with TODO does the revision HEAD of the repository repo add?",
        (Call("git_show", {"repo_path": "repo", "revision": "HEAD"}),),
        lambda folder: (folder / "repo/file0.txt").read_text().count("TODO"),
        lambda text: len(re.findall(r"(?m)^\+.*TODO", text)),
        projection={"sql": "SELECT count(*) FROM t WHERE line LIKE '+%TODO%'"},
        grep=Grep(r"^\+.*TODO"),
        python="return sum(1 for l in t.split('\\n') if l.startswith('+') and 'TODO' in l)",
    ),
    Task(
        "what is not added",
        "git",
        "Which file of the repository repo is not tracked?",
        (Call("git_status", {"repo_path": "repo"}),),
        lambda folder: "new.txt",
        lambda text: re.search(r"Untracked files:\n.*\n\s+(\S+)", text)[1],
        large=False,
    ),
)

TABLES = (
    Task(
        "a median",
        "sqlite",
        "The table orders has a column amount and 1,501 rows. What is the median of amount? Let read_query list it as it is.",
        (Call("read_query", {"query": "SELECT amount FROM orders"}),),
        lambda folder: median([order["amount"] for order in workspace.orders()]),
        lambda text: median(literals(text, "amount")),
        projection={"jq": "map(.amount) | sort | .[length / 2 | floor]"},
        grep=Grep(r"'amount': [0-9]+", lambda text: median(literals(text, "amount"))),
        python="import re\nv = sorted([int(n) for n in re.findall(\"'amount': ([0-9]+)\", t)])\nreturn v[len(v) // 2]",
        page=lambda number: {"query": f"SELECT amount FROM orders LIMIT 1000 OFFSET {number * 1000}"} if number < 2 else None,
    ),
    Task(
        "a count",
        "sqlite",
        "How many orders in the table orders have the status overdue?",
        (Call("read_query", {"query": "SELECT count(*) AS orders FROM orders WHERE status = 'overdue'"}),),
        lambda folder: sum(order["status"] == "overdue" for order in workspace.orders()),
        lambda text: literals(text, "orders")[0],
        large=False,
    ),
)

SHEETS = (
    Task(
        "a sheet",
        "excel",
        "What is the sum of amount of the region north in the sheet orders (A1:D1502; columns id, region, status, amount) of {folder}/orders.xlsx?",
        (Call("read_range", {"path": "{folder}/orders.xlsx", "sheet": "orders", "max_cells": 10000}),),
        lambda folder: sum(order["amount"] for order in workspace.orders() if order["region"] == "north"),
        lambda text: sum(int(amount) for amount in re.findall(r'"north"\s*,\s*"\w+"\s*,\s*(\d+)', text)),
        projection={"jq": '[.. | arrays | select(.[1]? == "north") | .[3]] | add'},
        python="import json\nv = json.loads(t) if isinstance(t, str) else t\nreturn sum([r[3] for r in v['values'] if r[1] == 'north'])",
        grep=Grep(r'"north"\s*,\s*"[a-z]+"\s*,\s*[0-9]+', lambda text: sum(int(line.rsplit(",", 1)[-1]) for line in text.splitlines())),
        page=lambda number: {"path": "{folder}/orders.xlsx", "sheet": "orders", "range": f"A{number * 400 + 1}:D{number * 400 + 400}"}
        if number < 4
        else None,
    ),
)

MEMORY = (
    Task(
        "a graph",
        "memory",
        "How many relations of the whole graph lead to Globex?",
        (Call("read_graph", {}),),
        lambda folder: sum(company == "Globex" for _, company in workspace.entities()),
        lambda text: sum(relation["to"] == "Globex" for relation in json.loads(text)["relations"]),
        projection={"jq": '[.relations[] | select(.to == "Globex")] | length'},
        grep=Grep(r'"to": "Globex"'),
        python="v = t if isinstance(t, dict) else None\nif v is None:\n    import json\n    v = json.loads(t)\nreturn sum(1 for r in v['relations'] if r['to'] == 'Globex')",
    ),
    Task(
        "a node",
        "memory",
        "Which entityType has the node person_17?",
        (Call("open_nodes", {"names": ["person_17"]}),),
        lambda folder: "person",
        lambda text: json.loads(text)["entities"][0]["entityType"],
        large=False,
    ),
)

PAGES = (
    Task(
        "a page in a browser",
        "playwright",
        f"How many cells of the snapshot of {PAGE} say overdue?",
        (Call("browser_navigate", {"url": PAGE}), Call("browser_snapshot", {})),
        lambda folder: sum(order["status"] == "overdue" for order in workspace.orders()),
        lambda text: text.count('cell "overdue"'),
        projection={"sql": "SELECT count(*) FROM t WHERE line LIKE '%cell \"overdue\"%'"},
        grep=Grep(r'cell "overdue"'),
        python="return t.count('cell \"overdue\"')",
    ),
    Task(
        "a fetched page",
        "fetch",
        f"How many rows of the table of {PAGE} have the region west?",
        (Call("fetch", {"url": PAGE, "max_length": 900000, "raw": True}),),
        lambda folder: sum(order["region"] == "west" for order in workspace.orders()),
        lambda text: len(re.findall(r"\bwest\b", text)),
        projection={"sql": "SELECT count(*) FROM t WHERE line LIKE '%west%'"},
        grep=Grep("west"),
        python="return t.count('west')",
        page=lambda number: {"url": PAGE, "max_length": 20000, "start_index": number * 20000, "raw": True} if number < 5 else None,
    ),
)

SMALL = (
    Task(
        "a sum",
        "everything",
        "What is 2 plus 40?",
        (Call("get-sum", {"a": 2, "b": 40}),),
        lambda folder: 42,
        lambda text: re.search(r"is (\d+)\.", text)[1],
        large=False,
    ),
    Task(
        "a time",
        "time",
        "How many hours is Asia/Tokyo ahead of Asia/Dubai at 14:30?",
        (Call("convert_time", {"source_timezone": "Asia/Dubai", "time": "14:30", "target_timezone": "Asia/Tokyo"}),),
        lambda folder: 5.0,
        lambda text: re.search(r'"time_difference": "\+([\d.]+)h"', text)[1],
        large=False,
    ),
)

ALL = FILES + REPOSITORY + TABLES + SHEETS + MEMORY + PAGES + SMALL
