"""Compares an answer with the truth, and gives the outcome."""

import json
import math
import re

RIGHT = "right"
TOLD = "told"
ERROR = "error"
REFUSED = "refused"
WRONG = "wrong in silence"
OUTCOMES = {
    RIGHT: "the right answer",
    TOLD: "another answer, whose head says what was skipped, nulled or guessed",
    ERROR: "an error that names the cure",
    REFUSED: "an error that does not",
    WRONG: "another answer, without a word",
}

# A head that says how much there is, and nothing else.
PLAIN = re.compile(
    r"^(No|[\d,]+) of [\d,]+ (rows?|values?), (complete|not complete); read [\d,]+ (rows?|values?|records?)( of \S+)?\."
    r"( Next: .*)?$",
    re.DOTALL,
)
# What a model can do next: an argument, a function, another tool, or the names that there are.
CURE = re.compile(
    r"\b(format|delimiter|header|skip|comment|nulls|decimal|thousands|encoding|pattern|slurp|CAST|replace|"
    r"regexp_replace|regexp_extract|strftime|strptime|unixepoch|json_extract|(read|search|describe)_resource|"
    r"(try_)?number|use (jq|sql)|write|convert|save (it )?as)\b|Columns: (?!line_no, line\b)|The input is",
    re.IGNORECASE,
)
# Names of a resource and its media type, which cure nothing.
NAMES = re.compile(r"\S+://\S+|\(\w+/\S+\)")
RECORDS = re.compile(r"^records: ([\d,]+)", re.MULTILINE)


def outcome(answer, call, right):
    """The outcome of an answer, and what it said."""
    if answer.failed:
        return (ERROR if CURE.search(NAMES.sub("", answer.text)) else REFUSED), answer.text

    said = given(answer, call)
    if equal(right, said):
        return RIGHT, said
    if call.tool == "query_resource" and not PLAIN.match(answer.head):
        return TOLD, said
    return WRONG, said


def given(answer, call):
    """The answer as a value: a count, or rows."""
    if call.tool == "search_resource":
        return answer.structured.get("total")
    if call.tool == "describe_resource":
        found = RECORDS.search(answer.text)
        return int(found[1].replace(",", "")) if found else None
    return answer.structured.get("rows", [])


def equal(right, said):
    """Whether rows say what the truth is: a scalar, a list of scalars or of rows, or a set of them in any order."""
    if not isinstance(said, list):
        return same(right, said)
    if isinstance(right, (set, frozenset)):
        return equal(sorted(map(row, right), key=repr), sorted(map(row, said), key=repr))
    if not isinstance(right, list):
        right = [right]
    # A filter of jq may give a list as its only value.
    if len(said) == 1 and len(said[0]) == 1 and isinstance(said[0][0], list) and len(right) != 1:
        said = said[0][0]
    expected = list(map(row, right))
    found = list(map(row, said))
    return len(expected) == len(found) and all(
        len(one) == len(other) and all(map(same, one, other)) for one, other in zip(expected, found)
    )


def row(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def same(right, cell):
    """Whether a model reads a cell as what is right."""
    if right is None:
        return cell is None
    if isinstance(right, bool):
        return str(cell).lower() in (str(right).lower(), str(int(right)))
    if isinstance(right, int):
        return number(cell) == right
    if isinstance(right, float):
        value = number(cell)
        return value is not None and math.isclose(right, value, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(right, str):
        return right == (cell if isinstance(cell, str) else json.dumps(cell))
    return right == cell


def number(cell):
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, (int, float)):
        return cell
    try:
        return int(cell)
    except (TypeError, ValueError):
        pass
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None
