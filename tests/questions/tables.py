"""Questions about tables that are well made: their cells alone are odd."""

from ask import ask, count, grouped, jq, mean, most, numbers, records, sql
from files import (
    AIRPORTS,
    BIRDSTRIKES,
    COUNTRIES_CSV,
    COUNTRY_POPULATIONS,
    FILMS,
    PIZZAS,
    POPULATION,
    ROUTE_AIRPORTS,
    ROUTES,
    SP500,
    SPECIES,
    SUPERSTORE,
    US_AIRPORTS,
    ZIPCODES,
)

# ZIP codes: leading zeros.
ask(ZIPCODES, "How many rows are there?", records(), len)
ask(ZIPCODES, "How many ZIP codes has New York?",
    sql("SELECT count(*) FROM t WHERE state = 'NY'"),
    lambda rows: count(rows, lambda row: row["state"] == "NY"))
ask(ZIPCODES, "In which county is 00501?",
    sql("SELECT county FROM t WHERE zip_code = '00501'"),
    lambda rows: [row["county"] for row in rows if row["zip_code"] == "00501"])
ask(ZIPCODES, "In which county is 10001?",
    sql("SELECT county FROM t WHERE zip_code = 10001"),
    lambda rows: [row["county"] for row in rows if row["zip_code"] == "10001"])
ask(ZIPCODES, "How many codes begin with 0?",
    sql("SELECT count(*) FROM t WHERE zip_code LIKE '0%'"),
    lambda rows: count(rows, lambda row: row["zip_code"].startswith("0")))
ask(ZIPCODES, "How many codes are between 10000 and 19999?",
    sql("SELECT count(*) FROM t WHERE zip_code BETWEEN 10000 AND 19999"),
    lambda rows: count(rows, lambda row: 10000 <= int(row["zip_code"]) <= 19999))
ask(ZIPCODES, "How many codes are below 1000?",
    sql("SELECT count(*) FROM t WHERE zip_code < 1000"),
    lambda rows: count(rows, lambda row: int(row["zip_code"]) < 1000))
ask(ZIPCODES, "Which five states have the most codes?",
    sql("SELECT state, count(*) AS n FROM t GROUP BY state ORDER BY n DESC, state LIMIT 5"),
    lambda rows: most(grouped(rows, lambda row: row["state"]), 5))
ask(ZIPCODES, "What is the lowest code?",
    sql("SELECT min(zip_code) FROM t"),
    lambda rows: min(row["zip_code"] for row in rows))
ask(ZIPCODES, "Which city lies furthest north?",
    sql("SELECT city FROM t ORDER BY latitude DESC, zip_code LIMIT 1"),
    lambda rows: min(rows, key=lambda row: (-float(row["latitude"]), row["zip_code"]))["city"])
ask(ZIPCODES, "Which city has 10001, by jq?",
    jq('select(.zip_code == "10001") | .city'),
    lambda rows: [row["city"] for row in rows if row["zip_code"] == "10001"])
ask(ZIPCODES, "Which codes has Holtsville, by jq?",
    jq('select(.city == "Holtsville") | .zip_code'),
    lambda rows: [row["zip_code"] for row in rows if row["city"] == "Holtsville"])

# Identifiers that look like numbers in scientific notation.
ask(US_AIRPORTS, "Which airport has the code 0E8?",
    sql("SELECT name FROM t WHERE iata = '0E8'"),
    lambda rows: [row["name"] for row in rows if row["iata"] == "0E8"])
ask(US_AIRPORTS, "Which code has Moriarty?",
    sql("SELECT iata FROM t WHERE name = 'Moriarty'"),
    lambda rows: [row["iata"] for row in rows if row["name"] == "Moriarty"])
ask(US_AIRPORTS, "How many codes begin with 0E?",
    sql("SELECT count(*) FROM t WHERE iata LIKE '0E%'"),
    lambda rows: count(rows, lambda row: row["iata"].startswith("0E")))
