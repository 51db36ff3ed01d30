"""Runs the Python client for the cases of `test/clients`, by the protocol of `client-process.ts`."""

import json
import queue
import re
import sys
import threading
from operator import attrgetter

from baton_client import BatonError, Client, Done, Failed, PullChoice, Released, Worker, call_back

lock = threading.Lock()
clients = {}
gates = {}
gates_of_handlers = {}
workers = {}
main_worker = queue.SimpleQueue()


def say(line):
    text = json.dumps(line)
    with lock:
        print(text, flush=True)


def snake(name):
    return re.sub("[A-Z]", lambda letter: f"_{letter.group().lower()}", name)


def snaked(options):
    return {snake(name): value for name, value in (options or {}).items() if value is not None}


def client_for(service, on=None, **more):
    def on_request(request):
        say({"on": on, "event": {"kind": "request", "path": request.path, "status": request.status}})

    return Client(**snaked(service), on_request=on_request, **more)


def new_gate(name):
    with lock:
        gates[name] = threading.Event()
        return gates[name]


def open_gates(names):
    with lock:
        opened = [gates.pop(name) for name in (list(gates) if names is None else names) if name in gates]
    for event in opened:
        event.set()


def handle(action, partition):
    kind = action.get("gate")
    if kind is not None:
        opened = gates_of_handlers.pop(id(partition))
        if kind != "ignores abort":
            partition.on_abort(opened.set)
        opened.wait()
        if kind == "raises at abort":
            partition.raise_if_aborted()
    if "progress" in action:
        partition.progress(**snaked(action["progress"]))
    if "checkpoint" in action:
        partition.save_checkpoint(action["checkpoint"], wait=action.get("awaits", True))
    if action.get("holds"):
        new_gate(partition.partition_name).wait()
    reason, outcome = action.get("reason", ""), action.get("outcome")
    delay = action.get("retryAfterSeconds")
    if outcome == "error":
        raise OSError(reason) from ValueError("the cause")
    if outcome == "failed":
        raise Failed(reason, final=action.get("final", False), retry_after_seconds=delay)
    if outcome == "released":
        return Released(reason, retry_after_seconds=delay)
    return Done(records=action.get("records"))


def work(on, service, actions=None, options=None, untilSignal=False):
    def handler(partition):
        name, checkpoint = partition.partition_name, partition.checkpoint
        if checkpoint is not None:
            say({"on": on, "event": {"kind": "resumed", "partition": name, "checkpoint": checkpoint}})
        return handle(action_for(partition), partition)

    def action_for(partition):
        return (actions or {}).get(partition.partition_name) or (actions or {}).get("*") or {}

    def on_event(event):
        # The test may open the gate as soon as it knows of the start.
        if event.kind == "started" and "gate" in action_for(event.partition):
            gates_of_handlers[id(event.partition)] = new_gate(event.partition.partition_name)
        say({"on": on, "event": plain(event)})

    workers[on] = Worker(client_for(service, on), handler, on_event=on_event, **snaked(options))
    if untilSignal:
        main_worker.put(workers[on])
    else:
        workers[on].start()


def plain(event):
    fields = {"kind": event.kind, **vars(event)}
    if "partition" in fields:
        fields["partition"] = event.partition.partition_name
    if "partitions" in fields:
        fields["partitions"] = [partition.partition_name for partition in event.partitions]
    if fields.get("error") is not None:
        fields["error"] = described(event.error)
    else:
        fields.pop("error", None)
    return fields


def described(error):
    names = ["code", "status", "retryable", "violations", "conflicts", "foundBy"]
    fields = {name: getattr(error, snake(name), None) for name in names}
    stored = getattr(error, "stored", None)
    given = {name: value for name, value in fields.items() if value is not None}
    told = {} if stored is None else {"stored": stored._asdict()}
    return {"name": type(error).__name__, "message": str(error), **given, **told}


def produce(service, descriptors, stream=False, pauseAt=None, options=None, seal=None):
    def coming():
        for at, descriptor in enumerate(descriptors):
            if at == pauseAt:
                opened = new_gate("producer")
                say({"on": "producer", "event": {"kind": "paused"}})
                opened.wait()
            yield descriptor

    def on_failure(failed):
        say({"on": "producer", "event": {"kind": "away", "error": described(failed.error)}})

    progress = []
    receipt = call_back(
        client_for(service, "producer", on_failure=on_failure),
        coming() if stream else descriptors,
        seal=seal,
        on_progress=lambda stored: progress.append(stored.sent),
        **snaked(options),
    )
    fields = receipt._asdict()
    return {"taskId": fields.pop("task_id"), **fields, "progress": progress}


def call(service, method, given):
    """The arguments are those of the TypeScript client: options last."""
    *plain_ones, options = given if given and isinstance(given[-1], dict) else [*given, {}]
    options = snaked(options)
    if isinstance(options.get("pull"), dict):
        options["pull"] = PullChoice(**snaked(options["pull"]))
    with lock:
        client = clients.get(json.dumps(service)) or client_for(service)
        clients[json.dumps(service)] = client
    if "indexes" in options:
        options["indexes"] = (options["indexes"]["first"], options["indexes"]["last"])
    answer = attrgetter(snake(method))(client)(*plain_ones, **options)
    if method == "pull":
        return {"partitions": answer.partitions, "retryAfterSeconds": answer.retry_after_seconds}
    return list(answer) if method == "manifest" else answer


def follow(service, task):
    for event in client_for(service).events():
        say({"on": "follower", "event": {"kind": event.name}})
        if event.name == "task" and event.data["taskId"] == task:
            return


def perform(op, **command):
    if op == "call":
        return call(**command)
    if op == "produce":
        return produce(**command)
    if op == "work":
        return work(**command)
    if op == "follow":
        return follow(**command)
    if op == "open":
        return open_gates(command.get("names"))
    if op == "stop":
        return workers[command["on"]].stop(**snaked(command.get("options")))
    if op == "stopped":
        workers[command["on"]].wait()


def answer(id, command):
    try:
        say({"id": id, "answer": perform(**command)})
    except BatonError as error:
        say({"id": id, "error": described(error)})
    except Exception as error:
        say({"id": id, "error": {"name": type(error).__name__, "message": str(error)}})


def read_commands():
    for line in sys.stdin:
        command = json.loads(line)
        id = command.pop("id")
        threading.Thread(target=answer, args=(id, command), daemon=True).start()


threading.Thread(target=read_commands, daemon=True).start()
# The worker of a program that ends at a signal runs in the main thread.
main_worker.get().run()
