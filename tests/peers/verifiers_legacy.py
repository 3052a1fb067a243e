"""verifiers' loader of saved results reads the rows of export -f verifiers -O form=legacy; each member is of the type that RolloutOutput
declares, messages become its own ones, steps line up to the token, and its pass@k finds the rollouts of one task together."""
import importlib
import json
import pathlib
import shutil
import sys
import typing

from pydantic import TypeAdapter

from _judge import check, definitions, end, line_up, lines, without_tops

folder = sys.argv[1]
without_tops("verifiers", "utils")
vf = importlib.import_module("verifiers.types")
message_utils = importlib.import_module("verifiers.utils.message_utils")
metric_utils = importlib.import_module("verifiers.utils.metric_utils")


def outputs():
    load, = definitions("verifiers", "utils/save_utils.py", ["load_outputs"], {
        "RolloutOutput": vf.RolloutOutput, "json": json, "Path": pathlib.Path})
    shutil.copy(f"{folder}/verifiers-legacy.jsonl", f"{folder}/results.jsonl")
    return load(pathlib.Path(folder))


def members_have_their_types():
    declared = typing.get_type_hints(vf.RolloutOutput)
    found = outputs()
    assert len(found) == 47, len(found)
    for one in found:
        assert set(one) <= set(declared), set(one) - set(declared)
        for key in ("example_id", "prompt", "completion", "reward", "timing", "is_completed", "is_truncated", "metrics"):
            assert key in one, key
        for key, value in one.items():
            if key in ("prompt", "completion"):
                assert [type(message) for message in message_utils.normalize_messages(value)]
            elif key == "trajectory":
                for step in value:
                    messages = {side: message_utils.normalize_messages(step[side]) for side in ("prompt", "completion")}
                    TypeAdapter(vf.TrajectoryStep).validate_python(step | messages, strict=True)
            else:
                TypeAdapter(declared[key]).validate_python(value, strict=True)


def timing():
    for one in outputs():
        made = vf.RolloutTiming.model_validate(one["timing"])
        assert set(one["timing"]) <= set(vf.RolloutTiming.model_fields), one["timing"]
        assert made.start_time <= made.setup.end <= made.generation.start <= made.generation.end == made.scoring.start
        assert 0 < made.total < 3600, made.total


def calls_survive():
    for one in outputs():
        for step in one["trajectory"]:
            said, = message_utils.normalize_messages(step["completion"])
            response = vf.Response.model_validate(step["response"])
            assert response.message.tool_calls == said.tool_calls and response.message.content == said.content
            assert (response.message.finish_reason == "tool_calls") == bool(said.tool_calls)


def pass_at_k():
    """Rewards in a group are 0, 1/4, 1/2, 3/4; one rollout of one group has none."""
    metric = metric_utils.PassAtKMetric(rollouts_per_example=4)
    metric.add_outputs(outputs())
    at, all_of = metric.compute()
    assert {k: round(value, 6) for k, value in at.items()} == {"1": 0.5, "2": 0.833333, "4": 1.0} and all_of["4"] == 0.0, (at, all_of)
    assert sorted(metric._example_counts.values()) == [3] + [4] * 11


def rows():
    for one in outputs():
        for step in one["trajectory"]:
            tokens = step["tokens"]
            n = len(tokens["prompt_ids"])
            assert n == len(tokens["prompt_mask"]) and not any(tokens["prompt_mask"])
            yield (one["info"]["id"], tokens["prompt_ids"] + tokens["completion_ids"], tokens["prompt_mask"] + tokens["completion_mask"],
                   [0.0] * n + tokens["completion_logprobs"])


check("members have the declared types", members_have_their_types)
check("phases of time", timing)
check("calls survive", calls_survive)
check("pass@k finds the rollouts of a task together", pass_at_k)
check("steps hold every sampled token once", lambda: line_up(folder, rows(), True))
end()
