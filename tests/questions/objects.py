"""Questions about JSON: lists, maps, records within records, numbers as text."""

import datetime

from ask import ask, count, grouped, jq, mean, most, records, sql, thousands
from files import (
    BUDGET,
    CANIUSE,
    CITIES,
    COMPAT,
    COUNTRIES,
    EARTHQUAKES,
    FEATURES,
    FLIGHTS,
    FOOTBALL,
    FUNCTIONS,
    ICONS,
    INDUSTRIES,
    JOBS,
    LICENCE_INDEX,
    LICENCES,
    MIME,
    MOVIES,
    OPENFLIGHTS,
    US_CITIES,
    US_COUNTIES,
)

# Titles that are numbers; dates as Americans write them.
ask(MOVIES, "Which film is called 1776?",
    sql("SELECT \"US Gross\" FROM t WHERE Title = '1776'"),
    lambda rows: [row["US Gross"] for row in rows if str(row["Title"]) == "1776"])
ask(MOVIES, "How many films came out in 2005?",
    sql("SELECT count(*) FROM t WHERE strftime('%Y', \"Release Date\") = '2005'"),
    lambda rows: count(rows, lambda row: row["Release Date"] and row["Release Date"].endswith("2005")))
ask(MOVIES, "Which is the newest film?",
    sql('SELECT Title FROM t ORDER BY date("Release Date") DESC LIMIT 1'),
    lambda rows: str(max(rows, key=lambda row: released(row["Release Date"]))["Title"]))
ask(MOVIES, "Which films earned the most?",
    sql('SELECT Title, "US Gross" FROM t ORDER BY "US Gross" DESC LIMIT 3'),
    lambda rows: most({row["Title"]: row["US Gross"] for row in rows if row["US Gross"]}, 3))
ask(MOVIES, "Which rating have films on average?",
    sql('SELECT avg("IMDB Rating") FROM t'),
    lambda rows: mean(row["IMDB Rating"] for row in rows if row["IMDB Rating"] is not None))
ask(MOVIES, "Of how many films is the director not known?",
    sql("SELECT count(*) FROM t WHERE Director IS NULL"),
    lambda rows: count(rows, lambda row: row["Director"] is None))
ask(MOVIES, "How many films have each rating of the MPAA?",
    sql('SELECT "MPAA Rating", count(*) FROM t WHERE "MPAA Rating" IS NOT NULL GROUP BY 1 ORDER BY 1'),
    lambda rows: sorted(grouped([row for row in rows if row["MPAA Rating"]], lambda row: row["MPAA Rating"]).items()))
ask(MOVIES, "How many films earned more than 300 million, by jq?",
    jq('[.[] | select(."US Gross" > 300000000)] | length'),
    lambda rows: count(rows, lambda row: (row["US Gross"] or 0) > 300000000))
ask(MOVIES, "How many films have a title longer than 40 letters?",
    sql("SELECT count(*) FROM t WHERE length(Title) > 40"),
    lambda rows: count(rows, lambda row: row["Title"] is not None and len(str(row["Title"])) > 40))

# Umlauts.
ask(FOOTBALL, "How many matches has the Austrian league?",
    sql("SELECT count(*) FROM t WHERE lower(division) = 'österreichische bundesliga'"),
    lambda rows: count(rows, lambda row: row["division"].lower() == "österreichische bundesliga"))
ask(FOOTBALL, "How many matches have leagues like ÖSTERREICHISCHE?",
    sql("SELECT count(*) FROM t WHERE division LIKE '%ÖSTERREICHISCHE%'"),
    lambda rows: count(rows, lambda row: "österreichische" in row["division"].lower()))
ask(FOOTBALL, "How many goals fell in all?",
    sql("SELECT sum(home_score + away_score) FROM t"),
    lambda rows: sum((row["home_score"] or 0) + (row["away_score"] or 0) for row in rows
                     if row["home_score"] is not None and row["away_score"] is not None))
