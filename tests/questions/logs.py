"""Questions about logs and other text, by patterns and searches."""

import functools
import re

from ask import ask, count, grouped, jq, most, search, sql
from files import COMMITS, COUNTRIES_YAML, USER_AGENTS, VENDORS

HEX = r"^(?P<oui>[0-9A-F-]{8})\s+\(hex\)\s+(?P<company>.*)$"
BASE = r"^(?P<base>[0-9A-F]{6})\s+\(base 16\)\s+(?P<company>.*)$"
DATE = (
    r"^(?P<weekday>\w+), (?P<day>\d+) (?P<month>\w+) (?P<year>\d+) "
    r"(?P<hour>\d+):(?P<minute>\d+):(?P<second>\d+) (?P<zone>.*)$"
)


@functools.cache
def matches(pattern, file):
    """The matches of a pattern at the beginning of lines."""
    return [match for line in file.data if (match := re.match(pattern, line.rstrip()))]


ask(VENDORS, "How many prefixes are there?",
    sql("SELECT count(*) FROM t", pattern=HEX),
    lambda _: len(matches(HEX, VENDORS)))
ask(VENDORS, "How many prefixes are there, by a column?",
    sql("SELECT count(oui) FROM t", pattern=HEX),
    lambda _: len(matches(HEX, VENDORS)))
ask(VENDORS, "Which companies have the most prefixes?",
    sql("SELECT company, count(*) AS n FROM t WHERE company IS NOT NULL "
        "GROUP BY company ORDER BY n DESC LIMIT 3", pattern=HEX),
    lambda _: most(grouped(matches(HEX, VENDORS), lambda match: match["company"]), 3))
ask(VENDORS, "Which share of the prefixes has Apple?",
    sql("SELECT 1.0 * sum(company = 'Apple, Inc.') / count(*) FROM t", pattern=HEX),
    lambda _: count(matches(HEX, VENDORS), lambda match: match["company"] == "Apple, Inc.") / len(matches(HEX, VENDORS)))
ask(VENDORS, "Whose is 00-00-0C?",
    sql("SELECT company FROM t WHERE oui = '00-00-0C'", pattern=HEX),
    lambda _: [match["company"] for match in matches(HEX, VENDORS) if match["oui"] == "00-00-0C"])
ask(VENDORS, "Whose is 10E992?",
    sql("SELECT company FROM t WHERE base = '10E992'", pattern=BASE),
    lambda _: [match["company"] for match in matches(BASE, VENDORS) if match["base"] == "10E992"])
ask(VENDORS, "Whose is 000072?",
    sql("SELECT company FROM t WHERE base = '000072'", pattern=BASE),
    lambda _: [match["company"] for match in matches(BASE, VENDORS) if match["base"] == "000072"])
ask(VENDORS, "Which prefixes has INGRAM MICRO SERVICES?",
    sql("SELECT base FROM t WHERE company = 'INGRAM MICRO SERVICES' ORDER BY line_no", pattern=BASE),
    lambda _: [match["base"] for match in matches(BASE, VENDORS) if match["company"] == "INGRAM MICRO SERVICES"])
ask(VENDORS, "On how many lines does (hex) stand?",
    search("(hex)", literal=True),
    lambda lines: count(lines, lambda line: "(hex)" in line))
ask(VENDORS, "How many lines end in Inc.?",
    search(r"Inc\.$"),
    lambda lines: count(lines, lambda line: line.endswith("Inc.")))
ask(VENDORS, "Which prefixes has INGRAM MICRO SERVICES, by jq?",
    jq('select(.company == "INGRAM MICRO SERVICES") | .base', pattern=BASE),
    lambda _: [match["base"] for match in matches(BASE, VENDORS) if match["company"] == "INGRAM MICRO SERVICES"])

ask(COMMITS, "How many commits were there in each year?",
    sql("SELECT year, count(*) FROM t GROUP BY year ORDER BY year", pattern=DATE),
    lambda _: sorted(grouped(matches(DATE, COMMITS), lambda match: match["year"]).items()))
ask(COMMITS, "How many commits were made in each zone?",
    sql("SELECT zone, count(*) AS n FROM t GROUP BY zone ORDER BY n DESC, zone LIMIT 5", pattern=DATE),
    lambda _: most(grouped(matches(DATE, COMMITS), lambda match: match["zone"]), 5))
ask(COMMITS, "How many commits were made in the zone +0200?",
    sql("SELECT count(*) FROM t WHERE zone = '+0200'", pattern=DATE),
    lambda _: count(matches(DATE, COMMITS), lambda match: match["zone"] == "+0200"))
ask(COMMITS, "How many commits were made from 20 o'clock?",
    sql("SELECT count(*) FROM t WHERE hour >= 20", pattern=DATE),
    lambda _: count(matches(DATE, COMMITS), lambda match: int(match["hour"]) >= 20))
ask(COMMITS, "How many commits were made before 8 o'clock?",
    sql("SELECT count(*) FROM t WHERE hour < 8", pattern=DATE),
    lambda _: count(matches(DATE, COMMITS), lambda match: int(match["hour"]) < 8))
ask(COMMITS, "In which hour were most commits made?",
    sql("SELECT hour, count(*) AS n FROM t GROUP BY hour ORDER BY n DESC LIMIT 1", pattern=DATE),
    lambda _: most(grouped(matches(DATE, COMMITS), lambda match: match["hour"]), 1))
ask(COMMITS, "On how many lines does Sat stand?",
    search("^Sat, "), lambda lines: count(lines, lambda line: line.startswith("Sat, ")))
ask(COMMITS, "How many commits were made in 2015, by a date?",
    sql("SELECT count(*) FROM t WHERE strftime('%Y', line) = '2015'"),
    lambda lines: count(lines, lambda line: " 2015 " in line))

ask(USER_AGENTS, "How many expressions are there?",
    search(r"^\s*- regex:"),
    lambda lines: count(lines, lambda line: re.match(r"\s*- regex:", line)))
ask(USER_AGENTS, "How many expressions are there, by SQL?",
    sql("SELECT count(*) FROM t WHERE line LIKE '%- regex:%'", format="log"),
    lambda lines: count(lines, lambda line: "- regex:" in line))
ask(USER_AGENTS, "How many devices have the brand Samsung?",
    search("brand_replacement: 'Samsung'", literal=True),
    lambda lines: count(lines, lambda line: "brand_replacement: 'Samsung'" in line))
ask(COUNTRIES_YAML, "How many countries are there?",
    sql("SELECT count(*) FROM t"),
    lambda lines: count(lines, lambda line: line.startswith("- {")))
ask(COUNTRIES_YAML, "How many countries are in Europe?",
    (sql("SELECT count(*) FROM t WHERE region = 'Europe'"),
     sql("SELECT count(*) FROM t WHERE line LIKE '%, region: Europe,%'")),
    lambda lines: count(lines, lambda line: ", region: Europe," in line))
