"""Writes what was measured: tables and failures into bench/README.md, a picture into bench/context.svg."""

import html
import math
import statistics
from collections import defaultdict

from ways import VARIANTS, Direct

BEGIN = "<!-- bench-context begins: written by `make bench-context` -->"
END = "<!-- bench-context ends -->"
SMALL_EXCESS = 3_000
LARGE_FACTOR = 5


def text(found):
    """A line for each outcome."""
    lines = []
    for each in found:
        right = "right" if each.right else "WRONG"
        lines.append(
            f"{each.task.name:22} {each.way.name:38} {each.variant:10} {right} {each.bytes:8} {each.measured.calls:2} "
            f"{each.measured.seconds:5.1f} {each.measured.failure or ''}"
        )
    return "\n".join(lines)


def write(found, folder, seconds):
    readme = folder / "README.md"
    before, rest = readme.read_text().split(BEGIN)
    after = rest.split(END)[1]
    parts = (totals(found, seconds), by_task(found), goals(found), failures(found))
    readme.write_text(before + BEGIN + "\n\n" + "\n\n".join(parts) + "\n\n" + END + after)
    (folder / "context.svg").write_text(picture(found))


def ways_of(found):
    return list(dict.fromkeys(each.way for each in found))


def tasks_of(found):
    return list(dict.fromkeys(each.task.name for each in found))