ask(FOOTBALL, "How many matches did the home team win?",
    sql("SELECT count(*) FROM t WHERE home_score > away_score"),
    lambda rows: count(rows, lambda row: None not in (row["home_score"], row["away_score"])
                       and row["home_score"] > row["away_score"]))

# GeoJSON; milliseconds since 1970.
ask(EARTHQUAKES, "How many earthquakes had a magnitude of 5 or more?",
    sql("SELECT count(*) FROM t WHERE properties ->> '$.mag' >= 5"),
    lambda tree: count(tree["features"], lambda each: (each["properties"]["mag"] or 0) >= 5),
    answerable=True)
ask(EARTHQUAKES, "Where was the strongest earthquake?",
    sql("SELECT json_extract(properties, '$.place') FROM t ORDER BY json_extract(properties, '$.mag') DESC LIMIT 1"),
    lambda tree: max(tree["features"], key=lambda each: each["properties"]["mag"] or -9)["properties"]["place"],
    answerable=True)
ask(EARTHQUAKES, "When was the strongest earthquake?",
    sql("SELECT datetime(properties ->> '$.time', 'unixepoch') FROM t ORDER BY properties ->> '$.mag' DESC LIMIT 1"),
    lambda tree: moment(max(tree["features"], key=lambda each: each["properties"]["mag"] or -9)["properties"]["time"]))
ask(EARTHQUAKES, "How many earthquakes were there on each day?",
    sql("SELECT date(properties ->> '$.time' / 1000, 'unixepoch') AS day, count(*) FROM t GROUP BY day ORDER BY day"),
    lambda tree: sorted(grouped(tree["features"], lambda each: moment(each["properties"]["time"])[:10]).items()),
    answerable=True)
ask(EARTHQUAKES, "How many earthquakes had a magnitude of 5 or more, by jq?",
    jq("[.features[] | select(.properties.mag >= 5)] | length"),
    lambda tree: count(tree["features"], lambda each: (each["properties"]["mag"] or 0) >= 5))
ask(EARTHQUAKES, "How many does the metadata count?",
    jq(".metadata.count"), lambda tree: tree["metadata"]["count"])

# Dates with strokes.
ask(FLIGHTS, "How many flights were there in each month?",
    sql("SELECT strftime('%m', date) AS month, count(*) FROM t GROUP BY month ORDER BY month"),
    lambda rows: sorted(grouped(rows, lambda row: row["date"][5:7]).items()))
ask(FLIGHTS, "How many flights were later than an hour?",
    sql("SELECT count(*) FROM t WHERE delay > 60"),
    lambda rows: count(rows, lambda row: row["delay"] > 60))
ask(FLIGHTS, "From where are flights latest on average?",
    sql("SELECT origin FROM t GROUP BY origin HAVING count(*) >= 20 ORDER BY avg(delay) DESC LIMIT 1"),
    lambda rows: most({origin: mean(row["delay"] for row in group) for origin, group in grouped(
        rows, lambda row: row["origin"], list).items() if len(group) >= 20}, 1)[0][0])
ask(FLIGHTS, "How many flights began in the evening?",
    sql("SELECT count(*) FROM t WHERE substr(date, 12, 2) >= 18"),
    lambda rows: count(rows, lambda row: int(row["date"][11:13]) >= 18))

# Years as members, numbers as text with separators.
ask(BUDGET, "What came in in 1980?",
    sql('SELECT sum("1980") FROM t'),
    lambda rows: sum(thousands(row["1980"]) for row in rows))
ask(BUDGET, "How many accounts had more than a million in 1980?",
    sql('SELECT count(*) FROM t WHERE "1980" > 1000000'),
    lambda rows: count(rows, lambda row: thousands(row["1980"]) > 1000000))
