"""The main function of a worker process. It loads nothing heavy by itself: the evaluator brings what it needs."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from eclose.runs.errors import RunError
from eclose.study.executors import Job, Report, guarded, limit_threads

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def serve(connection: Connection, evaluator: bytes, imports: Sequence[str], threads: int) -> None:
    """Evaluate jobs that arrive until the connection closes.

    Args:
        connection: to the driver; jobs come in, `("ready",)`, `("began", n)`, `("report", ...)`, `("done", ...)`,
            `("halted", why)` go out.
        evaluator: the pickled evaluator and objectives; the driver made it, no stranger did.
        imports: modules with the user's registrations.
        threads: threads that compute one trial.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the driver decides
    _end_with_parent()
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    try:
        for module in imports:
            importlib.import_module(module)
        evaluate, objectives = pickle.loads(evaluator)
    except Exception as error:
        connection.send(("unfit", f"{type(error).__name__}: {error}"))
        return
    limit_threads(threads)
    connection.send(("ready",))

    def send_report(number: int, step: int, values: dict[str, Any]) -> None:
        connection.send(("report", number, step, values))

    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        connection.send(("began", job.number))
        began = time.monotonic()
        limit_threads(threads)
        try:
            result = guarded(evaluate, job.term, job.seed, Report(job.number, job.folder, send_report), objectives)
        except RunError as error:
            connection.send(("halted", str(error)))
            return
        connection.send(("done", job.number, result, time.monotonic() - began))


def _end_with_parent() -> None:
    """End this process when its driver is gone, however the driver ended."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="watch-parent").start()
