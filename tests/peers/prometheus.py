"""Parses the page, and compares what it says with what the run did."""
import sys

from prometheus_client.parser import text_string_to_metric_families

with open(sys.argv[1], encoding="utf-8") as page:
    families = {family.name: family for family in text_string_to_metric_families(page.read())}


def value(family, sample, **labels):
    found = [s.value for s in families[family].samples if s.name == sample and s.labels == labels]
    assert len(found) == 1, (family, sample, labels, families[family].samples)
    return found[0]


for family in families.values():
    assert family.documentation and family.type != "unknown", family
    keys = [(s.name, tuple(sorted(s.labels.items()))) for s in family.samples]
    assert len(keys) == len(set(keys)), family.name

assert value("agentbox_run_info", "agentbox_run_info", run='odd "name\\', state="running") == 1
assert value("agentbox_rollouts", "agentbox_rollouts_total", status="success") == 6
assert value("agentbox_rollouts_unscored", "agentbox_rollouts_unscored_total", **{"class": "model_server"}) == 3
assert value("agentbox_retries", "agentbox_retries_total", **{"class": "model_server"}) == 3
assert value("agentbox_groups", "agentbox_groups_total", kind="dropped") == 1
assert value("agentbox_groups_unacknowledged", "agentbox_groups_unacknowledged") == 2
assert value("agentbox_weights_version", "agentbox_weights_version") == 7
assert value("agentbox_reward", "agentbox_reward_count") == 6
assert families["agentbox_rollout_duration_seconds"].type == "histogram"
buckets = [s for s in families["agentbox_rollout_duration_seconds"].samples if s.name.endswith("_bucket")]
bounds = [float(s.labels["le"]) for s in buckets]
assert bounds == sorted(bounds) and bounds[-1] == float("inf"), bounds
assert [s.value for s in buckets] == sorted(s.value for s in buckets)
assert buckets[-1].value == value("agentbox_rollout_duration_seconds", "agentbox_rollout_duration_seconds_count")
print(f"{len(families)} families of metrics read by prometheus_client")