ask(US_AIRPORTS, "Which states have the most airports?",
    sql("SELECT state, count(*) AS n FROM t GROUP BY state ORDER BY n DESC, state LIMIT 3"),
    lambda rows: most(grouped(rows, lambda row: row["state"]), 3))
ask(US_AIRPORTS, "Which codes begin with 0E, by jq?",
    jq('select(.iata | tostring | startswith("0E")) | .iata'),
    lambda rows: [row["iata"] for row in rows if row["iata"].startswith("0E")])

ask(AIRPORTS, "How many rows are there?", sql("SELECT count(*) FROM t"), len)
ask(AIRPORTS, "How many airports have an IATA code?",
    sql("SELECT count(iata) FROM t"),
    lambda rows: count(rows, lambda row: row["iata"]))
ask(AIRPORTS, "How many airports have no IATA code?",
    sql("SELECT count(*) FROM t WHERE iata IS NULL OR iata = ''"),
    lambda rows: count(rows, lambda row: not row["iata"]))
ask(AIRPORTS, "How many airports has Namibia?",
    sql("SELECT count(*) FROM t WHERE country = 'NA'"),
    lambda rows: count(rows, lambda row: row["country"] == "NA"))
ask(AIRPORTS, "Which airport has the local identifier 1E4?",
    sql("SELECT name FROM t WHERE lid = '1E4'"),
    lambda rows: [row["name"] for row in rows if row["lid"] == "1E4"])
ask(AIRPORTS, "Which local identifier has Terlingua Ranch Airport?",
    sql("SELECT lid FROM t WHERE name = 'Terlingua Ranch Airport'"),
    lambda rows: [row["lid"] for row in rows if row["name"] == "Terlingua Ranch Airport"])
ask(AIRPORTS, "Which are the three highest airports?",
    sql("SELECT name, elevation FROM t ORDER BY elevation DESC LIMIT 3"),
    lambda rows: [(row["name"], float(row["elevation"]))
                  for row in sorted(rows, key=lambda row: -float(row["elevation"]))[:3]])
ask(AIRPORTS, "How many airports have the time zone of Berlin?",
    sql("SELECT count(*) FROM t WHERE tz = 'Europe/Berlin'"),
    lambda rows: count(rows, lambda row: row["tz"] == "Europe/Berlin"))
ask(AIRPORTS, "How many different local identifiers are there?",
    sql("SELECT count(DISTINCT lid) FROM t"),
    lambda rows: len({row["lid"] for row in rows if row["lid"]}))

# County numbers with leading zeros.
ask(SPECIES, "How many rows are about county 09005?",
    sql("SELECT count(*) FROM t WHERE county_id = '09005'"),
    lambda rows: count(rows, lambda row: row["county_id"] == "09005"))
ask(SPECIES, "How many rows are about county 53073?",
    sql("SELECT count(*) FROM t WHERE county_id = 53073"),
    lambda rows: count(rows, lambda row: row["county_id"] == "53073"))
ask(SPECIES, "How many counties are of a state above 50?",
    sql("SELECT count(DISTINCT county_id) FROM t WHERE county_id > 50000"),
    lambda rows: len({row["county_id"] for row in rows if int(row["county_id"]) > 50000}))
ask(SPECIES, "How much habitat has each species on average?",
    sql("SELECT common_name, avg(habitat_yearround_pct) FROM t GROUP BY common_name ORDER BY 1"),
    lambda rows: sorted(grouped(rows, lambda row: row["common_name"],
                                lambda group: mean(numbers(group, "habitat_yearround_pct"))).items()))

# Names with blanks and signs; the word None is a value.
ask(BIRDSTRIKES, "What did all strikes cost?",
    sql('SELECT sum("Cost Total $") FROM t'),
    lambda rows: int(sum(numbers(rows, "Cost Total $"))))
