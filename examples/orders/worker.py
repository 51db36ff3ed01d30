"""A worker in Python: `BATON=… DATABASE_URL=… python3 worker.py NAME`. Ends at SIGTERM."""

import json
import os
import sys
import threading

import psycopg
from baton_client import Client, Done, Partition, Released, Worker, WorkerEvent, events

name = sys.argv[1] if len(sys.argv) > 1 else "python"
# Whether handlers hang before they write, until the process is killed.
hangs = "HANGS" in os.environ
connections = threading.local()


def connection() -> psycopg.Connection:
    """One for each handler thread."""
    if not hasattr(connections, "own"):
        connections.own = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    return connections.own


def add_up(partition: Partition) -> Done:
    database = connection()
    database.execute(
        "INSERT INTO results.order_attempts (partition_name, attempt, worker, resumed) VALUES (%s, %s, %s, %s)",
        [partition.partition_name, partition.attempt, name, partition.checkpoint is not None],
    )
    records = cents = order_ids = 0
    if partition.checkpoint is not None:
        # Another worker has read it, and ended before it wrote.
        records, cents, order_ids = json.loads(partition.checkpoint)
    else:
        query = f"SELECT order_id, cents FROM {partition.compute_table_name} WHERE partition_name = %s"
        for order_id, amount in database.execute(query, [partition.partition_name]):
            records += 1
            order_ids += order_id
            cents += amount
    partition.raise_if_aborted()
    if hangs:
        partition.progress(records=records, note="writing")
        partition.save_checkpoint(json.dumps([records, cents, order_ids]))
        print(f"hangs {partition.partition_name}", flush=True)
        threading.Event().wait()
    # A worker that was cut off may write after its successor, so the result keeps the fencing token of its lease,
    # and a smaller one changes nothing.
    token = partition.lease["fencingToken"] if partition.lease else 0
    written = database.execute(
        """
        INSERT INTO results.order_totals AS kept (partition_name, fencing_token, worker, records, cents, order_ids)
          VALUES (%s, %s, %s, %s, %s, %s)
          ON CONFLICT (partition_name) DO UPDATE
            SET (fencing_token, worker, records, cents, order_ids) =
                (excluded.fencing_token, excluded.worker, excluded.records, excluded.cents, excluded.order_ids)
            WHERE kept.fencing_token <= excluded.fencing_token
        """,
        [partition.partition_name, token, name, records, cents, order_ids],
    )
    if written.rowcount == 0:
        database.execute(
            "INSERT INTO results.refused_writes (partition_name, fencing_token, worker) VALUES (%s, %s, %s)",
            [partition.partition_name, token, name],
        )
        raise Released("a later lease has written the result")
    return Done(records=records)


def show(event: WorkerEvent) -> None:
    if isinstance(event, events.Settled):
        print(f"settled {event.seconds}", flush=True)


client = Client(os.environ.get("BATON", "http://127.0.0.1:7070"), instance_id=name)
Worker(client, add_up, concurrency=2, tables=["results.orders"], on_event=show).run()
