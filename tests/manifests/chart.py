"""Installs the chart with several values and checks what Helm creates."""

import functools
import json
import re
import unittest
from pathlib import Path

import yaml
from helm import Helm, HelmError
from kubernetes_validate import validate

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/larder"
KUBERNETES = "1.33"
# kubeVersion of the chart.
OLDEST_KUBERNETES = "1.23"
# Larder's minimum, which everybody has to set.
URL = {"publicUrl": "https://mcp.example.com/mcp"}
EVERYTHING = {
    **URL,
    "imagePullSecrets": [{"name": "registry"}],
    "image": {"digest": "sha256:" + "a" * 64},
    "stateKey": {"secretName": "larder-state"},
    "env": [{"name": "AWS_REGION", "value": "eu-central-1"}],
    "envFrom": [{"secretRef": {"name": "larder-aws"}}],
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "larder"}}],
    "volumeMounts": [{"name": "data", "mountPath": "/var/lib/larder"}],
    "service": {"annotations": {"a": "b"}},
    "ingress": {"enabled": True, "extraPaths": [{"path": "/files", "pathType": "Prefix"}]},
    "autoscaling": {"inFlight": {"enabled": True}},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "podAnnotations": {"c": "d"},
    "metrics": {name: {"enabled": True} for name in ("serviceMonitor", "prometheusRule", "alerts", "dashboard")},
}


def installed(values, release="larder"):
    """A release, installed once for all tests that ask for it."""
    return _installed(json.dumps(values), release)


@functools.cache
def _installed(values, release):
    return Release(json.loads(values), release)


class Release:
    """What a release consists of."""

    def __init__(self, values, release):
        with Helm() as helm:
            result = helm.install(release, CHART, values)
            self.order = [(o["kind"], o["metadata"]["name"]) for o in helm.cluster.created]
        rendered = [yaml.safe_load(hook["manifest"]) for hook in result.get("hooks", [])]
        rendered += yaml.safe_load_all(result["manifest"])
        self.objects = [each for each in rendered if each]

    def get(self, kind, name="larder"):
        found = [o for o in self.objects if (o["kind"], o["metadata"]["name"]) == (kind, name)]
        assert len(found) == 1, (kind, name, [(o["kind"], o["metadata"]["name"]) for o in self.objects])
        return found[0]

    def has(self, kind, name="larder"):
        return any((o["kind"], o["metadata"]["name"]) == (kind, name) for o in self.objects)

    def pod(self, kind="Deployment", name="larder"):
        return self.get(kind, name)["spec"]["template"]["spec"]

    def variables(self):
        return {variable["name"]: variable for variable in self.pod()["containers"][0]["env"]}