ask(BUDGET, "Which account had the most in 1980?",
    sql('SELECT "Account name" FROM t ORDER BY "1980" DESC LIMIT 1'),
    lambda rows: max(rows, key=lambda row: thousands(row["1980"]))["Account name"])
ask(BUDGET, "What came in in 1980, by jq?",
    jq('map(."1980" | tonumber) | add'),
    lambda rows: sum(thousands(row["1980"]) for row in rows))
ask(BUDGET, "How many accounts has the source 931?",
    sql('SELECT count(*) FROM t WHERE "Source Category Code" = 931'),
    lambda rows: count(rows, lambda row: row["Source Category Code"] == 931))

ask(INDUSTRIES, "How many were out of work in each series in January 2000?",
    sql("SELECT series, count FROM t WHERE strftime('%Y-%m', date) = '2000-01' ORDER BY count DESC LIMIT 3"),
    lambda rows: most({row["series"]: row["count"] for row in rows if row["date"].startswith("2000-01")}, 3))
ask(INDUSTRIES, "What was the highest rate?",
    sql("SELECT max(rate) FROM t"), lambda rows: max(row["rate"] for row in rows))
ask(JOBS, "How many women worked in 1900?",
    sql("SELECT sum(count) FROM t WHERE year = 1900 AND sex = 'women'"),
    lambda rows: sum(row["count"] for row in rows if row["year"] == 1900 and row["sex"] == "women"))
ask(JOBS, "Which job had the largest share of a year?",
    sql("SELECT job, year FROM t ORDER BY perc DESC LIMIT 1"),
    lambda rows: [(row["job"], row["year"]) for row in [max(rows, key=lambda row: row["perc"])]])

# Maps.
ask(MIME, "How many types has each source?",
    sql("SELECT source, count(*) FROM t WHERE source IS NOT NULL GROUP BY source ORDER BY source"),
    lambda tree: sorted(grouped([each for each in tree.values() if "source" in each], lambda each: each["source"]).items()))
ask(MIME, "How many types are compressible?",
    sql("SELECT count(*) FROM t WHERE compressible"),
    lambda tree: count(tree.values(), lambda each: each.get("compressible")))
ask(MIME, "How many types are compressible, by the word?",
    sql("SELECT count(*) FROM t WHERE compressible = 'true'"),
    lambda tree: count(tree.values(), lambda each: each.get("compressible")))
ask(MIME, "Which types have the extension xml?",
    sql("SELECT key FROM t WHERE extensions LIKE '%\"xml\"%' ORDER BY key"),
    lambda tree: sorted(key for key, each in tree.items() if "xml" in each.get("extensions", [])))
ask(MIME, "How many types are there, by jq?", jq("length"), len)
ask(CITIES, "How many cities are there?", records(), len)
ask(CITIES, "Which cities have the most people?",
    sql("SELECT name, population FROM t ORDER BY population DESC LIMIT 3"),
    lambda tree: [(each["name"], each["population"])
                  for each in sorted(tree.values(), key=lambda each: -each["population"])[:3]])
ask(CITIES, "How many cities has Namibia?",
    sql("SELECT count(*) FROM t WHERE countrycode = 'NA'"),
    lambda tree: count(tree.values(), lambda each: each["countrycode"] == "NA"))
ask(CITIES, "How many cities of Spain are in region 08?",
    sql("SELECT count(*) FROM t WHERE countrycode = 'ES' AND admin1code = '08'"),
    lambda tree: count(tree.values(), lambda each: (each["countrycode"], each["admin1code"]) == ("ES", "08")))
ask(CITIES, "What is 3040051 called?",
    sql("SELECT name FROM t WHERE key = 3040051"),
    lambda tree: tree["3040051"]["name"])
ask(CITIES, "What is 3040051 called, by jq?",
    jq('.["3040051"].name'), lambda tree: tree["3040051"]["name"])
ask(LICENCES, "How many licences does the OSI approve?",
    sql("SELECT count(*) FROM t WHERE osiApproved = 1"),
    lambda tree: count(tree.values(), lambda each: each["osiApproved"]))