ask(BIRDSTRIKES, "How many strikes did no damage?",
    sql("""SELECT count(*) FROM t WHERE "Effect Amount of damage" = 'None'"""),
    lambda rows: count(rows, lambda row: row["Effect Amount of damage"] == "None"))
ask(BIRDSTRIKES, "How fast were the aircraft on average?",
    sql('SELECT avg("Speed IAS in knots") FROM t'),
    lambda rows: mean(numbers(rows, "Speed IAS in knots")))
ask(BIRDSTRIKES, "How many strikes were there in each year since 2000?",
    sql("SELECT strftime('%Y', \"Flight Date\") AS year, count(*) FROM t "
        "WHERE \"Flight Date\" >= '2000-01-01' GROUP BY year ORDER BY year"),
    lambda rows: sorted(grouped((row for row in rows if row["Flight Date"] >= "2000"),
                                lambda row: row["Flight Date"][:4]).items()))
ask(BIRDSTRIKES, "How many strikes had US AIRWAYS*?",
    sql("""SELECT count(*) FROM t WHERE "Aircraft Airline Operator" = 'US AIRWAYS*'"""),
    lambda rows: count(rows, lambda row: row["Aircraft Airline Operator"] == "US AIRWAYS*"))
ask(BIRDSTRIKES, "For how many strikes is the speed not known?",
    sql('SELECT count(*) FROM t WHERE "Speed IAS in knots" IS NULL'),
    lambda rows: count(rows, lambda row: not row["Speed IAS in knots"]))

ask(SP500, "On which day did the index close highest?",
    sql("SELECT date, close FROM t ORDER BY close DESC LIMIT 1"),
    lambda rows: [(row["date"], float(row["close"])) for row in [max(rows, key=lambda row: float(row["close"]))]])
ask(SP500, "How many shares were traded in all?",
    sql("SELECT sum(volume) FROM t"),
    lambda rows: sum(int(row["volume"]) for row in rows))
ask(SP500, "On how many days did the index fall?",
    sql("SELECT count(*) FROM t WHERE close < open"),
    lambda rows: count(rows, lambda row: float(row["close"]) < float(row["open"])))
ask(SP500, "What was the mean close in 2008?",
    sql("SELECT avg(close) FROM t WHERE date LIKE '2008%'"),
    lambda rows: mean(numbers([row for row in rows if row["date"].startswith("2008")], "close")))

# The code of Namibia.
ask(COUNTRY_POPULATIONS, "How many people had Namibia in 2020?",
    sql("SELECT population FROM t WHERE country_code_2 = 'NA' AND year = 2020"),
    lambda rows: [int(row["population"]) for row in rows if row["country_code_2"] == "NA" and row["year"] == "2020"])
ask(COUNTRY_POPULATIONS, "How many country codes are there?",
    sql("SELECT count(DISTINCT country_code_2) FROM t"),
    lambda rows: len({row["country_code_2"] for row in rows}))
ask(COUNTRY_POPULATIONS, "Which countries had the most people in 2020?",
    sql("SELECT country_name, population FROM t WHERE year = 2020 ORDER BY population DESC LIMIT 5"),
    lambda rows: most({row["country_name"]: int(row["population"]) for row in rows if row["year"] == "2020"}, 5))
ask(COUNTRY_POPULATIONS, "Of how many rows is the population not known?",
    sql("SELECT count(*) FROM t WHERE population IS NULL"),
    lambda rows: count(rows, lambda row: not row["population"]))

ask(SUPERSTORE, "What profit has each category?",
    sql("SELECT Category, sum(Profit) FROM t GROUP BY Category ORDER BY Category"),
    lambda rows: sorted(grouped(rows, lambda row: row["Category"], lambda group: sum(numbers(group, "Profit"))).items()))
ask(SUPERSTORE, "How many orders had a discount of 20 %?",
    sql("SELECT count(*) FROM t WHERE Discount = 0.2"),
    lambda rows: count(rows, lambda row: float(row["Discount"]) == 0.2))