class Chart(unittest.TestCase):
    def test_every_object_is_valid_for_kubernetes(self):
        for values in (URL, EVERYTHING, {**URL, "migrate": {"mode": "init"}}):
            for each in installed(values).objects:
                # The operator's kinds have no schema here.
                if not each["apiVersion"].startswith("monitoring.coreos.com/"):
                    for version in (OLDEST_KUBERNETES, KUBERNETES):
                        validate(each, version, strict=True)
                self.assertEqual(each["metadata"]["namespace"], "larder")

    def test_helm_lints_it(self):
        with Helm() as helm:
            result = helm.lint(CHART)
        self.assertIsNone(result["Errors"])
        # An icon is recommended. 3 is a warning, 4 an error.
        self.assertFalse([m for m in result["Messages"] if m["Severity"] >= 2], result)

    def test_containers_have_no_rights(self):
        release = installed({**EVERYTHING, "migrate": {"mode": "init"}})
        hook = installed(EVERYTHING)
        self.assertFalse(release.get("ServiceAccount")["automountServiceAccountToken"])
        for pod in (release.pod(), hook.pod("Job", "larder-migrate")):
            self.assertFalse(pod["automountServiceAccountToken"])
            self.assertFalse(pod["enableServiceLinks"])
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])
            self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            for container in pod["containers"] + pod.get("initContainers", []):
                self.assertEqual(container["securityContext"], {
                    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                })
                self.assertIn("memory", container["resources"]["limits"])

    def test_the_migration_is_over_before_the_new_version_comes(self):
        order = installed(URL).order
        at = [order.index(each) for each in
              (("ConfigMap", "larder-migrate"), ("Job", "larder-migrate"), ("Deployment", "larder"))]
        self.assertEqual(at, sorted(at))
        # Needs nothing that the chart itself creates, apart from its own configuration.
        job = installed(URL).pod("Job", "larder-migrate")
        self.assertNotIn("serviceAccountName", job)
        self.assertEqual([v["configMap"]["name"] for v in job["volumes"]], ["larder-migrate"])
        with Helm() as helm:
            helm.install("larder", CHART, URL)
            helm.cluster.created.clear()
            helm.upgrade("larder", CHART, {**URL, "image": {"tag": "0.2.0"}})
            jobs = [o for o in helm.cluster.created if o["kind"] == "Job"]
        images = [job["spec"]["template"]["spec"]["containers"][0]["image"] for job in jobs]
        self.assertEqual(images, ["registry.example.com/larder:0.2.0"])

    def test_the_migration_runs_in_the_pods_or_not_at_all(self):
        init = installed({**URL, "migrate": {"mode": "init"}})
        self.assertFalse(init.has("Job", "larder-migrate"))
        self.assertEqual(init.pod()["initContainers"][0]["args"], ["migrate"])
        none = installed({**URL, "migrate": {"mode": "none"}})
        self.assertFalse(none.has("Job", "larder-migrate") or "initContainers" in none.pod())

    def test_the_probes_look_at_the_process_alone(self):
        container = installed(URL).pod()["containers"][0]
        paths = {name: container[f"{name}Probe"]["httpGet"]["path"]
                 for name in ("startup", "liveness", "readiness")}
        self.assertEqual(paths, {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"})

    def test_a_pod_has_time_to_stop(self):
        for values in ({}, {"grace": 60, "shutdownDelay": 10}):
            release = installed({**URL, **values})
            variables = release.variables()
            delay = int(variables["LARDER_SERVER__SHUTDOWN_DELAY"]["value"])
            grace = int(variables["LARDER_SERVER__GRACE"]["value"])
            self.assertGreater(release.pod()["terminationGracePeriodSeconds"], delay + grace + 2)
            # Requests arrive until the endpoint is removed everywhere.
            self.assertGreater(delay, 0)
        self.assertEqual((delay, grace), (10, 60))

    def test_a_pod_has_memory_for_queries_too(self):
        example = (ROOT / "larder.example.toml").read_text()
        query = example[example.index("\n[query]"):]
        memory, concurrent = (int(re.search(rf"^#{name} = (\d+)$", query, re.M)[1]) for name in ("memory_bytes", "concurrent"))
        limit = installed(URL).pod()["containers"][0]["resources"]["limits"]["memory"]
        # The other defaults are for a server with 1 GiB.
        self.assertGreaterEqual(int(limit.removesuffix("Gi")) << 30, (1 << 30) + memory * concurrent)

    def test_a_password_is_only_ever_referred_to(self):
        release = installed(URL)
        reference = {"secretKeyRef": {"name": "larder-secrets", "key": "store-url"}}
        self.assertEqual(release.variables()["LARDER_STORE__URL"]["valueFrom"], reference)
        self.assertFalse([o for o in release.objects if o["kind"] == "Secret"])
        files = installed({**URL, "store": {"url": "file:///var/lib/larder"}})
        self.assertEqual(files.variables()["LARDER_STORE__URL"]["value"], "file:///var/lib/larder")

    def test_the_state_key_is_a_file(self):
        release = installed(EVERYTHING)
        file = release.variables()["LARDER_SERVER__STATE_KEY_FILE"]["value"]
        mounts = {m["name"]: m["mountPath"] for m in release.pod()["containers"][0]["volumeMounts"]}
        self.assertEqual(file, mounts["state-key"] + "/state-key")
        self.assertEqual(mounts["data"], "/var/lib/larder")

    def test_the_ingress_streams(self):
        ingress = installed({**URL, "ingress": {"enabled": True}}).get("Ingress")
        rule = ingress["spec"]["rules"][0]
        self.assertEqual((rule["host"], ingress["spec"]["tls"][0]["hosts"]), ("mcp.example.com", ["mcp.example.com"]))
        paths = [(p["path"], p["pathType"]) for p in rule["http"]["paths"]]
        self.assertEqual(paths, [(path, "Prefix") for path in (
            "/mcp", "/resources", "/content",
            "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server")])
        annotations = ingress["metadata"]["annotations"]
        short = {name.rsplit("/")[-1]: value for name, value in annotations.items()}
        self.assertEqual((short["proxy-buffering"], short["proxy-request-buffering"]), ("off", "off"))
        self.assertGreaterEqual(int(short["proxy-read-timeout"]), 3600)
        nginx = (ROOT / "deploy/nginx/larder.conf").read_text()
        self.assertEqual(short["proxy-body-size"], re.search(r"client_max_body_size (\w+);", nginx)[1])
        extra = installed(EVERYTHING).get("Ingress")["spec"]["rules"][0]["http"]["paths"]
        self.assertEqual(extra[-1]["path"], "/files")
        self.assertFalse(installed(URL).has("Ingress"))

    def test_autoscaling_owns_the_number_of_pods(self):
        release = installed(EVERYTHING)
        self.assertNotIn("replicas", release.get("Deployment")["spec"])
        metrics = release.get("HorizontalPodAutoscaler")["spec"]["metrics"]
        self.assertEqual([m["type"] for m in metrics], ["Resource", "Pods"])
        self.assertEqual(metrics[1]["pods"]["metric"]["name"], "larder_calls")
        fixed = installed({**URL, "replicas": 3, "autoscaling": {"enabled": False}})
        self.assertEqual(fixed.get("Deployment")["spec"]["replicas"], 3)
        self.assertFalse(fixed.has("HorizontalPodAutoscaler"))

    def test_pods_are_spread_and_not_all_evicted(self):
        release = installed(URL)
        labels = release.get("Deployment")["spec"]["selector"]["matchLabels"]
        spread = release.pod()["topologySpreadConstraints"]
        keys = [each["topologyKey"] for each in spread]
        self.assertEqual(keys, ["kubernetes.io/hostname", "topology.kubernetes.io/zone"])
        budget = release.get("PodDisruptionBudget")["spec"]
        self.assertEqual(budget["maxUnavailable"], 1)
        service = release.get("Service")["spec"]["selector"]
        for selector in [each["labelSelector"]["matchLabels"] for each in spread]:
            self.assertEqual(selector, labels)
        self.assertEqual((budget["selector"]["matchLabels"], service), (labels, labels))
        template = release.get("Deployment")["spec"]["template"]["metadata"]["labels"]
        self.assertLessEqual(labels.items(), template.items())

    def test_the_network_policy_names_what_is_called(self):
        rules = installed(URL).get("NetworkPolicy")["spec"]["egress"]
        ports = sorted(port["port"] for rule in rules for port in rule["ports"])
        self.assertEqual(ports, [53, 53, 443, 4318, 6379])
        less = {**URL, "networkPolicy": {"egress": {"otlp": None, "redis": {"to": [], "ports": [{"port": 6380}]}}}}
        rules = installed(less).get("NetworkPolicy")["spec"]["egress"]
        self.assertEqual(sorted(port["port"] for rule in rules for port in rule["ports"]), [53, 53, 443, 6380])
        # Also the job that migrates, which comes before the policy does.
        labels = installed(URL).get("Job", "larder-migrate")["spec"]["template"]["metadata"]["labels"]
        selected = installed(URL).get("NetworkPolicy")["spec"]["podSelector"]["matchLabels"]
        self.assertLessEqual(selected.items(), labels.items())

    def test_alerts_and_dashboard_are_the_files_of_deploy(self):
        release = installed(EVERYTHING)
        alerts = (ROOT / "deploy/prometheus/alerts.yml").read_text()
        self.assertEqual(yaml.safe_load(release.get("ConfigMap", "larder-alerts")["data"]["larder.yml"]), yaml.safe_load(alerts))
        self.assertEqual(release.get("PrometheusRule")["spec"], yaml.safe_load(alerts))
        dashboard = json.loads((ROOT / "deploy/grafana/larder.json").read_text())
        self.assertEqual(json.loads(release.get("ConfigMap", "larder-dashboard")["data"]["larder.json"]), dashboard)
        monitor = release.get("ServiceMonitor")
        service = release.get("Service")
        self.assertLessEqual(monitor["spec"]["selector"]["matchLabels"].items(), service["metadata"]["labels"].items())
        # The alerts look for this job.
        job = service["metadata"]["labels"][monitor["spec"]["jobLabel"]]
        self.assertIn(f'up{{job="{job}"}}', alerts)
        ports = [port["name"] for port in service["spec"]["ports"]]
        self.assertIn(monitor["spec"]["endpoints"][0]["port"], ports)

    def test_another_configuration_restarts_the_pods(self):
        def checksum(values):
            annotations = installed({**URL, **values}).get("Deployment")["spec"]["template"]["metadata"]["annotations"]
            return annotations.get("checksum/config")

        self.assertNotEqual(checksum({"config": "# a"}), checksum({"config": "# b"}))
        self.assertIsNone(checksum({"restartOnConfigChange": False}))

    def test_two_releases_of_one_namespace_do_not_meet(self):
        first, second = installed(URL, "one"), installed(URL, "two")
        names = [{(o["kind"], o["metadata"]["name"]) for o in each.objects} for each in (first, second)]
        self.assertFalse(names[0] & names[1])
        selectors = [each.get("Service", f"{name}-larder")["spec"]["selector"]
                     for each, name in ((first, "one"), (second, "two"))]
        self.assertNotEqual(*selectors)

    def test_wrong_values_are_refused(self):
        for values, named in [
            ({}, "publicUrl"),
            ({"publicUrl": "mcp.example.com"}, "publicUrl"),
            ({**URL, "replica": 2}, "replica"),
            ({**URL, "replicas": "two"}, "replicas"),
            ({**URL, "shutdownDelay": -1}, "shutdownDelay"),
            # What earlier versions of the chart had for it.
            ({**URL, "preStopSeconds": 5}, "preStopSeconds"),
            ({**URL, "migrate": {"mode": "later"}}, "mode"),
            ({**URL, "image": {"digest": "latest"}}, "digest"),
            ({**URL, "networkPolicy": {"egress": {"x": {"to": []}}}}, "ports"),
            ({**URL, "store": {"secretName": ""}}, "store.secretName"),
        ]:
            with self.assertRaises(HelmError) as refused:
                installed(values)
            self.assertIn(named, str(refused.exception))

    def test_every_value_is_described_by_the_schema(self):
        def compare(schema, value, path):
            if not (isinstance(value, dict) and "properties" in schema):
                return
            self.assertEqual(set(value) | {"global"}, set(schema["properties"]) | {"global"}, path)
            for name, each in value.items():
                compare(schema["properties"][name], each, f"{path}.{name}")

        schema = json.loads((CHART / "values.schema.json").read_text())
        compare(schema, yaml.safe_load((CHART / "values.yaml").read_text()), "")

    def test_the_oldest_kubernetes_is_the_one_that_is_checked(self):
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.assertEqual(chart["kubeVersion"], f">={OLDEST_KUBERNETES}.0-0")

    def test_the_version_is_the_crates(self):
        cargo = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M)[1]
        self.assertEqual(yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"], cargo)


if __name__ == "__main__":
    unittest.main()