ask(LICENCES, "Which licence has the longest text?",
    sql("SELECT key FROM t ORDER BY length(licenseText) DESC LIMIT 1"),
    lambda tree: max(tree, key=lambda key: len(tree[key]["licenseText"])))
ask(LICENCES, "How many licences does the OSI approve, by jq?",
    jq("[.[] | select(.osiApproved)] | length"),
    lambda tree: count(tree.values(), lambda each: each["osiApproved"]))

# Maps below the top.
ask(CANIUSE, "How many features are there?",
    (sql("SELECT count(*) FROM t", rows="/data"),), lambda tree: len(tree["data"]))
ask(CANIUSE, "Which features have the status of a recommendation?",
    sql("SELECT count(*) FROM t WHERE status = 'rec'", rows="/data"),
    lambda tree: count(tree["data"].values(), lambda each: each["status"] == "rec"))
ask(CANIUSE, "How many features can nearly everybody use?",
    sql("SELECT count(*) FROM t WHERE usage_perc_y > 95", rows="/data"),
    lambda tree: count(tree["data"].values(), lambda each: each["usage_perc_y"] > 95))
ask(CANIUSE, "Which support has sticky in Chrome 55?",
    sql("SELECT stats ->> '$.chrome.\"55\"' FROM t WHERE key = 'css-sticky'", rows="/data"),
    lambda tree: tree["data"]["css-sticky"]["stats"]["chrome"]["55"])
ask(CANIUSE, "Which support has sticky in Chrome 55, by jq?",
    jq('.data["css-sticky"].stats.chrome["55"]'),
    lambda tree: tree["data"]["css-sticky"]["stats"]["chrome"]["55"])
ask(CANIUSE, "How many features can nearly everybody use, without a pointer?",
    (sql("SELECT count(*) FROM t WHERE usage_perc_y > 95"),
     sql("SELECT count(*) FROM t WHERE usage_perc_y > 95", rows="/data")),
    lambda tree: count(tree["data"].values(), lambda each: each["usage_perc_y"] > 95))
ask(FEATURES, "How many features are widely available?",
    sql("SELECT count(*) FROM t WHERE status ->> '$.baseline' = 'high'", rows="/features"),
    lambda tree: count(tree["features"].values(), lambda each: each.get("status", {}).get("baseline") == "high"),
    answerable=True)
ask(FEATURES, "How many features are not available everywhere?",
    sql("SELECT count(*) FROM t WHERE status ->> '$.baseline' = 0", rows="/features"),
    lambda tree: count(tree["features"].values(), lambda each: each.get("status", {}).get("baseline") is False))
ask(FEATURES, "How many features are of each kind?",
    sql("SELECT kind, count(*) FROM t GROUP BY kind ORDER BY kind", rows="/features"),
    lambda tree: sorted(grouped(tree["features"].values(), lambda each: each["kind"]).items()))
ask(FEATURES, "How many features are there, by jq?",
    jq(".features | length"), lambda tree: len(tree["features"]))
ask(FEATURES, "Since when is grid widely available, by jq?",
    jq('.features.grid.status.baseline_high_date'),
    lambda tree: tree["features"]["grid"]["status"]["baseline_high_date"])
ask(COMPAT, "How many interfaces are there?",
    sql("SELECT count(*) FROM t", rows="/api"), lambda tree: len(tree["api"]))
ask(COMPAT, "How many interfaces are there, by jq?",
    jq(".api | keys | length"), lambda tree: len(tree["api"]))
ask(COMPAT, "Since when has Chrome AbortController?",
    jq(".api.AbortController.__compat.support.chrome.version_added"),
    lambda tree: tree["api"]["AbortController"]["__compat"]["support"]["chrome"]["version_added"])