ask(SUPERSTORE, "What is the largest loss?",
    sql("SELECT min(Profit) FROM t"),
    lambda rows: min(numbers(rows, "Profit")))
ask(SUPERSTORE, "What is the median of the sales?",
    sql("SELECT median(Sales) FROM t"),
    lambda rows: middle(numbers(rows, "Sales")))
ask(SUPERSTORE, "Which sub-categories lose money?",
    sql('SELECT "Sub-Category" FROM t GROUP BY "Sub-Category" HAVING sum(Profit) < 0 ORDER BY 1'),
    lambda rows: sorted(name for name, profit in grouped(rows, lambda row: row["Sub-Category"],
                        lambda group: sum(numbers(group, "Profit"))).items() if profit < 0))

# 14 MB.
ask(POPULATION, "How many people lived on Earth in 2000?",
    sql("SELECT sum(Value) FROM t WHERE Location = 'World' AND Year = 2000"),
    lambda rows: sum(int(row["Value"]) for row in rows if row["Location"] == "World" and row["Year"] == "2000"))
ask(POPULATION, "How many rows has the age group 5-9?",
    sql("SELECT count(*) FROM t WHERE AgeGrp = '5-9'"),
    lambda rows: count(rows, lambda row: row["AgeGrp"] == "5-9"))
ask(POPULATION, "Which age groups are above 90?",
    sql("SELECT DISTINCT AgeGrp FROM t WHERE AgeGrpStart >= 90 ORDER BY AgeGrpStart"),
    lambda rows: [group for group, start in sorted({row["AgeGrp"]: int(row["AgeGrpStart"]) for row in rows}.items(),
                                                   key=lambda pair: pair[1]) if start >= 90])
ask(POPULATION, "How many women above 100 had Japan in 2015?",
    sql("SELECT Value FROM t WHERE Location = 'Japan' AND Year = 2015 AND Sex = 'Female' AND AgeGrp = '100+'"),
    lambda rows: [int(row["Value"]) for row in rows
                  if (row["Location"], row["Year"], row["Sex"], row["AgeGrp"]) == ("Japan", "2015", "Female", "100+")])

ask(ROUTES, "How many routes have an equipment?",
    sql("SELECT count(Equipment) FROM t"),
    lambda rows: count(rows, lambda row: row["Equipment"]))
ask(ROUTES, "Which airports have the most departures?",
    sql("SELECT Source, count(*) AS n FROM t GROUP BY Source ORDER BY n DESC LIMIT 3"),
    lambda rows: most(grouped(rows, lambda row: row["Source"]), 3))
ask({"routes": ROUTES, "airports": ROUTE_AIRPORTS}, "Which cities have the most departures?",
    sql("SELECT a.City, count(*) AS n FROM routes r JOIN airports a ON a.AirportID = r.SourceID "
        "GROUP BY a.City ORDER BY n DESC, a.City LIMIT 3"),
    lambda routes, airports: most(grouped(
        [city for route in routes for city in [cities(airports).get(route["SourceID"])] if city], str), 3))
ask({"routes": ROUTES, "airports": ROUTE_AIRPORTS}, "From how many airports above 5,000 feet do routes lead?",
    sql("SELECT count(DISTINCT a.AirportID) FROM airports a JOIN routes r ON r.SourceID = a.AirportID WHERE a.Altitude > 5000"),
    lambda routes, airports: len({airport["AirportID"] for airport in airports if float(airport["Altitude"] or 0) > 5000}
                                 & {route["SourceID"] for route in routes}))

# Times of day: their hours are texts.
ask(PIZZAS, "What did each type of pizza earn?",
    sql("SELECT type, sum(price) FROM t GROUP BY type ORDER BY type"),
    lambda rows: sorted(grouped(rows, lambda row: row["type"], lambda group: sum(numbers(group, "price"))).items()))
