"""Questions about real files as tools and people hand them on: in other encodings, notations and wrappings.

What the rows say is that of the file; Python's own writers dress them.
"""

import csv
import gzip
import hashlib
import io
import json

from ask import ask, count, grouped, jq, mean, most, numbers, search, sql
from files import (
    AIRPORTS,
    COMMITS,
    COUNTRIES,
    FLIGHTS,
    FOOTBALL,
    MIME,
    MOVIES,
    PIZZAS,
    SP500,
    SUPERSTORE,
    US_COUNTIES,
    rows,
    text,
)


def written(content, delimiter=",", end="\r\n", change=lambda cell: cell):
    """A table by Python's writer, with another delimiter, line break or notation of its cells."""
    target = io.StringIO()
    table = csv.reader(io.StringIO(text(content), newline=""))
    csv.writer(target, delimiter=delimiter, lineterminator=end).writerows([map(change, row) for row in table])
    return target.getvalue()


def lined(content):
    """A table by Python's writer, with the line breaks of Unix."""
    return written(content, end="\n").encode()


def comma(cell):
    """A decimal fraction as most of Europe writes it."""
    return cell.replace(".", ",") if cell.replace(".", "", 1).lstrip("-").isdigit() else cell


# Encodings.
WIDE = PIZZAS.dressed("utf-16.csv", lambda content: text(content).encode("utf-16"))
LATIN = FOOTBALL.dressed(
    "latin-1.json",
    lambda content: json.dumps(json.loads(content), ensure_ascii=False).encode("latin-1", "replace"),
    "application/json; charset=iso-8859-1",
)
ZIPPED = SP500.dressed("sp500.csv.gz", gzip.compress, "application/gzip")

ask(WIDE, "How many pizzas were sold?", sql("SELECT count(*) FROM t"), len)
ask(WIDE, "What did all pizzas earn?",
    sql("SELECT sum(price) FROM t"), lambda rows: sum(numbers(rows, "price")))
ask(LATIN, "How many matches has the Austrian league?",
    sql("SELECT count(*) FROM t WHERE division = 'Österreichische Bundesliga'"),
    lambda rows: count(rows, lambda row: row["division"] == "Österreichische Bundesliga"))
ask(LATIN, "How often does Österreichische occur?",
    search("Österreichische"),
    lambda rows: count(rows, lambda row: "Österreichische" in row["division"]))
ask(ZIPPED, "How many days are there?", sql("SELECT count(*) FROM t"), len)

# Notations.
EUROPEAN = SP500.dressed("european.csv", lambda content: written(content, ";", change=comma).encode())
MAC = SUPERSTORE.dressed("mac.csv", lambda content: written(content, end="\r").encode())
REPORT = SUPERSTORE.dressed(
    "report.csv",
    lambda content: b"Sales by region\nGenerated on 2026-01-05 by superstore-report\n\n" + lined(content),
)
TOTALLED = SUPERSTORE.dressed(
    "totalled.csv",
    lambda content: lined(content) + f"\n{len(rows(content))} rows in set (0.12 sec)\n".encode(),
)
PIPES = SUPERSTORE.dressed("pipes.txt", lambda content: written(content, "|", "\n").encode())
BROKEN = SUPERSTORE.dressed("unquoted.csv", lambda content: torn(written(content, end="\n")).encode())


def torn(table):
    """A table of which one row in a thousand has a comma in its city that nobody quoted."""
    lines = table.splitlines(keepends=True)
    return "".join(line.replace("United States,", "United States,Greater, ", 1) if at % 1000 == 999 else line
                   for at, line in enumerate(lines))


def superstore(table):
    ask(table, "How many rows are there?", sql("SELECT count(*) FROM t"), len)
    ask(table, "What were the sales of each region?",
        sql("SELECT Region, sum(Sales) FROM t GROUP BY Region ORDER BY Region"),
        lambda rows: sorted(grouped(rows, lambda row: row["Region"], lambda group: sum(numbers(group, "Sales"))).items()))


ask(EUROPEAN, "What is the highest close?",
    sql("SELECT max(close) FROM t"), lambda rows: max(numbers(rows, "close")))
