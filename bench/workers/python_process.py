"""Does what `typescript-process.ts` does, once: `python_process.py worker|loop URL CONCURRENCY SECONDS`."""

import http.client
import json
import sys
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

from baton_client import Client, Worker


def worker(url, concurrency, seconds):
    """The `Worker` of the client with a handler that does nothing."""
    handled = []
    first = threading.Event()

    def handle(partition):
        handled.append(1)
        first.set()

    running = Worker(Client(url, instance_id="bench-python"), handle, concurrency=concurrency)
    deadline = time.monotonic() + seconds
    running.start()
    first.wait()
    time.sleep(max(0.0, deadline - time.monotonic()))
    running.stop()
    running.wait()
    return len(handled)


def loop(url, concurrency, seconds):
    """What one writes without the client: each loop settles one partition and pulls the next in one request."""
    deadline = time.monotonic() + seconds

    def one():
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)

        def ask(method, path, body=None, headers={}):
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise OSError(f"answered {response.status}: {answer.decode()}")
            return json.loads(answer)["partitions"]

        settled = 0
        partitions = ask("GET", "/pull")
        while partitions:
            done = [{"leaseId": one["lease"]["id"], "outcome": "done"} for one in partitions]
            headers = {"content-type": "application/json"}
            if time.monotonic() < deadline:
                headers["prefer"] = "batch=1"
            partitions = ask("POST", "/settle", json.dumps(done), headers)
            settled += len(done)
        connection.close()
        return settled

    with ThreadPoolExecutor(concurrency) as threads:
        return sum(each.result() for each in [threads.submit(one) for _ in range(concurrency)])


way, url, concurrency, seconds = sys.argv[1:]
cpu, begun = time.process_time(), time.monotonic()
partitions = {"worker": worker, "loop": loop}[way](url, int(concurrency), float(seconds))
took = time.monotonic() - begun
print(json.dumps({"partitions": partitions, "seconds": took, "clientCpuSeconds": time.process_time() - cpu}))