ask(PIZZAS, "How many pizzas were sold from 18 o'clock?",
    sql("SELECT count(*) FROM t WHERE substr(time, 1, 2) >= 18"),
    lambda rows: count(rows, lambda row: int(row["time"][:2]) >= 18))
ask(PIZZAS, "How many pizzas were sold before noon?",
    sql("SELECT count(*) FROM t WHERE strftime('%H', time) < 12"),
    lambda rows: count(rows, lambda row: int(row["time"][:2]) < 12))
ask(PIZZAS, "How many pizzas were sold in March?",
    sql("SELECT count(*) FROM t WHERE strftime('%m', date) = '03'"),
    lambda rows: count(rows, lambda row: row["date"][5:7] == "03"))
ask(PIZZAS, "How many pizzas were sold in the third month?",
    sql("SELECT count(*) FROM t WHERE strftime('%m', date) = 3"),
    lambda rows: count(rows, lambda row: row["date"][5:7] == "03"))
ask(PIZZAS, "How many orders were there?",
    sql("SELECT count(DISTINCT id) FROM t"),
    lambda rows: len({row["id"] for row in rows}))
ask(PIZZAS, "How many pizzas were sold on Sundays?",
    sql("SELECT count(*) FROM t WHERE strftime('%w', date) = '0'"),
    lambda rows: count(rows, lambda row: weekday(row["date"]) == 6))

# Names in many scripts, and durations as people write them.
ask(FILMS, "How many films are from before 1960?",
    sql("SELECT count(*) FROM t WHERE year < 1960"),
    lambda rows: count(rows, lambda row: int(row["year"]) < 1960))
ask(FILMS, "How many films have an É in their original title, in either case?",
    sql("SELECT count(*) FROM t WHERE original_title LIKE '%É%'"),
    lambda rows: count(rows, lambda row: "é" in row["original_title"].lower()))
ask(FILMS, "How long are the films on average?",
    sql("SELECT avg(run_time) FROM t"),
    lambda rows: mean(minutes(row["run_time"]) for row in rows if row["run_time"]))
ask(FILMS, "How many films have titles that are numbers?",
    sql("SELECT title FROM t WHERE title = '1900'"),
    lambda rows: [row["title"] for row in rows if row["title"] == "1900"])

ask(COUNTRIES_CSV, "Which country has the number 004?",
    sql("SELECT \"name.common\" FROM t WHERE ccn3 = '004'"),
    lambda rows: [row["name.common"] for row in rows if row["ccn3"] == "004"])
ask(COUNTRIES_CSV, "Which country has the number 533?",
    sql('SELECT "name.common" FROM t WHERE ccn3 = 533'),
    lambda rows: [row["name.common"] for row in rows if row["ccn3"] == "533"])
ask(COUNTRIES_CSV, "How many countries are independent?",
    sql("SELECT count(*) FROM t WHERE independent = 1"),
    lambda rows: count(rows, lambda row: row["independent"] == "1"))
ask(COUNTRIES_CSV, "Which are the largest countries?",
    sql('SELECT "name.common", area FROM t ORDER BY area DESC LIMIT 3'),
    lambda rows: most({row["name.common"]: float(row["area"]) for row in rows}, 3))
ask(COUNTRIES_CSV, "Which calling code has the United States?",
    sql("SELECT \"idd.root\" FROM t WHERE cca2 = 'US'"),
    lambda rows: [row["idd.root"] for row in rows if row["cca2"] == "US"])
ask(COUNTRIES_CSV, "Which country has the code NA?",
    sql("SELECT \"name.common\" FROM t WHERE cca2 = 'NA'"),
    lambda rows: [row["name.common"] for row in rows if row["cca2"] == "NA"])


def middle(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def cities(airports):
    return {airport["AirportID"]: airport["City"] for airport in airports}


def weekday(date):
    import datetime

    return datetime.date.fromisoformat(date).weekday()


def minutes(text):
    hours, _, rest = text.rpartition("h")
    return 60 * int(hours or 0) + int(rest.strip().removesuffix("m") or 0)
