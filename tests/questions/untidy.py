"""Questions about tables that are not well made: no header, separators of thousands, words for no value, comments."""

from ask import ask, count, grouped, jq, mean, most, numbers, records, sql, thousands
from files import (
    ACTG175,
    CANCER,
    CATEGORIES,
    CO2,
    COUNTIES,
    COUNTRY_DATA,
    CYCLING,
    DIGITS,
    EXIOBASE,
    FERTILITY,
    FLOWS,
    GAUSSIAN,
    MODECHOICE,
    NUCLIDES,
    PENGUINS,
    RANDHIE,
    SENATORS,
    SIMAPRO,
    SMOOTHING,
    STL,
    STRIKES,
    UNEMPLOYMENT,
    ZONES,
)

# No header, leading zeros, separators of thousands with blanks behind.
ask(COUNTIES, "How many rows are there?", records(), len)
ask(COUNTIES, "How many counties are there?", sql("SELECT count(*) FROM t"), len)
ask(COUNTIES, "How many counties has state 01?",
    sql("SELECT count(*) FROM t WHERE {columns[1]} = '01'"),
    lambda rows: count(rows, lambda row: row[1] == "01"))
ask(COUNTIES, "How many people are in the labour force?",
    sql("SELECT sum({columns[5]}) FROM t"),
    lambda rows: sum(thousands(row[5]) for row in rows))
ask(COUNTIES, "How many counties have more than 100,000 people in the labour force?",
    sql("SELECT count(*) FROM t WHERE {columns[5]} > 100000"),
    lambda rows: count(rows, lambda row: thousands(row[5]) > 100000))
ask(COUNTIES, "Which county has the largest labour force?",
    sql("SELECT {columns[3]} FROM t ORDER BY {columns[5]} DESC LIMIT 1"),
    lambda rows: max(rows, key=lambda row: thousands(row[5]))[3])
ask(COUNTIES, "What is the mean rate of unemployment?",
    sql("SELECT avg({columns[8]}) FROM t"),
    lambda rows: mean(float(row[8]) for row in rows))
ask(COUNTIES, "Which rate has Autauga County?",
    sql("SELECT {columns[8]} FROM t WHERE {columns[3]} = 'Autauga County, AL'"),
    lambda rows: [float(row[8]) for row in rows if row[3] == "Autauga County, AL"])

# Numbers without a header.
ask(DIGITS, "How many images are there?", sql("SELECT count(*) FROM t"), len)
ask(DIGITS, "How many images are of each digit?",
    (sql("SELECT {columns[64]}, count(*) FROM t GROUP BY 1 ORDER BY 1"),
     sql("SELECT column_65, count(*) FROM t GROUP BY 1 ORDER BY 1")),
    lambda rows: sorted((int(digit), n) for digit, n in grouped(rows, lambda row: row[64]).items()))

# A first line of another shape: the counts of the rows and columns, and the names of the classes.
ask(CANCER, "How many samples are there?",
    sql("SELECT count(*) FROM t"),
    lambda rows: len(rows) - 1)
ask(CANCER, "What is the mean of the first measure?",
    sql("SELECT avg({columns[0]}) FROM t"),
    lambda rows: mean(float(row[0]) for row in rows[1:]))
ask(CANCER, "How many samples are benign?",
    sql("SELECT count(*) FROM t WHERE {columns[30]} = 1"),
    lambda rows: count(rows[1:], lambda row: row[30] == "1"))

# Numbers without a zero before the point.
ask(UNEMPLOYMENT, "What is the mean rate?",
    sql("SELECT avg(rate) FROM t"),
    lambda rows: mean(numbers(rows, "rate")))
ask(UNEMPLOYMENT, "How many counties have a rate above 0.1?",
    sql("SELECT count(*) FROM t WHERE rate > 0.1"),
    lambda rows: count(rows, lambda row: float(row["rate"]) > 0.1))
