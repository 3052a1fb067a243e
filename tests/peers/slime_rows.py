"""slime's own Sample takes the rows of export -f slime by from_dict, in the types that it declares; its validate finds nothing wrong, and
what makes training data of samples puts masks, log-probs and rewards where they belong."""
import sys
import types
import typing
from dataclasses import dataclass, field, fields
from enum import Enum

import numpy
from pydantic import ConfigDict, TypeAdapter

from _judge import check, definitions, end, line_up, lines

folder = sys.argv[1]
Sample, = definitions("miles", "utils/types.py", ["Sample"], {
    "dataclass": dataclass, "field": field, "Enum": Enum, "Any": typing.Any, "numpy": numpy})
Manager, = definitions("miles", "ray/rollout.py", ["RolloutManager"], {
    "ray": types.SimpleNamespace(remote=lambda given: given), "Sample": Sample})
options = types.SimpleNamespace(advantage_estimator="ppo", rewards_normalization=False, reward_key=None,
                                use_dynamic_global_batch_size=False)


def samples(name):
    return [Sample.from_dict(row) for row in lines(folder, name)]


def types_and_lengths(name):
    """from_dict takes whatever it is given: each member that it declares must be of the declared type, too."""
    declared = {one.name: one.type for one in fields(Sample)}
    space = vars(typing) | {"numpy": numpy, "Status": Sample.Status}
    for row, sample in zip(lines(folder, name), samples(name), strict=True):
        sample.validate()
        unknown = set(row) - set(declared)
        assert unknown == {"rollout_id"}, unknown  # slime's own, which its descendant dropped
        assert type(sample.rollout_id) is int
        for key in set(row) - unknown - {"status"}:
            kind = eval(declared[key], space)
            given = row[key]
            if key == "prompt":
                assert all(set(message) >= {"role"} for message in given)
                continue
            TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True)).validate_python(given, strict=True)
        assert Sample.from_dict(sample.to_dict()).to_dict() == sample.to_dict()


def training_data(name):
    """By the trainer's own lines; yields rows for line_up."""
    manager = object.__new__(Manager)
    manager.args, manager.custom_reward_post_process_func, manager.custom_convert_samples_to_train_data_func = options, None, None
    given = samples(name)
    data = manager._convert_samples_to_train_data(given)
    assert data["weight_versions"] == [sample.weight_versions for sample in given]
    for i, sample in enumerate(given):
        before = len(data["tokens"][i]) - data["response_lengths"][i]
        assert before > 0
        yield (sample.session_id, data["tokens"][i], [0] * before + data["loss_masks"][i], [0.0] * before + data["rollout_log_probs"][i])


def rewards(name, split):
    """What the rows of one rollout have is its reward, each or together."""
    wanted = {entry["id"]: entry["reward"] for entry in lines(folder, "calls.jsonl") if entry["scored"]}
    rollouts, groups = {}, {}
    for sample in samples(name):
        rollouts.setdefault(sample.rollout_id, []).append(sample)
        groups.setdefault(sample.group_index, set()).add(sample.metadata["group_id"])
    assert len(rollouts) == len(wanted) and all(len(names) == 1 for names in groups.values()) and len(groups) == 12
    for rows in rollouts.values():
        reward = wanted[rows[0].session_id]
        assert {row.session_id for row in rows} == {rows[0].session_id} and {row.index for row in rows} == {rows[0].index}
        assert abs(sum(row.reward for row in rows) - (reward if split else reward * len(rows))) < 1e-9


for name in ("slime.jsonl", "slime-stepwise-split.jsonl", "slime-strict.jsonl"):
    check(f"types and lengths of {name}", lambda: types_and_lengths(name))
check("rows of joined calls line up to the token", lambda: line_up(folder, training_data("slime.jsonl"), False))
check("rows of single calls hold every sampled token once", lambda: line_up(folder, training_data("slime-stepwise-split.jsonl"), True))
check("unbroken rows alone", lambda: line_up(folder, training_data("slime-strict.jsonl"), False))
check("rewards of a rollout's rows", lambda: rewards("slime.jsonl", False))
check("rewards that are split", lambda: rewards("slime-stepwise-split.jsonl", True))
end()