ask(COMPAT, "How many properties has CSS?",
    sql("SELECT count(*) FROM t", rows="/css/properties"), lambda tree: len(tree["css"]["properties"]))
ask(COMPAT, "How many interfaces are deprecated?",
    sql("SELECT count(*) FROM t WHERE __compat ->> '$.status.deprecated'", rows="/api"),
    lambda tree: count(tree["api"].values(), lambda each: each.get("__compat", {}).get("status", {}).get("deprecated")))
ask(COMPAT, "Of which version is the data?", jq(".__meta.version"), lambda tree: tree["__meta"]["version"])

# Colours that look like numbers.
ask(ICONS, "Which icons are black?",
    sql("SELECT count(*) FROM t WHERE hex = '000000'"),
    lambda rows: count(rows, lambda row: row["hex"] == "000000"))
ask(ICONS, "Which colour has 1.1.1.1?",
    sql("SELECT hex FROM t WHERE title = '1.1.1.1'"),
    lambda rows: [row["hex"] for row in rows if row["title"] == "1.1.1.1"])
ask(ICONS, "Which icon has the colour of Baidu?",
    sql("SELECT title FROM t WHERE hex = '2932E1'"),
    lambda rows: [row["title"] for row in rows if row["hex"] == "2932E1"])
ask(ICONS, "How many icons have guidelines?",
    sql("SELECT count(guidelines) FROM t"),
    lambda rows: count(rows, lambda row: "guidelines" in row))
ask(ICONS, "Which licences do icons have?",
    sql("SELECT license ->> '$.type' AS kind, count(*) AS n FROM t WHERE license IS NOT NULL "
        "GROUP BY kind ORDER BY n DESC, kind LIMIT 3"),
    lambda rows: most(grouped([row for row in rows if "license" in row], lambda row: row["license"]["type"]), 3))

ask(COUNTRIES, "How many countries are landlocked?",
    sql("SELECT count(*) FROM t WHERE landlocked = true"),
    lambda rows: count(rows, lambda row: row["landlocked"]))
ask(COUNTRIES, "Which country has the number 004?",
    sql("SELECT name ->> '$.common' FROM t WHERE ccn3 = '004'"),
    lambda rows: [row["name"]["common"] for row in rows if row["ccn3"] == "004"])
ask(COUNTRIES, "Which countries have the most neighbours?",
    sql("SELECT name ->> '$.common', json_array_length(borders) AS n FROM t ORDER BY n DESC, 1 LIMIT 3"),
    lambda rows: most({row["name"]["common"]: len(row["borders"]) for row in rows}, 3),
    answerable=True)
ask(COUNTRIES, "In how many countries is French a language?",
    sql("SELECT count(*) FROM t WHERE languages ->> '$.fra' = 'French'"),
    lambda rows: count(rows, lambda row: isinstance(row["languages"], dict) and row["languages"].get("fra") == "French"),
    answerable=True)
ask(COUNTRIES, "How large is each region?",
    sql("SELECT region, sum(area) FROM t GROUP BY region ORDER BY region"),
    lambda rows: sorted(grouped(rows, lambda row: row["region"], lambda group: sum(row["area"] for row in group)).items()))
ask(COUNTRIES, "Which capitals has Germany, by jq?",
    jq('.[] | select(.cca2 == "DE") | .capital[0]'),
    lambda rows: [row["capital"][0] for row in rows if row["cca2"] == "DE"])

ask(OPENFLIGHTS, "How many airports have no IATA code?",
    sql("SELECT count(*) FROM t WHERE iata IS NULL"),
    lambda rows: count(rows, lambda row: row["iata"] is None))
ask(OPENFLIGHTS, "How many airports lie in half a time zone?",
    sql("SELECT count(*) FROM t WHERE timezone <> CAST(timezone AS INTEGER)"),
    lambda rows: count(rows, lambda row: row["timezone"] is not None and row["timezone"] != int(row["timezone"])))
