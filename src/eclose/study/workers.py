"""Worker processes: spawned, each with a limit on memory and time, replaced when one dies."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from eclose.algebra.errors import RequestError
from eclose.runs.errors import RunError
from eclose.study.executors import Finished, Job, OnReport
from eclose.study.protocols import Evaluator
from eclose.study.results import Objective, failed
from eclose.study.worker import serve

WATCH_SECONDS = 0.05  # how often memory is looked at


@dataclass(eq=False)
class Worker:
    """One process, with the job it has and since when."""

    process: SpawnProcess
    connection: Connection
    ready: bool = False
    job: Job | None = None
    began: float | None = None
    verdict: str = ""  # why it was killed


@dataclass
class WorkerProcesses:
    """Evaluates jobs in processes of their own.

    Args:
        workers: how many.
        memory_limit: bytes that one worker may hold in memory (resident); more ends its trial.
        time_limit: seconds that one trial may take.
        threads: threads that compute one trial.
        imports: modules with the user's registrations, imported first.
    """

    workers: int = 2
    memory_limit: int | None = None
    time_limit: float | None = None
    threads: int = 1
    imports: Sequence[str] = ()
    _pool: list[Worker] = field(default_factory=list, repr=False)
    _queue: list[Job] = field(default_factory=list, repr=False)
    _evaluator: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise RequestError(f"a study needs at least 1 worker, not {self.workers}")
        if self.memory_limit is not None and not _resident_is_known():
            raise RequestError("a memory limit of workers needs /proc, which this system does not have")

    def start(self, evaluate: Evaluator, objectives: Sequence[Objective]) -> None:
        """Pickle the evaluator and start the processes."""
        try:
            self._evaluator = pickle.dumps((evaluate, tuple(objectives)))
        except Exception as error:
            raise RequestError(
                f"the evaluator cannot be sent to worker processes ({type(error).__name__}: {error}); "
                f"define it at the top of a module, or use one worker in this process"
            ) from error
        self._pool = [self._spawned() for _ in range(self.workers)]

    def _spawned(self) -> Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=serve,
            args=(theirs, self._evaluator, tuple(self.imports), self.threads),
            name="eclose-worker",
            daemon=False,  # a trial may start processes of its own, such as a DataLoader's
        )
        process.start()
        theirs.close()
        return Worker(process, ours)

    def submit(self, job: Job) -> None:
        """Take a job; a worker that is ready begins at once."""
        self._queue.append(job)
        self._hand_out()

    def _hand_out(self) -> None:
        for worker in self._pool:
            if self._queue and worker.ready and worker.job is None:
                job = self._queue[0]
                try:
                    worker.connection.send(job)
                except OSError:  # it died while idle; `wait` replaces it
                    continue
                worker.job, worker.began = job, None
                del self._queue[0]

    def wait(self, on_report: OnReport) -> list[Finished]:
        """Return jobs that are done, handing on reports meanwhile; workers that die are replaced."""
        done: list[Finished] = []
        while not done and (self._queue or any(worker.job for worker in self._pool)):
            waited: list[Any] = [worker.connection for worker in self._pool]
            waited += [worker.process.sentinel for worker in self._pool]
            wait(waited, timeout=self._timeout())
            self._enforce_limits()
            for worker in list(self._pool):
                self._receive(worker, on_report, done)
            self._hand_out()
        return done

    def _receive(self, worker: Worker, on_report: OnReport, done: list[Finished]) -> None:
        """Take in what a worker sent; one that died is replaced after its last words."""
        while True:
            try:
                if not worker.connection.poll():
                    if worker.process.is_alive() or worker.connection.poll():
                        return
                    break
                message = worker.connection.recv()
            except (EOFError, OSError):
                break
            if message[0] == "ready":
                worker.ready = True
            elif message[0] == "began":
                worker.began = time.monotonic()
            elif message[0] == "report":
                on_report(*message[1:])
            elif message[0] == "unfit":
                raise RequestError(f"a worker process cannot load the evaluator: {message[1]}")
            elif message[0] == "halted":
                raise RunError(message[1])
            elif message[0] == "done":
                done.append(Finished(*message[1:]))
                worker.job = worker.began = None
        self._bury(worker, done)

    def _bury(self, worker: Worker, done: list[Finished]) -> None:
        """Replace a worker that died; its job has failed."""
        worker.process.join()
        reason = worker.verdict or _cause(worker.process.exitcode)
        if not worker.ready and worker.job is None:
            raise RunError(
                f"a worker process ended before it was ready ({reason}). In a script, start the study under "
                f"`if __name__ == '__main__':`, because workers import the script anew"
            )
        worker.connection.close()
        self._pool[self._pool.index(worker)] = self._spawned()
        if worker.job is not None:
            seconds = time.monotonic() - worker.began if worker.began is not None else 0.0
            done.append(Finished(worker.job.number, failed(reason), seconds))

    def _timeout(self) -> float | None:
        """Return how long to sleep at most: until the next limit may be broken."""
        if self.memory_limit is not None:
            return WATCH_SECONDS
        if self.time_limit is None:
            return None
        begun = [worker.began for worker in self._pool if worker.began is not None]
        return max(0.0, min(begun) + self.time_limit - time.monotonic()) if begun else None

    def _enforce_limits(self) -> None:
        """Kill the workers that broke a limit; their death is noticed like any other."""
        for worker in self._pool:
            if worker.began is None or worker.verdict:
                continue
            if self.time_limit is not None and time.monotonic() - worker.began > self.time_limit:
                worker.verdict = f"took longer than the limit of {self.time_limit:g} s"
            elif self.memory_limit is not None and _resident(worker.process.pid) > self.memory_limit:
                worker.verdict = f"held more memory than the limit of {self.memory_limit / 2**20:,.0f} MiB"
            if worker.verdict:
                worker.process.kill()

    def close(self) -> None:
        """End the processes; closing twice is harmless."""
        pool, self._pool, self._queue = self._pool, [], []
        for worker in pool:
            worker.process.kill()
        for worker in pool:
            worker.process.join()
            worker.connection.close()


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        hint = " (often the system's answer to too little memory)" if name == "SIGKILL" else ""
        return f"the worker process was killed by {name}{hint}"
    return f"the worker process ended with exit status {code}"


def _resident(process: int | None) -> int:
    """Return the bytes a process holds in memory; none where it is gone."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _resident_is_known() -> bool:
    return _resident(os.getpid()) > 0
