"""deploy/kubernetes is the chart, rendered. With UPDATE=1 in the environment it is written anew."""

import os
import re
import unittest
from pathlib import Path

import yaml
from chart import CHART, KUBERNETES, ROOT
from helm import Helm
from kubernetes_validate import validate

BASE = ROOT / "deploy/kubernetes"
# Not from the chart: Helm makes no namespaces.
OWN = {"kustomization.yaml", "namespace.yaml", "values.yaml"}
HEAD = "# From the chart in deploy/helm/larder: make kubernetes\n"
# What only Helm has use for.
HELMS = re.compile(r"^ *(helm\.sh/chart|app\.kubernetes\.io/managed-by):.*\n", re.M)


def rendered():
    """The files of the base, by name."""
    values = yaml.safe_load((BASE / "values.yaml").read_text())
    with Helm() as helm:
        manifest = helm.install("larder", CHART, values)["manifest"]
    files = {}
    for document in re.split(r"^---\n", manifest, flags=re.M):
        found = re.match(r"# Source: larder/templates/(\S+)\n", document)
        if found:
            files[found[1]] = HEAD + HELMS.sub("", document[found.end():]).strip() + "\n"
    return files


class Kustomize(unittest.TestCase):
    def test_the_base_is_the_chart(self):
        files = rendered()
        if os.environ.get("UPDATE"):
            for name, text in files.items():
                (BASE / name).write_text(text)
        present = {path.name for path in BASE.iterdir()} - OWN
        self.assertEqual(present, set(files))
        for name, text in files.items():
            self.assertEqual((BASE / name).read_text(), text, f"{name} is out of date: make kubernetes")

    def test_every_file_is_a_resource_and_valid(self):
        kustomization = yaml.safe_load((BASE / "kustomization.yaml").read_text())
        self.assertEqual(set(kustomization["resources"]) | OWN - {"namespace.yaml"},
                         {path.name for path in BASE.iterdir()})
        for name in kustomization["resources"]:
            document = yaml.safe_load((BASE / name).read_text())
            validate(document, KUBERNETES, strict=True)
            inside = document["metadata"].get("namespace", document["metadata"]["name"])
            self.assertEqual(inside, kustomization["namespace"])

    def test_the_image_that_is_renamed_is_the_one_that_is_used(self):
        pod = yaml.safe_load((BASE / "deployment.yaml").read_text())["spec"]["template"]["spec"]
        used = {c["image"].rsplit(":")[0] for c in pod["containers"] + pod["initContainers"]}
        renamed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["images"]
        self.assertEqual(used, {image["name"] for image in renamed})


if __name__ == "__main__":
    unittest.main()