ask(UNEMPLOYMENT, "What is the highest rate?",
    sql("SELECT max(rate) FROM t"),
    lambda rows: max(numbers(rows, "rate")))
ask(UNEMPLOYMENT, "How many counties have a rate above 0.1, by jq?",
    jq("[.[] | select(.rate > 0.1)] | length", slurp=True),
    lambda rows: count(rows, lambda row: float(row["rate"]) > 0.1))
ask(STRIKES, "What is the mean of the production?",
    sql("SELECT avg(iprod) FROM t"),
    lambda rows: mean(numbers(rows, "iprod")))
ask(STRIKES, "How many strikes began while production grew?",
    sql("SELECT count(*) FROM t WHERE iprod > 0"),
    lambda rows: count(rows, lambda row: float(row["iprod"]) > 0))
ask(GAUSSIAN, "How many values of x1 are above 1?",
    sql("SELECT count(*) FROM t WHERE x1 > 1"),
    lambda rows: count(rows, lambda row: float(row["x1"]) > 1))
ask(GAUSSIAN, "What is the mean of x1?",
    sql("SELECT avg(x1) FROM t"),
    lambda rows: mean(numbers(rows, "x1")))
ask(STL, "What is the largest trend of the baseline?",
    sql("SELECT max({columns[3]}) FROM t WHERE {columns[0]} LIKE '%baseline%'"),
    lambda rows: max(float(row["trend"]) for row in rows if "baseline" in row[" scenario"]))
ask(STL, "How many rows has the scenario baseline?",
    sql("SELECT count(*) FROM t WHERE {columns[0]} = 'baseline'"),
    lambda rows: count(rows, lambda row: row[" scenario"].strip() == "baseline"))

# NA among numbers.
ask(ACTG175, "What is the mean of cd496?",
    sql("SELECT avg(cd496) FROM t"),
    lambda rows: mean(numbers(rows, "cd496")))
ask(ACTG175, "What is the maximum of cd496?",
    sql("SELECT max(cd496) FROM t"),
    lambda rows: int(max(numbers(rows, "cd496"))))
ask(ACTG175, "How many patients have a cd496 above 500?",
    sql("SELECT count(*) FROM t WHERE cd496 > 500"),
    lambda rows: count(numbers(rows, "cd496"), lambda value: value > 500))
ask(ACTG175, "Of how many patients is cd496 known?",
    sql("SELECT count(cd496) FROM t"),
    lambda rows: len(numbers(rows, "cd496")))
ask(ACTG175, "Who has the highest cd496?",
    sql("SELECT pidnum FROM t ORDER BY cd496 DESC LIMIT 1"),
    lambda rows: int(max(rows, key=lambda row: float(row["cd496"]) if row["cd496"] != "NA" else -1)["pidnum"]))
ask(ACTG175, "What is the mean of cd496 by arm?",
    sql("SELECT arms, avg(cd496) FROM t GROUP BY arms ORDER BY arms"),
    lambda rows: sorted((int(arm), value) for arm, value in grouped(
        rows, lambda row: row["arms"], lambda group: mean(numbers(group, "cd496"))).items()))
ask(ACTG175, "How many patients have a cd496 above 500, by jq?",
    jq("[.[] | select(.cd496 > 500)] | length", slurp=True),
    lambda rows: count(numbers(rows, "cd496"), lambda value: value > 500))
ask(ACTG175, "How heavy are the patients on average?",
    sql("SELECT avg(wtkg) FROM t"),
    lambda rows: mean(numbers(rows, "wtkg")))
ask(PENGUINS, "How heavy are the penguins on average?",
    sql('SELECT avg("Body Mass (g)") FROM t'),
    lambda rows: mean(numbers(rows, "Body Mass (g)")))
ask(PENGUINS, "How heavy is the heaviest penguin?",
    sql('SELECT max("Body Mass (g)") FROM t'),
    lambda rows: int(max(numbers(rows, "Body Mass (g)"))))
