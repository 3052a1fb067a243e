"""A group of rollouts, and its rows in the forms that trainers read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Optional

if TYPE_CHECKING:
    from .door import Door

Row = Dict[str, Any]


@dataclass(frozen=True)
class Group:
    """Several scored rollouts of one task. `raw` is all that the engine said."""

    seq: int
    id: str
    task_id: str
    size: int
    members: List[str]
    rewards: List[float]
    outcomes: List[Any]
    partial: bool
    zero_signal: bool
    version_min: Optional[int]
    version_max: Optional[int]
    version: Optional[int]
    stale: bool
    raw: Row = field(repr=False)
    _door: "Door" = field(repr=False, compare=False)

    @classmethod
    def _of(cls, raw: Row, door: "Door") -> "Group":
        return cls(
            seq=raw["seq"],
            id=raw["id"],
            task_id=raw["task_id"],
            size=raw["size"],
            members=raw["members"],
            rewards=raw["rewards"],
            outcomes=raw["outcomes"],
            partial=bool(raw.get("partial")),
            zero_signal=bool(raw.get("zero_signal")),
            version_min=raw.get("version_min"),
            version_max=raw.get("version_max"),
            version=raw.get("version"),
            stale=bool(raw.get("stale")),
            raw=raw,
            _door=door,
        )

    def ack(self) -> None:
        """Says that the group has been used. When this returns, nobody gets it again."""
        self._door.ack(self)

    def to(self, name: str, **options: Any) -> List[Row]:
        """The rows that `agentbox export` writes in this format: `to("verl", mode="strict")`."""
        wanted = name + "".join(f":{key}={_option(value)}" for key, value in sorted(options.items()))
        formats: Dict[str, List[Row]] = self.raw.setdefault("formats", {})
        if wanted not in formats:
            formats[wanted] = self._door._rows(self.seq, wanted)
        return formats[wanted]

    def to_art(self, **options: Any) -> List[Row]:
        """ART: one trajectory group (`form="exchanges"` for its newer form)."""
        return self.to("art", **options)

    def to_trl(self, **options: Any) -> List[Row]:
        """TRL: rows for GRPO."""
        return self.to("trl", **options)

    def to_verl(self, **options: Any) -> List[Row]:
        """verl: AgentLoopOutput rows."""
        return self.to("verl", **options)

    def to_skyrl(self, **options: Any) -> List[Row]:
        """SkyRL: GeneratorOutput rows."""
        return self.to("skyrl", **options)

    def trajectories(self) -> List[Row]:
        """The whole records (agentbox.trajectory/1)."""
        return self.to("canonical")


def _option(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
