"""OpenRLHF's samples generator makes an Experience of every line of export -f openrlhf, as it does of what an agent's executor returns: the
action mask is on what was sampled, with its log-probs, one place earlier, as the trainer wants them."""
import sys
import types
from dataclasses import dataclass, field, fields
from typing import Any, List, Union

import numpy

from _judge import check, definitions, end, line_up, lines

folder = sys.argv[1]


class Tensor(numpy.ndarray):
    """numpy's arrays do what is asked of torch's here, under other names."""
    def to(self, _): return self
    def float(self): return self.astype(numpy.float64)
    def unsqueeze(self, axis): return numpy.expand_dims(self, axis)


def tensor(data, dtype=None):
    return numpy.array(data, dtype).view(Tensor)


torch = types.SimpleNamespace(
    Tensor=Tensor, LongTensor=Tensor, BoolTensor=Tensor, long=numpy.int64, tensor=tensor, where=numpy.where, zeros_like=numpy.zeros_like,
    ones=lambda n, dtype: tensor(numpy.ones(n), dtype), no_grad=lambda: lambda function: function)
_, Experience = definitions("openrlhf", "trainer/ppo_utils/experience.py", ["tensor_field", "Experience"], {
    "torch": torch, "dataclass": dataclass, "field": field, "fields": fields, "Any": Any, "List": List, "Union": Union})
Generator, = definitions("openrlhf", "trainer/ppo_utils/samples_generator.py", ["SamplesGenerator"], {
    "torch": torch, "Experience": Experience})
executor, = definitions("openrlhf", "utils/agent.py", ["MultiTurnAgentExecutor"], {"AgentExecutorBase": object})


def experiences(max_len=1 << 20):
    made = object.__new__(Generator)
    for row in lines(folder, "openrlhf.jsonl"):
        yield row, made._process_response_into_experience(row, max_len=max_len)


def rows():
    """Rows for line_up; the lines of export -f trl -O mode=strict are those of the same rollouts, in the same order."""
    for (row, one), named in zip(experiences(), lines(folder, "trl-strict.jsonl"), strict=True):
        assert one.sequences.shape == one.attention_mask.shape == (1, len(row["observation_tokens"]))
        assert one.action_mask.shape == one.rollout_log_probs.shape == (1, len(row["observation_tokens"]) - 1)
        yield (named["trajectory_id"], one.sequences[0].tolist(), [0, *one.action_mask[0].tolist()],
               [0.0, *one.rollout_log_probs[0].tolist()])


def outcomes():
    wanted = {entry["id"]: entry["reward"] for entry in lines(folder, "calls.jsonl") if entry["scored"]}
    n = 0
    for (row, one), named in zip(experiences(), lines(folder, "trl-strict.jsonl"), strict=True):
        assert one.rewards.tolist() == one.scores.tolist() == [wanted[named["trajectory_id"]]]
        assert one.prompts == [row["prompt"]] and one.labels == [named["task_id"]]
        ranges = row["action_ranges"]
        assert one.response_length.tolist() == [ranges[-1][1] - ranges[0][0]]
        assert one.info["turns"].tolist() == [len(ranges)] and one.truncated.tolist() == [False]
        n += 1
    assert n > 10, n


def members():
    """The executor's own dictionary has no member that ours lacks, but for pictures."""
    code = executor.execute.__code__
    known = set(code.co_consts) | {name for const in code.co_consts if isinstance(const, tuple) for name in const}
    for row in lines(folder, "openrlhf.jsonl"):
        assert set(row) <= known, set(row) - known
        assert {"prompt", "label", "reward", "scores", "observation_tokens", "action_ranges", "rollout_log_probs", "truncated",
                "extra_logs"} == set(row)


def a_cut_row_keeps_its_alignment():
    for row, one in experiences(max_len=8):
        n = min(8, len(row["observation_tokens"]))
        assert one.sequences.shape == (1, n) and one.action_mask.shape == one.rollout_log_probs.shape == (1, n - 1)


check("experiences line up to the token", lambda: line_up(folder, rows(), False))
check("rewards, prompts and lengths", outcomes)
check("the members of an executor's result", members)
check("a row that is cut keeps its alignment", a_cut_row_keeps_its_alignment)
end()
