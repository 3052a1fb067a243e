"""ART's own tokenization of both forms of export -f art lines up with the calls that were recorded, and its TrajectoryGroup holds what the
example makes of them."""
import importlib.util
import json
import pathlib
import sys

import art
from art.trajectories import TokenFlag
from art.utils import sft
from art.utils.trajectory_migration import deserialize_trajectory_groups
from openai.types.chat.chat_completion import Choice

from _judge import check, end, line_up, lines

folder, example = sys.argv[1:]
spec = importlib.util.spec_from_file_location("example", example)
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)


def trajectories(name):
    for group in made.groups_of(f"{folder}/{name}"):
        yield from group.trajectories


def choices():
    for one in trajectories("art-messages.jsonl"):
        histories = [one.messages_and_choices, *(h.messages_and_choices for h in one.additional_histories)]
        for item in (item for history in histories for item in history if isinstance(item, Choice)):
            prompt, ids = item.model_extra["prompt_token_ids"], item.model_extra["token_ids"]
            logprobs = [entry.logprob for entry in item.logprobs.content]
            assert [entry.token for entry in item.logprobs.content] == [f"token_id:{token}" for token in ids]
            yield (one.metadata["trajectory_id"], prompt + ids, [0] * len(prompt) + [1] * len(ids), [0.0] * len(prompt) + logprobs)


def histories():
    for one in trajectories("art-exchanges.jsonl"):
        for history in one.tokenize(multi_history=True).histories:
            sampled = [bool(flag & TokenFlag.SAMPLED) for flag in history.flags]
            logprobs = [lp if mine else 0.0 for lp, mine in zip(history.logprobs, sampled)]
            last = max(i for i, mine in enumerate(sampled) if mine) + 1
            yield one.metadata["trajectory_id"], history.tokens[:last], sampled[:last], logprobs[:last]


def groups():
    found = list(made.groups_of(f"{folder}/art-exchanges.jsonl"))
    assert len(found) == 12 and all(len(group.trajectories) + len(group.exceptions) == 4 for group in found)
    assert sum(len(group.exceptions) for group in found) == 1
    assert all(isinstance(group, art.TrajectoryGroup) for group in found)
    assert all(one.initial_policy_version == 10 + int(group.metadata["group_id"][1:]) for group in found for one in group.trajectories)


def stored(name):
    """ART's reader of its own older group files takes the lines as they are; what it keeps is what the example makes of them."""
    text = pathlib.Path(folder, name).read_text(encoding="utf-8")
    for mine, group in zip(made.groups_of(f"{folder}/{name}"), deserialize_trajectory_groups(text), strict=True):
        assert [one.model_dump() for one in group.trajectories] == [one.model_dump() for one in mine.trajectories]
        assert len(group.exceptions) == len(mine.exceptions)


def supervised():
    """ART's reader of files for supervised training: every row, with its tools, ends with an assistant's message."""
    rows = sorted(lines(folder, "openai.jsonl"), key=str)
    found = list(sft.iterate_file(f"{folder}/openai.jsonl"))
    assert sft.get_file_row_count(f"{folder}/openai.jsonl") == len(rows) == len(found) == 47
    for row, one in zip(rows, sorted(found, key=lambda one: str({"messages": one.messages_and_choices, "tools": one.tools})), strict=True):
        assert one.messages_and_choices == row["messages"] and one.tools == row["tools"]
        assert one.messages()[-1]["role"] == "assistant"
        for message in one.messages():
            for call in message.get("tool_calls") or []:
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
    chunks = list(sft.create_sft_dataset_iterator(found, show_progress=False))
    assert sum(len(chunk.trajectories) for chunk in chunks) == 47


check("choices hold every sampled token once, with its log-prob", lambda: line_up(folder, choices(), True))
check("exchanges, as ART tokenizes them, hold every sampled token once", lambda: line_up(folder, histories(), True))
check("groups of the example", groups)
for name in ("art-messages.jsonl", "art-exchanges.jsonl"):
    check(f"ART's own reader of {name}", lambda: stored(name))
check("ART's reader of files for supervised training", supervised)
end()
