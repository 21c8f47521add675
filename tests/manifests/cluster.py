"""A Kubernetes API server that only records, on loopback, for Helm to install charts into.

It knows the kinds that the chart has, keeps what is created and changed in its order, and reports each
Job as complete at once. Nothing runs.
"""

import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

# Group and version, plural, kind.
KINDS = [
    ("v1", "configmaps", "ConfigMap"),
    ("v1", "pods", "Pod"),
    ("v1", "secrets", "Secret"),
    ("v1", "serviceaccounts", "ServiceAccount"),
    ("v1", "services", "Service"),
    ("apps/v1", "deployments", "Deployment"),
    ("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    ("batch/v1", "jobs", "Job"),
    ("monitoring.coreos.com/v1", "prometheusrules", "PrometheusRule"),
    ("monitoring.coreos.com/v1", "servicemonitors", "ServiceMonitor"),
    ("networking.k8s.io/v1", "ingresses", "Ingress"),
    ("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy"),
    ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
]


def discovery(version):
    resources = [
        {"name": plural, "singularName": "", "kind": kind, "namespaced": True,
         "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"]}
        for group_version, plural, kind in KINDS if group_version == version
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


def groups():
    versions = sorted({version for version, *_ in KINDS if "/" in version})
    entries = [{"groupVersion": version, "version": version.split("/")[1]} for version in versions]
    found = [{"name": entry["groupVersion"].split("/")[0], "versions": [entry], "preferredVersion": entry}
             for entry in entries]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


def merged(before, patch):
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, value, kind="application/json"):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def not_found(self):
        self.answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                          "reason": "NotFound", "code": 404, "message": "not found"})

    def place(self):
        """The group and version, plural, and name that the path tells."""
        parts = urlsplit(self.path).path.strip("/").split("/")
        version, rest = ("v1", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        if rest[:1] == ["namespaces"]:
            rest = rest[2:]
        return version, rest[0] if rest else None, rest[1] if len(rest) > 1 else None

    def do_GET(self):
        path, query = urlsplit(self.path).path.rstrip("/"), parse_qs(urlsplit(self.path).query)
        if path == "/version":
            return self.answer(200, {"major": "1", "minor": "33", "gitVersion": "v1.33.0"})
        if path == "/api":
            return self.answer(200, {"kind": "APIVersions", "versions": ["v1"]})
        if path == "/apis":
            return self.answer(200, groups())
        if path == "/openapi/v2":
            # Protobuf: no schemas, so Helm validates nothing. The tests do.
            return self.answer(200, b"", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
        if not path.startswith(("/api/", "/apis/")):
            return self.not_found()
        version, plural, name = self.place()
        if plural is None:
            return self.answer(200, discovery(version))
        objects = self.server.cluster.live
        if name is not None:
            found = objects.get((version, plural, name))
            return self.answer(200, found) if found else self.not_found()
        kind = next(kind for v, p, kind in KINDS if (v, p) == (version, plural))
        items = [found for (v, p, _), found in objects.items() if (v, p) == (version, plural)]
        if query.get("watch"):
            return self.watch(version, kind, items)
        self.answer(200, {"kind": f"{kind}List", "apiVersion": version,
                          "metadata": {"resourceVersion": "1"}, "items": items})

    def watch(self, version, kind, items):
        """What there is, that this is all, and then nothing."""
        last = {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}
        events = [{"type": "ADDED", "object": item} for item in items]
        events.append({"type": "BOOKMARK",
                       "object": {"kind": kind, "apiVersion": version, "metadata": last}})
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write("".join(json.dumps(event) + "\n" for event in events).encode())
        self.server.cluster.closing.wait(30)

    def do_POST(self):
        self.keep({})

    def do_PUT(self):
        self.keep({})

    def do_PATCH(self):
        self.keep(self.server.cluster.live[self.place()])

    def keep(self, before):
        """Lists of a patch replace those before, which is enough for what is tested."""
        kept = merged(before, json.loads(self.rfile.read(int(self.headers["content-length"]))))
        version, plural, _ = self.place()
        name = kept["metadata"]["name"]
        kept["metadata"].setdefault("uid", name)
        kept["metadata"]["resourceVersion"] = str(next(self.server.cluster.versions))
        if plural == "jobs":
            done = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]
            kept["status"] = {"succeeded": 1, "conditions": done}
        self.server.cluster.live[version, plural, name] = kept
        self.server.cluster.created.append(kept)
        self.answer(201 if not before else 200, kept)

    def do_DELETE(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.cluster.live.pop(self.place(), None)
        self.answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})


class Cluster:
    """The recording API server. `created` has what was created or changed, in its order."""

    def __init__(self):
        self.created, self.live = [], {}
        self.versions, self.closing = itertools.count(1), threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads, self.server.cluster = True, self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def kubeconfig(self):
        url = "http://127.0.0.1:%d" % self.server.server_address[1]
        return json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": url}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "users": [{"name": "test", "user": {}}],
        })

    def close(self):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
