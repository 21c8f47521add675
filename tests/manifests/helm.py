"""Helm itself, as the Python package helm-sdkpy contains it: a shared library of Helm's Go code.

It is called by ctypes, because the package's own Python code needs a newer Python than this one.
"""

import ctypes
import json
import os
import tempfile
from pathlib import Path

from cluster import Cluster

LIBRARY = Path(os.environ["HELM_SDKPY"], "helm_sdkpy/_lib/linux-amd64/libhelm_sdkpy.so")

# Releases are kept in this process, not in secrets of the cluster.
os.environ["HELM_DRIVER"] = "memory"
for name in ("CACHE", "CONFIG", "DATA"):
    os.environ[f"HELM_{name}_HOME"] = os.path.join(tempfile.gettempdir(), "larder-helm", name.lower())

library = ctypes.CDLL(str(LIBRARY))
library.helm_sdkpy_last_error.restype = ctypes.c_char_p


class HelmError(Exception):
    pass


class Helm:
    """Helm, against a cluster that only records."""

    def __init__(self, namespace="larder"):
        self.cluster, self.handle = Cluster(), ctypes.c_ulonglong()
        self.kubeconfig = tempfile.NamedTemporaryFile("w")
        self.kubeconfig.write(self.cluster.kubeconfig)
        self.kubeconfig.flush()
        config = [namespace.encode(), self.kubeconfig.name.encode(), None, b"{}"]
        self.check(library.helm_sdkpy_config_create(*config, ctypes.byref(self.handle)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        library.helm_sdkpy_config_destroy(self.handle)
        self.cluster.close()
        self.kubeconfig.close()

    @staticmethod
    def check(code):
        if code:
            raise HelmError((library.helm_sdkpy_last_error() or b"unknown").decode())

    def call(self, function, *arguments):
        result = ctypes.c_char_p()
        encoded = [argument.encode() for argument in arguments]
        self.check(getattr(library, function)(self.handle, *encoded, ctypes.byref(result)))
        return json.loads(result.value)

    def install(self, release, chart, values=None):
        return self.release("helm_sdkpy_install", release, chart, values)

    def upgrade(self, release, chart, values=None):
        return self.release("helm_sdkpy_upgrade", release, chart, values)

    def release(self, function, release, chart, values):
        options = {"wait": False, "timeout_seconds": 4, "disable_openapi_validation": True,
                   "server_side_apply": "false"}
        return self.call(function, release, str(chart), json.dumps(values or {}), "", json.dumps(options))

    def lint(self, chart):
        return self.call("helm_sdkpy_lint", str(chart))