ask(EUROPEAN, "What is the mean close?",
    sql("SELECT avg(close) FROM t"), lambda rows: mean(numbers(rows, "close")))
ask(EUROPEAN, "On how many days did the index fall?",
    sql("SELECT count(*) FROM t WHERE close < open"),
    lambda rows: count(rows, lambda row: float(row["close"]) < float(row["open"])))
for each in (MAC, REPORT, TOTALLED, PIPES, BROKEN):
    superstore(each)

# JSON in wrappings.
FENCED = US_COUNTIES.dressed(
    "fenced.md", lambda content: b"Here are the counties:\n\n```json\n" + content + b"\n```\n"
)
RESULT = US_COUNTIES.dressed(
    "result.json", lambda content: json.dumps({"result": content.decode()}).encode(), "application/json"
)
LITERALS = COUNTRIES.dressed("literals.txt", lambda content: repr(json.loads(content)).encode())
PRETTY = MOVIES.dressed(
    "pretty.txt", lambda content: line_by_line(content, lambda _, row: json.dumps(row, indent=2))
)
NANS = MOVIES.dressed(
    "nan.json",
    lambda content: content.replace(b'"IMDB Rating": null', b'"IMDB Rating": NaN'),
    "application/json",
)
CUT = MOVIES.dressed(
    "broken-line.ndjson",
    lambda content: line_by_line(content, lambda at, row: json.dumps(row)[: 40 if at == 3 else None]),
)
SERIES = FLIGHTS.dressed("columns.json", lambda content: apart(json.loads(content)), "application/json")
TRACES = FLIGHTS.dressed(
    "traces.ndjson",
    lambda content: line_by_line(content, lambda at, row: json.dumps({"id": identifier(at), **row})),
)
KEYS = MIME.dressed(
    "keys.json",
    lambda content: json.dumps({name: {"key": name.upper(), **each} for name, each in json.loads(content).items()}).encode(),
    "application/json",
)


def line_by_line(content, write):
    return "\n".join(write(at, row) for at, row in enumerate(json.loads(content))).encode()


