"""The door of a run: groups out, acknowledgements, tasks and weights in."""

from __future__ import annotations

import os
import time
import uuid
from types import TracebackType
from typing import Any, Container, Dict, Iterator, List, Optional, Sequence, Type
from urllib.parse import quote

from .errors import Refused, RunFailed
from .group import Group, Row
from .wire import Wire


def connect(
    url: str,
    token: Optional[str] = None,
    *,
    consumer: str = "",
    patience_s: float = 120.0,
) -> "Door":
    """Connects to `agentbox serve` and becomes the trainer of its run: one that was connected before gets
    `Superseded` from now on. The token is AGENTBOX_TOKEN of the environment unless one is given."""
    return Door(Wire(url, token or os.environ.get("AGENTBOX_TOKEN"), patience_s), consumer)


class Door:
    """Use `connect`. For one thread at a time."""

    def __init__(self, wire: Wire, consumer: str) -> None:
        self._wire = wire
        self._consumer = consumer
        self._acked: set[int] = set()
        self._ended = False
        self._failure: Optional[str] = None
        self.info: Row = {}
        self._connect()

    def _connect(self) -> None:
        self._wire.session = None
        self.info = self._wire.ask("POST", "/v1/connect", {"consumer": self._consumer})
        self._wire.session = self.info["session"]

    def _ask(self, method: str, path: str, doc: Any = None, wait_s: float = 0.0) -> Any:
        try:
            return self._wire.ask(method, path, doc, wait_s)
        except Refused as refused:
            # An engine that was started again knows no sessions. One that knows ours as an old one says superseded.
            if refused.code != "session":
                raise
            self._connect()
            return self._wire.ask(method, path, doc, wait_s)

    # ---- groups

    def fetch(self, after: int = 0, max: int = 1, wait_s: float = 30.0, formats: Sequence[str] = ()) -> Row:
        """One answer of the door: `groups` (may be empty), `ended`, `state`, `version`, `cursor`."""
        query = f"/v1/groups?after={after}&max={max}&wait={wait_s:g}"
        if formats:
            query += "&formats=" + quote(",".join(formats), safe=",:")
        answer: Row = self._ask("GET", query, wait_s=wait_s)
        self._hear(answer)
        answer["groups"] = [Group._of(raw, self) for raw in answer["groups"]]
        return answer

    def groups(
        self,
        formats: Sequence[str] = (),
        *,
        done: Container[int] = (),
        ahead: int = 1,
        wait_s: float = 30.0,
    ) -> Iterator[Group]:
        """The groups as they are closed, those first that nobody acknowledged. Ends when the run is over and all were
        given out; raises RunFailed when it broke. `ahead` are fetched at once.

        `done` are the numbers (`seq`) of the groups that the trainer's own checkpoint holds: one that was used and not
        acknowledged, since the trainer died between, is acknowledged and not given out again.

        A group that was given out and is not acknowledged does not come again in this loop, but in the next one."""
        after = 0
        if done:
            # Before anything is given out: what became too old meanwhile would be dropped as if nobody had used it.
            closed = self.status()["closed"]
            self._ack([seq for seq in range(self.info["cursor"] + 1, closed + 1) if seq in done])
        while not self._ended:
            answer = self.fetch(after, ahead, wait_s, formats)
            for group in answer["groups"]:
                after = group.seq
                if group.seq not in self._acked:
                    yield group
            if answer["groups"]:
                continue
            if answer["state"] == "over":
                if answer.get("failure"):
                    raise RunFailed(answer["failure"])
                if answer["ended"] or after:
                    return
        if self._failure:
            raise RunFailed(self._failure)

    def ack(self, *groups: Group) -> None:
        """Acknowledges groups, in any order. When this returns, nobody gets them again."""
        self._ack([group.seq for group in groups if group.seq not in self._acked])

    def _ack(self, seqs: List[int]) -> None:
        if not seqs:
            return
        answer = self._ask("POST", "/v1/ack", {"seq": seqs})
        self._acked.update(seqs)
        self._hear(answer)

    def _hear(self, answer: Row) -> None:
        """After the last group the engine ends: there is nobody to ask whether more comes, and no answer to wait for."""
        if answer.get("ended"):
            self._ended, self._failure, self._wire.patience_s = True, answer.get("failure"), 0.0

    def _rows(self, seq: int, wanted: str) -> List[Row]:
        answer = self._ask("GET", f"/v1/groups/{seq}?formats=" + quote(wanted, safe=":"))
        rows: List[Row] = answer["formats"][wanted]
        return rows

    # ---- tasks

    def send_tasks(self, tasks: Sequence[Row], key: Optional[str] = None) -> int:
        """Sends tasks, objects as in a task.json; they survive a crash when this returns. Of a key that was sent before
        nothing is added. Gives how many were."""
        added: int = self._ask("POST", "/v1/tasks", {"tasks": list(tasks), "key": key or uuid.uuid4().hex})["added"]
        return added

    def end_tasks(self) -> None:
        """Says that no more tasks come: the run ends when it has done what there is."""
        self._ask("POST", "/v1/tasks", {"tasks": [], "key": "end", "end": True})

    # ---- weights and the run

    def policy(self, version: int, model: Optional[str] = None) -> None:
        """Announces new weights, and the name that the server knows them by, if it changes. Before the groups that made
        them are acknowledged is better than after: an acknowledgement lets the next rollouts begin. When everything is
        acknowledged nothing is sampled any more, and nobody is told."""
        if self._ended:
            return
        doc: Dict[str, Any] = {"version": version}
        if model is not None:
            doc["model"] = model
        self._ask("POST", "/v1/policy", doc)

    def pause(self) -> None:
        """No model call is sent until `resume`."""
        self._ask("POST", "/v1/pause")

    def resume(self) -> None:
        self._ask("POST", "/v1/resume")

    def cancel(self, rollout_id: str) -> None:
        """Ends one rollout, unscored."""
        self._ask("POST", "/v1/cancel", {"id": rollout_id})

    def drain(self, why: str = "") -> None:
        """Begins no more rollouts; those that run end."""
        self._ask("POST", "/v1/cancel", {"run": "drain", "why": why or "the trainer asked for it"})

    def stop(self, why: str = "") -> None:
        """Ends the run and what runs in it."""
        self._ask("POST", "/v1/cancel", {"run": "stop", "why": why or "the trainer asked for it"})

    def status(self) -> Row:
        answer: Row = self._ask("GET", "/v1/status")
        return answer

    def wait_healthy(self, timeout_s: float = 60.0) -> Row:
        """Waits until the engine answers that it is well."""
        give_up = time.monotonic() + timeout_s
        while True:
            answer: Row = self._wire.ask("GET", "/health")
            if answer["ok"] or time.monotonic() > give_up:
                return answer
            time.sleep(0.1)

    # ---- life

    def close(self) -> None:
        self._wire.close()

    def __enter__(self) -> "Door":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()
