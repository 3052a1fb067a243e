"""verifiers' own reader opens export -f verifiers as a run's traces.jsonl: every episode is one of its types, and what its branches give
a trainer lines up to the token."""
import pathlib
import shutil
import sys
import tempfile

from verifiers.v1.episode import WireEpisode
from verifiers.v1.trace import Trace
from verifiers.v1.utils.trace_store import read_episodes

from _judge import check, end, line_up, lines

folder = sys.argv[1]


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


check("every line is an episode", every_line_is_an_episode)
check("nothing is passed over", nothing_is_passed_over)
check("rewards", rewards)
check("branches line up to the token, with every sampled one", lambda: line_up(folder, rows(), True) or 1 / 0)
end()