ask(PENGUINS, "How many penguins are heavier than 5 kg?",
    sql('SELECT count(*) FROM t WHERE "Body Mass (g)" > 5000'),
    lambda rows: count(numbers(rows, "Body Mass (g)"), lambda value: value > 5000))
ask(PENGUINS, "Of how many penguins is the sex known?",
    sql("SELECT count(*) FROM t WHERE Sex IS NOT NULL AND Sex <> 'NA'"),
    lambda rows: count(rows, lambda row: row["Sex"] != "NA"))
ask(PENGUINS, "What is the lowest delta 13 C?",
    sql('SELECT min("Delta 13 C (o/oo)") FROM t'),
    lambda rows: min(numbers(rows, "Delta 13 C (o/oo)")))
ask(SMOOTHING, "What is the mean of v1?",
    sql("SELECT avg(v1) FROM t"),
    lambda rows: mean(numbers(rows, "v1")))
ask(SMOOTHING, "What is the first detPmu?",
    sql("SELECT detPmu FROM t LIMIT 1"),
    lambda rows: int(rows[0]["detPmu"]))
ask(SMOOTHING, "How many values has detPmu, by jq?",
    jq("[.[].detPmu] | unique | length", slurp=True),
    lambda rows: len({row["detPmu"] for row in rows}))

# TRUE and FALSE; fractions as text; very small and very large numbers.
ask(NUCLIDES, "How many nuclides are stable?",
    sql("SELECT count(*) FROM t WHERE is_stable"),
    lambda rows: count(rows, lambda row: row["is_stable"] == "TRUE"))
ask(NUCLIDES, "How many nuclides are stable, by a comparison?",
    sql("SELECT count(*) FROM t WHERE is_stable = TRUE"),
    lambda rows: count(rows, lambda row: row["is_stable"] == "TRUE"))
ask(NUCLIDES, "How many nuclides are stable, by the word?",
    sql("SELECT count(*) FROM t WHERE is_stable = 'TRUE'"),
    lambda rows: count(rows, lambda row: row["is_stable"] == "TRUE"))
ask(NUCLIDES, "How many nuclides are stable, by jq?",
    jq("[.[] | select(.is_stable)] | length", slurp=True),
    lambda rows: count(rows, lambda row: row["is_stable"] == "TRUE"))
ask(NUCLIDES, "How many nuclides have an isospin of 1/2?",
    sql("SELECT count(*) FROM t WHERE isospin = '1/2'"),
    lambda rows: count(rows, lambda row: row["isospin"] == "1/2"))
ask(NUCLIDES, "How many nuclides have an isospin of 1 or more?",
    sql("SELECT count(*) FROM t WHERE isospin >= 1"),
    lambda rows: count(rows, lambda row: row["isospin"] and fraction(row["isospin"]) >= 1))
ask(NUCLIDES, "What is the shortest half-life?",
    sql("SELECT min(half_life) FROM t"),
    lambda rows: min(numbers(rows, "half_life")))
ask(NUCLIDES, "How many nuclides are not stable, for each of the first elements?",
    sql("SELECT z, count(*) FROM t WHERE NOT is_stable AND z <= 5 GROUP BY z ORDER BY z"),
    lambda rows: sorted((int(z), n) for z, n in grouped(
        [row for row in rows if row["is_stable"] == "FALSE" and int(row["z"]) <= 5], lambda row: row["z"]).items()))
ask(SENATORS, "How many senators have left?",
    sql("SELECT count(*) FROM t WHERE observed"),
    lambda rows: count(rows, lambda row: row["observed"] == "True"))
ask(SENATORS, "What share of the senators have left?",
    sql("SELECT avg(observed) FROM t"),
    lambda rows: count(rows, lambda row: row["observed"] == "True") / len(rows))
ask(SENATORS, "How many senators were appointed after 1990?",
    sql("SELECT count(*) FROM t WHERE start_date > '1990-12-31 23:59:59'"),
    lambda rows: count(rows, lambda row: row["start_date"] > "1990-12-31 23:59:59"))