ask(OPENFLIGHTS, "Which airport is the highest?",
    sql("SELECT name, altitude FROM t ORDER BY altitude DESC LIMIT 1"),
    lambda rows: [(row["name"], row["altitude"]) for row in [max(rows, key=lambda row: row["altitude"])]])
ask(US_COUNTIES, "What is 01001 called?",
    sql("SELECT name FROM t WHERE fips = '01001'"),
    lambda rows: [row["name"] for row in rows if row["fips"] == "01001"])
ask(US_COUNTIES, "What is 6037 called?",
    sql("SELECT name FROM t WHERE fips = 6037"),
    lambda rows: [row["name"] for row in rows if int(row["fips"]) == 6037])
ask(US_COUNTIES, "Which numbers has Los Angeles County, by jq?",
    jq('.[] | select(.name == "Los Angeles County") | .fips'),
    lambda rows: [row["fips"] for row in rows if row["name"] == "Los Angeles County"])

# Columns apart from each other.
ask(US_CITIES, "How many cities are there?", jq(".lat | length"), lambda tree: len(tree["lat"]))
ask(US_CITIES, "How many cities lie north of 60 degrees?",
    (sql("SELECT count(*) FROM t WHERE lat > 60"), sql("SELECT count(*) FROM t WHERE value > 60", rows="/lat")),
    lambda tree: count(tree["lat"], lambda value: value > 60))
ask(US_CITIES, "How far west do cities lie?",
    jq(".lon | min"), lambda tree: min(tree["lon"]))

ask(LICENCE_INDEX, "How many licences are exceptions?",
    sql("SELECT count(*) FROM t WHERE is_exception"),
    lambda rows: count(rows, lambda row: row["is_exception"]))
ask(LICENCE_INDEX, "How many licences are deprecated?",
    sql("SELECT count(*) FROM t WHERE is_deprecated = TRUE"),
    lambda rows: count(rows, lambda row: row["is_deprecated"]))
ask(LICENCE_INDEX, "How many licences of each category are not deprecated?",
    sql("SELECT category, count(*) AS n FROM t WHERE NOT is_deprecated GROUP BY category ORDER BY n DESC LIMIT 3"),
    lambda rows: most(grouped([row for row in rows if not row["is_deprecated"]], lambda row: row["category"]), 3))
ask(LICENCE_INDEX, "How many licences have other keys?",
    sql("SELECT count(*) FROM t WHERE json_array_length(other_spdx_license_keys) > 0"),
    lambda rows: count(rows, lambda row: row.get("other_spdx_license_keys")),
    answerable=True)

# A value on each line.
ask(FUNCTIONS, "How many questions are there?", records(), len)
ask(FUNCTIONS, "How many questions offer more than five functions?",
    sql("SELECT count(*) FROM t WHERE json_array_length(function) > 5"),
    lambda rows: count(rows, lambda row: len(row["function"]) > 5))
ask(FUNCTIONS, "Which question offers the most functions?",
    sql("SELECT id, json_array_length(function) AS n FROM t ORDER BY n DESC LIMIT 1"),
    lambda rows: [(row["id"], len(row["function"])) for row in [max(rows, key=lambda row: len(row["function"]))]])
ask(FUNCTIONS, "How many questions offer more than five functions, by jq?",
    jq("[.[] | select((.function | length) > 5)] | length", slurp=True),
    lambda rows: count(rows, lambda row: len(row["function"]) > 5))
ask(FUNCTIONS, "What does the first question say, by jq?",
    jq('select(.id == "live_multiple_0-0-0") | .question[0][0].content'),
    lambda rows: rows[0]["question"][0][0]["content"])


def released(text):
    try:
        return datetime.datetime.strptime(text, "%b %d %Y")
    except (TypeError, ValueError):
        return datetime.datetime.min


def moment(milliseconds):
    return datetime.datetime.fromtimestamp(milliseconds // 1000, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
