"""Judges the files of openpipe_art.lua with ART's own models and openai's types. Prints TAP and a closing count."""
import importlib
import importlib.util
import json
import pathlib
import sys
import types

from openai.types.chat import ChatCompletion
from openai.types.chat.chat_completion import Choice

# The package's top module starts a training stack; its models alone need pydantic, openai and anthropic.
package = types.ModuleType("art")
package.__path__ = [str(pathlib.Path(importlib.util.find_spec("art").origin).parent)]
sys.modules["art"] = package
trajectories = importlib.import_module("art.trajectories")

out = pathlib.Path(sys.argv[1])
results = {"passed": 0, "failed": 0, "skipped": 0}
has_exchanges = "exchanges" in trajectories.Trajectory.model_fields


def lines(name):
    return [json.loads(line) for line in (out / name).read_text(encoding="utf-8").split("\n") if line]


def check(name, fn):
    try:
        fn()
    except Exception as problem:  # every failure is a line of the report
        results["failed"] += 1
        print(f"not ok - {name}\n# {type(problem).__name__}: {str(problem)[:2000]}")
    else:
        results["passed"] += 1
        print(f"ok - {name}")


def with_choices(trajectory):
    """As ART's readers do it: an item with a finish reason is a Choice."""
    def item(value):
        return Choice(**value) if "finish_reason" in value else value
    out = dict(trajectory)
    out["messages_and_choices"] = [item(value) for value in trajectory["messages_and_choices"]]
    out["additional_histories"] = [
        {**history, "messages_and_choices": [item(value) for value in history["messages_and_choices"]]}
        for history in trajectory["additional_histories"]]
    return out


def group_of(line, make):
    return trajectories.TrajectoryGroup(
        [trajectories.Trajectory.model_validate(make(t)) for t in line["trajectories"]],
        exceptions=[], metadata=line["metadata"])


def messages_form(name):
    for line in lines(f"{name}-messages.jsonl"):
        group = group_of(line, with_choices)
        for exception in line["exceptions"]:
            trajectories.PydanticException.model_validate(exception)
        assert len(group.trajectories) == len(line["trajectories"])
        for trajectory in group.trajectories:
            choices = [item for item in trajectory.messages_and_choices if isinstance(item, Choice)]
            assert choices, "nothing to train"
            assert trajectory.messages()[-1]["role"] == "assistant"
            trajectories.Trajectory.model_validate_json(trajectory.model_dump_json())


def exchanges_form(name):
    for line in lines(f"{name}-exchanges.jsonl"):
        for raw in line["trajectories"]:
            trajectory = trajectories.Trajectory.model_validate(raw)
            assert not trajectory.messages_and_choices
            calls = trajectory.exchanges.chat_completions
            assert calls and len(calls) == len(raw["exchanges"]["chat_completions"])
            for call, given in zip(calls, raw["exchanges"]["chat_completions"]):
                assert isinstance(call.response, ChatCompletion)
                assert call.request == given["request"]
                assert call.end_time >= call.start_time
                assert call.model
            again = json.loads(trajectory.model_dump_json())
            assert len(again["exchanges"]["chat_completions"]) == len(calls)


def tokens_are_trainable():
    line = lines("made-messages.jsonl")[0]
    for raw in line["trajectories"]:
        for item in with_choices(raw)["messages_and_choices"]:
            if isinstance(item, Choice):
                extra = item.model_extra
                assert len(extra["token_ids"]) == len(item.logprobs.content) > 0
                assert extra["prompt_token_ids"]


def art_reads_the_tokens():
    """No tokenizer is at hand: ART must find every id and log-prob in the exchanges."""
    for raw in lines("made-exchanges.jsonl")[0]["trajectories"]:
        (history,) = trajectories.Trajectory.model_validate(raw).tokenize(multi_history=True).histories
        sampled = [bool(flag & trajectories.TokenFlag.SAMPLED) for flag in history.flags]
        assert history.tokens == [11, 12, 13, 21, 22, 23, 31, 32, 41, 42], history.tokens
        assert sampled == [False] * 3 + [True] * 3 + [False] * 2 + [True] * 2, sampled
        assert [lp for lp, mine in zip(history.logprobs, sampled) if mine] == [-0.4, -0.02, -0.001, -0.2, -1e-05]


def group_of_real_rollouts():
    (line,) = lines("real-messages.jsonl")
    assert sorted(t["reward"] for t in line["trajectories"]) == [0.0, 1.0]
    (exception,) = line["exceptions"]
    assert exception["type"].startswith("agentbox.sandbox."), exception


def both_forms_at_once_are_refused():
    raw = dict(lines("made-exchanges.jsonl")[0]["trajectories"][0])
    raw["messages_and_choices"] = [{"role": "user", "content": "x"}]
    try:
        trajectories.Trajectory.model_validate(raw)
    except ValueError:
        return
    raise AssertionError("ART took a trajectory of both forms")


def responses(name):
    for raw in lines(f"{name}-responses.jsonl"):
        response = ChatCompletion.model_validate(raw)
        assert response.choices and response.to_dict()["choices"]


check("one document of a real rollout",
      lambda: trajectories.Trajectory.model_validate(with_choices(json.loads((out / "one.json").read_text()))))
check("a group of real rollouts", group_of_real_rollouts)
check("token ids and log-probs on the choices", tokens_are_trainable)
for name in ("real", "made"):
    check(f"messages_and_choices of {name} rollouts", lambda: messages_form(name))
    check(f"stored responses of {name} rollouts", lambda: responses(name))
    if has_exchanges:
        check(f"exchanges of {name} rollouts", lambda: exchanges_form(name))
    else:
        results["skipped"] += 1
        print(f"ok - exchanges of {name} rollouts # SKIP this openpipe-art has none (they need Python 3.12)")
if has_exchanges:
    check("ART reads the token ids without a tokenizer", art_reads_the_tokens)
    check("both forms at once are refused", both_forms_at_once_are_refused)
print(", ".join(f"{count} {name}" for name, count in results.items()))
sys.exit(results["failed"] > 0)
