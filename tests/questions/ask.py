"""How a question is written: a file, the question in words, the calls of an agent, and the right answer."""

import re
from typing import Callable, NamedTuple

QUESTIONS = []


class Call(NamedTuple):
    """A tool and its arguments. `{columns[N]}` in the SQL is the name that describe_resource gave to column N."""

    tool: str
    arguments: dict


class Question(NamedTuple):
    files: dict
    words: str
    calls: tuple
    truth: Callable
    first: Call | None = None
    answerable: bool = False

    @property
    def name(self):
        """How the question is called in known.txt."""
        return f"{next(iter(self.files.values())).name}: {self.words}"

    @property
    def right(self):
        return self.truth(*(file.data for file in self.files.values()))


def ask(files, words, calls, truth, first=None, answerable=False):
    """Add a question about a file, or about several by table name.

    `first` is a call before the question, which stores something. Of several calls, the later ones are what an agent
    sends after an error. `truth` takes the data of each file. A call that is right as it is, is `answerable`: an error
    with a cure is wrong, too.
    """
    named = files if isinstance(files, dict) else {"t": files}
    calls = calls if isinstance(calls, tuple) and not isinstance(calls, Call) else (calls,)
    QUESTIONS.append(Question(named, words, calls, truth, first, answerable))


def sql(text, **options):
    return Call("query_resource", {"sql": text, **options})


def jq(text, **options):
    return Call("query_resource", {"jq": text, **options})


def search(query, **options):
    """How often a pattern occurs."""
    return Call("search_resource", {"query": query, "count_only": True, **options})


def records():
    """How many records describe_resource says that there are."""
    return Call("describe_resource", {})


# Helpers of the truths.


def count(rows, wanted=lambda row: True):
    return sum(1 for row in rows if wanted(row))


def numbers(rows, column):
    """The cells of a column that are numbers, whatever else is in it."""
    found = []
    for row in rows:
        try:
            found.append(float(row[column]))
        except (TypeError, ValueError):
            continue
    return found


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def grouped(rows, key, value=lambda group: len(group)):
    """A dict of what `value` makes of the rows of each key."""
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return {key: value(group) for key, group in groups.items()}


def most(by_key, number):
    """The pairs with the largest values."""
    return sorted(by_key.items(), key=lambda pair: (-pair[1], pair[0]))[:number]


def thousands(text):
    """A number with separators of thousands."""
    return int(re.sub(r"[,\s]", "", text))