def identifier(at):
    """Sixty-four bits, as traces have them. Three flights in a row belong to one trace."""
    return int.from_bytes(hashlib.sha256(str(at // 3).encode()).digest()[:8], "big") | 1 << 63


def first_trace(rows):
    """How many flights the first trace has."""
    return count(range(len(rows)), lambda at: identifier(at) == identifier(0))


def apart(flights):
    names = list(flights[0])
    return json.dumps({"columns": names, "rows": [[row[name] for name in names] for row in flights]}).encode()


for table in (FENCED, RESULT):
    ask(table, "How many counties has Texas?",
        sql("SELECT count(*) FROM t WHERE state = 'TX'"),
        lambda rows: count(rows, lambda row: row["state"] == "TX"))
    ask(table, "What is 01001 called?",
        sql("SELECT name FROM t WHERE fips = '01001'"),
        lambda rows: [row["name"] for row in rows if row["fips"] == "01001"])
    ask(table, "How many counties has Texas, by jq?",
        jq('[.[] | select(.state == "TX")] | length'),
        lambda rows: count(rows, lambda row: row["state"] == "TX"))
ask(LITERALS, "How many countries are landlocked?",
    sql("SELECT count(*) FROM t WHERE landlocked"),
    lambda rows: count(rows, lambda row: row["landlocked"]))
for table in (PRETTY, NANS):
    ask(table, "How many films are there?", sql("SELECT count(*) FROM t"), len)
    ask(table, "Which rating have films on average?",
        sql('SELECT avg("IMDB Rating") FROM t'),
        lambda rows: mean(row["IMDB Rating"] for row in rows if row["IMDB Rating"] is not None))
ask(PRETTY, "How many films are there, by jq?", jq("length", slurp=True), len)
ask(PRETTY, "Which films earned more than 400 million, by jq?",
    jq('select(."US Gross" > 400000000) | .Title'),
    lambda rows: [row["Title"] for row in rows if (row["US Gross"] or 0) > 400000000])
ask(CUT, "How many films are there?",
    sql("SELECT count(*) FROM t"), len)
ask(CUT, "What did all films earn?",
    sql('SELECT sum("US Gross") FROM t'), lambda rows: sum(row["US Gross"] or 0 for row in rows))
ask(SERIES, "What is the mean delay?",
    sql("SELECT avg(delay) FROM t"), lambda rows: mean(row["delay"] for row in rows))
ask(TRACES, "How many traces are there?",
    sql("SELECT count(DISTINCT id) FROM t"), lambda rows: (len(rows) + 2) // 3)
ask(TRACES, "How many flights has the first trace?",
    sql(f"SELECT count(*) FROM t WHERE id = {identifier(0)}"), first_trace)
ask(TRACES, "Which trace has the first flight?",
    sql("SELECT id FROM t LIMIT 1"), lambda rows: identifier(0))
ask(TRACES, "How many flights has the first trace, by jq?",
    jq(f"[.[] | select(.id == {identifier(0)})] | length", slurp=True), first_trace)
ask(KEYS, "Which source has text/csv?",
    sql("SELECT source FROM t WHERE key = 'text/csv'"), lambda tree: tree["text/csv"]["source"])

# Colours of a terminal.
COLOURS = COMMITS.dressed(
    "colours.log",
    lambda content: "\n".join(f"\x1b[32m{line[:3]}\x1b[0m{line[3:]}" for line in text(content).splitlines()).encode(),
)
ask(COLOURS, "On how many lines does Sat, 22 stand?",
    search("Sat, 22"), lambda lines: count(lines, lambda line: line.startswith("Sat, 22")))
ask(COLOURS, "How many commits were made on each day of the week?",
    sql("SELECT weekday, count(*) FROM t GROUP BY weekday ORDER BY weekday", pattern=r"^(?P<weekday>\w+), "),
    lambda lines: sorted(grouped(lines, lambda line: line[:3]).items()))

# Results that are stored, and asked again.
ask(US_COUNTIES, "What is 01001 called in a stored result?",
    sql("SELECT name FROM t WHERE fips = '01001'", **{"from": "files://stored-counties"}),
    lambda rows: [row["name"] for row in rows if row["fips"] == "01001"],
    first=sql("SELECT fips, name FROM t", into={"uri": "files://stored-counties"}))
ask(AIRPORTS, "Which airport has the local identifier 1E4 in a stored result?",
    sql("SELECT name FROM t WHERE lid = '1E4'", **{"from": "files://stored-airports"}),
    lambda rows: [row["name"] for row in rows if row["lid"] == "1E4"],
    first=sql("SELECT lid, name, country FROM t WHERE lid IS NOT NULL", into={"uri": "files://stored-airports"}))
ask(AIRPORTS, "How many airports has each of two countries in a stored result?",
    sql("SELECT country, count(*) FROM t GROUP BY country ORDER BY country", **{"from": "files://stored-two"}),
    lambda rows: sorted(grouped(
        [row for row in rows if row["country"] in ("NA", "ZA")], lambda row: row["country"]).items()),
    first=sql("SELECT icao, country FROM t WHERE country IN ('NA', 'ZA')", into={"uri": "files://stored-two"}))
ask(MOVIES, "What did films earn by rating in a stored result?",
    sql("SELECT rating, earned FROM t WHERE rating IS NOT NULL ORDER BY earned DESC LIMIT 2",
        **{"from": "files://stored-ratings"}),
    lambda rows: most(grouped([row for row in rows if row["MPAA Rating"]], lambda row: row["MPAA Rating"],
                              lambda group: sum(row["US Gross"] or 0 for row in group)), 2),
    first=sql('SELECT "MPAA Rating" AS rating, sum("US Gross") AS earned FROM t GROUP BY 1',
              into={"uri": "files://stored-ratings", "format": "ndjson"}))
ask({"a": AIRPORTS, "b": PIZZAS}, "How many names has a stored result of two tables?",
    jq("length", **{"from": "files://stored-names"}),
    lambda airports, pizzas: len([airports[0]["name"], pizzas[0]["name"]]),
    first=sql("SELECT a.name, b.name FROM a, b WHERE a.icao = '00AA' AND b.id = '2015-000001'",
              into={"uri": "files://stored-names", "format": "ndjson"}))