def totals(found, seconds):
    lines = [
        "| Way | Right: plain, wandering, retrying | Bytes in the context | of which definitions | results | arguments | Calls | Seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for way in ways_of(found):
        mine = [each for each in found if each.way is way]
        right = []
        for variant in VARIANTS:
            of_variant = [each for each in mine if each.variant == variant]
            right.append(f"{sum(each.right for each in of_variant)}/{len(of_variant)}")
        measured = [each.measured for each in mine]
        lines.append(
            f"| {way.name} | {', '.join(right)} | {sum(each.bytes for each in mine):,} | {sum(m.definitions for m in measured):,} "
            f"| {sum(m.results for m in measured):,} | {sum(m.arguments for m in measured):,} | {sum(m.calls for m in measured)} "
            f"| {sum(m.seconds for m in measured):.0f} |"
        )
    return "\n".join(lines) + f"\n\nAll conversations of a way together; the run took {seconds / 60:.0f} minutes."


def by_task(found):
    ways = ways_of(found)
    plain = {(each.task.name, each.way): each for each in found if each.variant == "plain"}
    lines = ["| Task (server) | " + " | ".join(way.name for way in ways) + " |", "|---" * (len(ways) + 1) + "|"]
    for name in tasks_of(found):
        row = [plain[name, way] for way in ways]
        least = min((each.bytes for each in row if each.right), default=None)
        cells = [cell(each, least) for each in row]
        task = row[0].task
        lines.append(f"| {task.name} ({task.server}{'' if task.large else ', small'}) | " + " | ".join(cells) + " |")
    return (
        "Bytes in the context of a plain conversation, with definitions; – is no right answer, bold the fewest bytes of a right one:\n\n"
        + "\n".join(lines)
    )


def cell(outcome, least):
    if not outcome.right:
        return "–"
    return f"**{outcome.bytes:,}**" if outcome.bytes == least else f"{outcome.bytes:,}"


def goals(found):
    """How far each of our ways is from its goals, by the plain conversations."""
    plain = defaultdict(dict)
    for each in found:
        if each.variant == "plain":
            plain[each.task.name][each.way] = each
    lines = [
        "| Goal | " + " | ".join(way.name for way in ways_of(found) if way.ours) + " |",
        "|---" * (1 + sum(way.ours for way in ways_of(found))) + "|",
    ]
    measures = {
        f"large: {LARGE_FACTOR} times fewer bytes than the best peer with a right answer": large_goal,
        "large: the same without definitions": without_definitions_goal,
        "large: fewer bytes than direct, median": direct_factor,
        f"small: at most {SMALL_EXCESS:,} bytes more than direct": small_goal,
    }
    for words, measure in measures.items():
        lines.append(f"| {words} | " + " | ".join(measure(plain, way) for way in ways_of(found) if way.ours) + " |")
    return "\n".join(lines)


def factors(plain, way, weigh):
    """By how much the best peer's bytes are more than a way's, task by task; 0 where the way is not right."""
    found = []
    for row in plain.values():
        task = next(iter(row.values())).task
        peers = [weigh(each) for each in row.values() if each.way.peer and each.right]
        if task.large and peers:
            found.append(min(peers) / weigh(row[way]) if row[way].right else 0)
    return found


def large_goal(plain, way):
    return reached(factors(plain, way, lambda each: each.bytes))


def without_definitions_goal(plain, way):
    return reached(factors(plain, way, lambda each: each.measured.results + each.measured.arguments))


def reached(found):
    met = sum(factor >= LARGE_FACTOR for factor in found)
    return f"{met} of {len(found)}; median {statistics.median(found):.1f} times, least {min(found):.1f}"


def direct_factor(plain, way):
    found = [
        row[Direct].bytes / row[way].bytes
        for row in plain.values()
        if row[way].task.large and row[way].right
    ]
    return f"{statistics.median(found):.0f} times" if found else "–"


def small_goal(plain, way):
    excesses = [
        row[way].bytes - row[Direct].bytes
        for row in plain.values()
        if not row[way].task.large
    ]
    return f"{sum(excess <= SMALL_EXCESS for excess in excesses)} of {len(excesses)}; most {max(excesses):+,}"


def failures(found):
    lines = ["What each way failed at, ours first:", ""]
    for way in sorted(ways_of(found), key=lambda way: not way.ours):
        reasons = defaultdict(list)
        for each in found:
            if each.way is way and not each.right:
                reasons[each.measured.failure].append(each.task.name + ("" if each.variant == "plain" else f" ({each.variant})"))
        told = "; ".join(f"{', '.join(names)}: {one_line(reason)}" for reason, names in reasons.items())
        lines.append(f"- **{way.name}**: {told or 'nothing'}")
    return "\n".join(lines)


def one_line(text):
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


COLOURS = ("#777777", "#c98a00", "#8a5a2b", "#9cc3e6", "#3b82c4", "#0b3d74", "#1b9e77", "#e08fb0", "#b3206b")
LEFT, TOP, WIDTH, ROW = 200, 96, 620, 22
LEAST, MOST = 1_000, 2_000_000


def picture(found):
    """A row for each task, a dot for each way: filled if right, at its bytes on a logarithmic scale."""
    names = tasks_of(found)
    ways = ways_of(found)
    height = TOP + ROW * len(names) + 40
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 40} {height}" font-family="sans-serif" font-size="12">',
        "<title>Bytes in the context for an answer, by task and way</title>",
        f'<rect width="100%" height="{height}" fill="white"/>',
    ]
    for number, way in enumerate(ways):
        x, y = 20 + number % 3 * 280, 20 + number // 3 * 20
        out.append(f'<circle cx="{x}" cy="{y - 4}" r="5" fill="{COLOURS[number]}"/><text x="{x + 10}" y="{y}">{html.escape(way.name)}</text>')
    for tick in (1_000, 10_000, 100_000, 1_000_000):
        x = place(tick)
        out.append(f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{TOP - 12}" y2="{height - 34}" stroke="#dddddd"/>')
        out.append(f'<text x="{x:.0f}" y="{height - 16}" text-anchor="middle">{tick // 1000:,} kB</text>')
    for number, name in enumerate(names):
        y = TOP + ROW * number + 8
        out.append(f'<text x="{LEFT - 14}" y="{y}" text-anchor="end">{html.escape(name)}</text>')
        for each in found:
            if each.task.name == name and each.variant == "plain" and each.bytes:
                colour = COLOURS[ways.index(each.way)]
                fill = colour if each.right else "white"
                out.append(f'<circle cx="{place(each.bytes):.1f}" cy="{y - 4}" r="5" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>')
    out.append(f'<text x="{LEFT}" y="{TOP - 18}" fill="#555555">filled: right answer; empty: none</text></svg>')
    return "\n".join(out) + "\n"


def place(count):
    share = (math.log(max(count, LEAST)) - math.log(LEAST)) / (math.log(MOST) - math.log(LEAST))
    return LEFT + share * WIDTH
