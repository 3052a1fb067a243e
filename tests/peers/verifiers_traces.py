"""verifiers' own reader opens export -f verifiers as a run's traces.jsonl: every episode is one of its types, and what its branches give
a trainer lines up to the token."""
import pathlib
import shutil
import sys
import tempfile

import msgspec
from verifiers.v1.episode import WireEpisode
from verifiers.v1.trace import Trace
from verifiers.v1.utils.trace_store import read_episodes

from _judge import check, end, line_up, lines

folder = sys.argv[1]


class TrainingSample(msgspec.Struct, array_like=True, omit_defaults=True):
    """prime-rl's, as far as it concerns text: four lists of one length and where they are from."""
    token_ids: list[int]
    mask: list[bool]
    logprobs: list[float]
    temperatures: list[float]
    env_name: str
    reward: float | None = None


def episodes():
    with tempfile.TemporaryDirectory() as run:
        shutil.copy(pathlib.Path(folder) / "verifiers.jsonl", pathlib.Path(run) / "traces.jsonl")
        return read_episodes(pathlib.Path(run), WireEpisode.model_fields["traces"].annotation.__args__[0])


def every_line_is_an_episode():
    found = episodes()
    assert len(found) == 48, len(found)
    for raw, episode in zip(lines(folder, "verifiers.jsonl"), found):
        again = WireEpisode.model_validate(episode.model_dump(mode="json", exclude_computed_fields=True))
        assert again.traces[0].id == raw["traces"][0]["id"] == episode.traces[0].id


def nothing_is_passed_over():
    """Members that the types do not know would be lost without a word."""
    def known(model, raw, where):
        unknown = set(raw) - set(model.model_fields) - set(model.model_computed_fields)
        assert not unknown, f"{where}: {unknown}"
    for raw in lines(folder, "verifiers.jsonl"):
        known(WireEpisode, raw, "episode")
        for trace in raw["traces"]:
            known(Trace, trace, "trace")
            for name in ("nodes", "calls"):
                for one in trace[name]:
                    known(Trace.model_fields[name].annotation.__args__[0], one, name)


def rewards():
    """A rollout that nobody could score has no reward rather than 0, and its episode is not ok."""
    wanted = {entry["id"]: entry for entry in lines(folder, "calls.jsonl")}
    for episode in episodes():
        trace, entry = episode.traces[0], wanted[episode.traces[0].id]
        assert trace.ok == entry["scored"] == episode.ok
        if entry["scored"]:
            assert trace.reward == entry["reward"] and not trace.has_error
        else:
            assert all(reward is None for reward in trace.rewards.values()) and trace.errors


def rows():
    for episode in episodes():
        for trace in episode.traces:
            for branch in trace.branches:
                if any(branch.sampled_mask):
                    last = max(i for i, sampled in enumerate(branch.sampled_mask) if sampled) + 1
                    yield trace.id, branch.token_ids[:last], branch.sampled_mask[:last], branch.logprobs[:last]


def prime_rl(name):
    """prime-rl is on no registry. It makes its training samples of the branches of these traces (their ids, masks and log-probs) and
    sends them as the five members below; so what is exported for it must be such a type's, and an unbroken rollout's the branch itself."""
    branches = {}
    for id, ids, mask, logprobs in rows():
        branches.setdefault(id, []).append((ids, [bool(one) for one in mask], logprobs))
    same, samples = 0, 0
    for row in lines(folder, name):
        given = TrainingSample(**{name: row[name] for name in TrainingSample.__struct_fields__})
        made = msgspec.msgpack.decode(msgspec.msgpack.encode(given), type=TrainingSample)  # what checks the types
        assert len(made.token_ids) == len(made.mask) == len(made.logprobs) == len(made.temperatures)
        assert set(made.temperatures) == {1.0} and made.env_name == "tool_loop" and made.reward is not None
        samples += 1
        mine = branches[row["trajectory_id"]]
        same += len(mine) == 1 and mine[0] == (made.token_ids, made.mask, made.logprobs)
        yield row["trajectory_id"], made.token_ids, made.mask, made.logprobs
    assert same >= 10 and samples >= 47, (same, samples)


check("every line is an episode", every_line_is_an_episode)
check("nothing is passed over", nothing_is_passed_over)
check("rewards", rewards)
check("branches line up to the token, with every sampled one", lambda: line_up(folder, rows(), True) or 1 / 0)
check("samples of prime-rl line up to the token", lambda: line_up(folder, prime_rl("prime-rl.jsonl"), False))
check("samples of prime-rl, a call each, hold every sampled token once",
      lambda: line_up(folder, prime_rl("prime-rl-stepwise.jsonl"), True))
end()