ask(SENATORS, "Why did senators leave?",
    sql("SELECT reason, count(*) AS n FROM t WHERE reason IS NOT NULL GROUP BY reason ORDER BY n DESC"),
    lambda rows: most(grouped([row for row in rows if row["reason"]], lambda row: row["reason"]), 9))
ask(SENATORS, "How many terms began in 2009?",
    sql("SELECT count(*) FROM t WHERE \"Term (yyyy.mm.dd)\" LIKE '2009.%'"),
    lambda rows: count(rows, lambda row: row["Term (yyyy.mm.dd)"].startswith("2009.")))

# Years as names; another delimiter; a byte order mark; an empty first name.
ask(FERTILITY, "What was the rate of Germany in 2000?",
    sql("SELECT \"2000\" FROM t WHERE \"Country Code\" = 'DEU'"),
    lambda rows: [float(row["2000"]) for row in rows if row["Country Code"] == "DEU"])
ask(FERTILITY, "Which rate had countries on average in 1970?",
    sql('SELECT avg("1970") FROM t'),
    lambda rows: mean(numbers(rows, "1970")))
ask(FERTILITY, "Of how many countries is the rate of 1960 known?",
    sql('SELECT count("1960") FROM t'),
    lambda rows: len(numbers(rows, "1960")))
ask(FERTILITY, "Which countries had the highest rate in 1990?",
    sql('SELECT "Country Name" FROM t ORDER BY "1990" DESC LIMIT 3'),
    lambda rows: [row["Country Name"] for row in sorted(
        rows, key=lambda row: -float(row["1990"] or 0))[:3]])
ask(MODECHOICE, "How many rows are there?", records(), len)
ask(MODECHOICE, "How often was each mode chosen?",
    sql("SELECT mode, count(*) FROM t WHERE choice = 1 GROUP BY mode ORDER BY mode"),
    lambda rows: sorted((int(mode), n) for mode, n in grouped(
        [row for row in rows if row["choice"] == "1"], lambda row: row["mode"]).items()))
ask(CATEGORIES, "How many categories are there?", records(), len)
ask(CATEGORIES, "How many categories has each of the largest methods?",
    sql("SELECT impactMethodName, count(*) AS n FROM t GROUP BY impactMethodName ORDER BY n DESC, impactMethodName LIMIT 3"),
    lambda rows: most(grouped(rows, lambda row: row["impactMethodName"]), 3))
ask(EXIOBASE, "How many names are there?",
    sql('SELECT count(DISTINCT "exiobase name") FROM t'),
    lambda rows: len({row["exiobase name"] for row in rows}))
ask(EXIOBASE, "How many rows have no name in ecoinvent?",
    sql('SELECT count(*) FROM t WHERE "ecoinvent name" IS NULL'),
    lambda rows: count(rows, lambda row: not row["ecoinvent name"]))
ask(CYCLING, "What was the mean power?",
    sql("SELECT avg(power) FROM t"),
    lambda rows: mean(numbers(rows, "power")))
ask(CYCLING, "What is the number of the last point?",
    sql("SELECT max({columns[0]}) FROM t"),
    lambda rows: max(int(row[""]) for row in rows))
ask(CYCLING, "How long did the ride take?",
    sql("SELECT max(time) FROM t"),
    lambda rows: max(row["time"] for row in rows))
ask(RANDHIE, "How many rows have no ghindx?",
    sql("SELECT count(*) FROM t WHERE ghindx IS NULL"),
    lambda rows: count(rows, lambda row: not row["ghindx"]))
ask(RANDHIE, "What is the mean income of each plan?",
    sql("SELECT plan, avg(income) FROM t GROUP BY plan ORDER BY plan LIMIT 3"),
    lambda rows: sorted((int(plan), value) for plan, value in grouped(
        rows, lambda row: row["plan"], lambda group: mean(numbers(group, "income"))).items())[:3])
