"""The servers that the tours need: Larder, the examples and Redis."""

import re
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from typing import NamedTuple

LISTENING = re.compile(r"larder listening on (http://\S+)")
START_SECONDS = 30
STOP_SECONDS = 10
# How long Redis is away when it is killed.
AWAY_SECONDS = 0.5


class Redis:
    def __init__(self, folder, durable):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        self.command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port)]
        self.command += ["--dir", folder, "--save", ""]
        # Writes survive the end of the process, and need not wait for the disk.
        self.command += ["--appendonly", "yes", "--appendfsync", "no"] if durable else []
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )

    def restart(self):
        """`kill -9`, and a start with the data on disk."""
        self.process.kill()
        self.process.wait()
        time.sleep(AWAY_SECONDS)
        self.start()
        self.await_answer()

    def await_answer(self):
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError("redis-server does not start")
            time.sleep(0.05)

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), START_SECONDS) as asking:
                asking.sendall(b"PING\r\n")
                return asking.recv(5) == b"+PONG"
        except OSError:
            return False


@contextmanager
def serving_redis(durable):
    with tempfile.TemporaryDirectory() as folder:
        redis = Redis(folder, durable)
        try:
            redis.await_answer()
            yield redis
        finally:
            end(redis.process)


class Server(NamedTuple):
    process: subprocess.Popen
    url: str

    def kill(self):
        """`kill -9`"""
        self.process.kill()
        self.process.wait()

    def runs(self):
        return self.process.poll() is None


@contextmanager
def serving(command, log_path, upstream=()):
    with open(log_path, "w") as log:
        command = [*command, "--listen", "127.0.0.1:0", *upstream]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield Server(process, await_url(process, log_path))
    finally:
        end(process)


def end(process):
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def await_url(process, log_path):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        if match := LISTENING.search(log_path.read_text()):
            return match[1]
        if ended:
            break
        time.sleep(0.05)
    sys.exit(f"The server did not start listening:\n{log_path.read_text()}")
