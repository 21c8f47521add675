"""What docker-compose.yml promises: no default passwords, hardened containers, fixed versions."""

import re
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml
from chart import ROOT

TEXT = (ROOT / "docker-compose.yml").read_text()
SERVICES = yaml.safe_load(TEXT)["services"]
# Builds itself at the start.
WRITABLE = {"identity"}
SECRETS = ROOT / "deploy/compose-secrets"


class Compose(unittest.TestCase):
    def test_no_password_has_a_default(self):
        uses = re.findall(r"\$\{(\w*PASSWORD\w*)([^}]*)\}", TEXT)
        self.assertGreaterEqual({name for name, _ in uses},
                                {"REDIS_PASSWORD", "GRAFANA_PASSWORD", "KEYCLOAK_PASSWORD"})
        for name, rest in uses:
            self.assertTrue(rest.startswith(":?"), (name, rest))

    def test_no_password_is_an_argument(self):
        for name, service in SERVICES.items():
            self.assertNotIn("PASSWORD", str(service.get("command")), name)

    def test_every_container_is_hardened(self):
        for name, service in SERVICES.items():
            self.assertEqual(service["cap_drop"], ["ALL"], name)
            self.assertIn("no-new-privileges:true", service["security_opt"], name)
            self.assertEqual(service.get("read_only", False), name not in WRITABLE, name)
            self.assertLessEqual(set(service.get("cap_add", [])), {"NET_BIND_SERVICE"}, name)

    def test_versions_are_exact(self):
        for name, service in SERVICES.items():
            if "build" not in service:
                self.assertRegex(service["image"], r":v?\d+\.\d+\.\d+(-\w+)?(@sha256:[0-9a-f]{64})?$", name)

    def test_each_waits_until_what_it_needs_is_healthy(self):
        self.assertEqual(SERVICES["larder"]["depends_on"]["redis"]["condition"], "service_healthy")
        self.assertEqual(SERVICES["proxy"]["depends_on"]["larder"]["condition"], "service_healthy")
        self.assertIn("healthcheck", SERVICES["redis"])
        self.assertIn("HEALTHCHECK", (ROOT / "Dockerfile").read_text())

    def test_larder_has_time_to_stop(self):
        example = (ROOT / "larder.example.toml").read_text()
        delay, grace = (int(re.search(rf"^#{name} = (\d+)$", example, re.M)[1]) for name in ("shutdown_delay", "grace"))
        larder = SERVICES["larder"]
        self.assertFalse({"LARDER_SERVER__SHUTDOWN_DELAY", "LARDER_SERVER__GRACE"} & set(larder["environment"]))
        self.assertGreater(int(larder["stop_grace_period"].removesuffix("s")), delay + grace + 2)

    def test_ports_are_published_on_loopback_and_by_their_profile(self):
        for name, service in SERVICES.items():
            for port in service.get("ports", []):
                self.assertTrue(port.startswith("127.0.0.1:"), name)
        self.assertNotIn("ports", SERVICES["larder"])
        published = [n for n, s in SERVICES.items() if any("18081" in p for p in s.get("ports", []))]
        self.assertEqual([SERVICES[name]["profiles"] for name in published], [["identity"]])

    def test_secrets_are_written_once_and_for_their_owner(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, ".env")
            file.write_text("LARDER_HOST=mcp.example.com")
            subprocess.run([SECRETS, file], check=True, capture_output=True)
            first = file.read_text()
            subprocess.run([SECRETS, file], check=True, capture_output=True)
            self.assertEqual(file.read_text(), first)
            self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        values = dict(line.split("=") for line in first.splitlines())
        self.assertEqual(values.pop("LARDER_HOST"), "mcp.example.com")
        required = set(re.findall(r"\$\{(\w+):\?", TEXT))
        self.assertEqual(set(values), required)
        self.assertEqual(len(set(values.values())), len(required))
        for value in values.values():
            self.assertRegex(value, r"^[0-9a-f]{48}$")


if __name__ == "__main__":
    unittest.main()