ask(COUNTRY_DATA, "Which countries joined the OECD before 1962?",
    sql("SELECT count(*) FROM t WHERE OECD < 1962"),
    lambda rows: count(rows, lambda row: row["OECD"] and int(row["OECD"]) < 1962))
ask(COUNTRY_DATA, "Which country has the code NA?",
    sql("SELECT name_short FROM t WHERE ISO2 = 'NA'"),
    lambda rows: [row["name_short"] for row in rows if row["ISO2"] == "NA"])
ask(COUNTRY_DATA, "How many countries have a GEO number?",
    sql("SELECT count(GEOnumeric) FROM t"),
    lambda rows: count(rows, lambda row: row["GEOnumeric"]))

# Dates as numbers.
ask(CO2, "What was the mean of 1990?",
    sql("SELECT avg(co2) FROM t WHERE date >= 19900101 AND date < 19910101"),
    lambda rows: mean(numbers([row for row in rows if row["date"].startswith("1990")], "co2")))
ask(CO2, "How many weeks had 1990?",
    sql("SELECT count(*) FROM t WHERE strftime('%Y', date) = '1990'"),
    lambda rows: count(rows, lambda row: row["date"].startswith("1990")))
ask(CO2, "How many weeks are without a value?",
    sql("SELECT count(*) FROM t WHERE co2 IS NULL"),
    lambda rows: count(rows, lambda row: not row["co2"]))

# Comments above, no header, tabs.
ask(ZONES, "How many zones are there?",
    (sql("SELECT count(*) FROM t WHERE line NOT LIKE '#%'"), sql("SELECT count(*) FROM t")),
    lambda lines: count(lines, lambda line: line and not line.startswith("#")))
ask(ZONES, "How many zones are in the Pacific?",
    (sql("SELECT count(*) FROM t WHERE line NOT LIKE '#%' AND line LIKE '%\tPacific/%'"),
     sql("SELECT count(*) FROM t WHERE {columns[2]} LIKE 'Pacific/%'")),
    lambda lines: count(lines, lambda line: not line.startswith("#") and line.split("\t")[2].startswith("Pacific/")))

# Workbooks.
ask(FLOWS, "How many flows are there?",
    sql("SELECT count(*) FROM t"),
    lambda sheets: len(sheets["ElementaryExchanges"]) - 1)
ask(FLOWS, "How many flows go into air?",
    (sql("SELECT count(*) FROM t WHERE {columns[2]} = 'air'"),
     sql("SELECT count(*) FROM t WHERE \"Category v2.2\" = 'air'")),
    lambda sheets: count(sheets["ElementaryExchanges"], lambda row: row[2] == "air"))
ask(FLOWS, "Which CAS number has 1,4-Butanediol?",
    (sql("SELECT DISTINCT {columns[4]} FROM t WHERE {columns[1]} = '1,4-Butanediol'"),
     sql("SELECT DISTINCT CAS FROM t WHERE \"Elementary Name v2.2\" = '1,4-Butanediol'")),
    lambda sheets: sorted({row[4] for row in sheets["ElementaryExchanges"] if row[1] == "1,4-Butanediol"}))
ask(SIMAPRO, "How many rows are there?",
    sql("SELECT count(*) FROM t"),
    lambda sheets: len(sheets["correspondance sheet_corrected"]) - 1)
ask(SIMAPRO, "Which numbers stand for wood pellets?",
    (sql("SELECT {columns[0]} FROM t WHERE {columns[2]} LIKE 'wood pellets%' ORDER BY 1"),
     sql("SELECT \"SINGLE-OUTPUT DATASET-ID v2.2\" FROM t WHERE \"PRODUCT NAME v2.2\" LIKE 'wood pellets%' ORDER BY 1")),
    lambda sheets: sorted(row[0] for row in sheets["correspondance sheet_corrected"]
                          if str(row[2]).lower().startswith("wood pellets")))


def fraction(text):
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)
