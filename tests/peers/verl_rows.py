"""verl's own AgentLoopOutput takes the rows of export -f verl, and its as_dict puts mask, log-probs and score where they belong."""
import sys
import types
from typing import Any, Optional

import numpy
from pydantic import BaseModel

from _judge import check, definitions, end, line_up, lines

folder = sys.argv[1]
# as_dict makes arrays with torch.tensor and torch.zeros_like; numpy's have the same meaning here.
torch = types.SimpleNamespace(int64=numpy.int64, float32=numpy.float32, tensor=lambda data, dtype: numpy.array(data, dtype),
                              zeros_like=lambda like, dtype: numpy.zeros(like.shape, dtype))
_, AgentLoopOutput = definitions("verl", "experimental/agent_loop/agent_loop.py", ["AgentLoopMetrics", "AgentLoopOutput"],
                                 {"BaseModel": BaseModel, "Any": Any, "Optional": Optional, "torch": torch})


def outputs(name):
    return [AgentLoopOutput.model_validate(row, strict=True, extra="forbid") for row in lines(folder, name)]


def rows(name):
    for raw, one in zip(lines(folder, name), outputs(name)):
        yield (one.extra_fields["session"].rsplit("_", 1)[0], one.prompt_ids + one.response_ids,
               [0] * len(one.prompt_ids) + one.response_mask, [0.0] * len(one.prompt_ids) + one.response_logprobs)


def as_dict(name):
    for one in outputs(name):
        made = one.as_dict()
        assert made["rm_scores"].sum() == numpy.float32(one.reward_score) and made["rm_scores"][-1] == numpy.float32(one.reward_score)
        assert made["response_mask"].shape == made["responses"].shape == made["rollout_log_probs"].shape
        assert made["response_mask"][-1] == 1


def sessions():
    """Rows of one session are adjacent and counted; versions of the weights are those of its group."""
    last, n = None, 0
    for one in outputs("verl.jsonl"):
        extra = one.extra_fields
        n = n + 1 if extra["session"] == last else 0
        last = extra["session"]
        assert extra["index"] == n < extra["of"], extra
        assert extra["min_global_steps"] == extra["max_global_steps"] == 10 + int(extra["uid"].split("/")[1][1:])


check("rows of joined calls line up to the token", lambda: line_up(folder, rows("verl.jsonl"), False))
check("rows of single calls hold every sampled token once", lambda: line_up(folder, rows("verl-stepwise.jsonl"), True))
check("unbroken rows alone", lambda: line_up(folder, rows("verl-strict.jsonl"), False))
for name in ("verl.jsonl", "verl-stepwise.jsonl"):
    check(f"as_dict of {name}", lambda: as_dict(name))
check("sessions", sessions)
end()
