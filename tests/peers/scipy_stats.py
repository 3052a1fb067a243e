"""Cases for the statistics of suites, and scipy's word on each."""

import json
import math
import sys
from math import comb

import numpy as np
from scipy import stats


def cases():
    rng = np.random.default_rng(11)
    out = []
    for n in (1, 3, 7, 12, 15):
        for scale in (1, 4):
            d = np.round(rng.normal(0.2, 1, n) * scale) / scale
            out.append({"kind": "paired", "differences": d.tolist()})
    for n in (40, 200):
        out.append({"kind": "paired", "differences": rng.normal(0.15, 1, n).tolist()})
    for c, n in ((0, 1), (1, 3), (17, 40), (40, 40), (5, 2000)):
        for level in (0.9, 0.95, 0.99):
            out.append({"kind": "wilson", "c": c, "n": n, "level": level})
    for x, p in ((-8.0, 1e-6), (-2.0, 0.025), (0.0, 0.5), (1.3, 0.9), (5.0, 1 - 1e-9)):
        out.append({"kind": "normal", "x": x, "p": p})
    for t in (8, 30, 120):
        den = rng.integers(1, 6, t)
        num = rng.binomial(den, rng.beta(0.8, 0.8, t))
        tasks = [{"num": int(a), "den": int(b)} for a, b in zip(num, den)]
        out.append({"kind": "ratio", "tasks": tasks, "seed": 5, "level": 0.95})
    for takers, tasks in ((4, 3), (24, 10)):
        x = rng.random((takers, tasks)).round(3)
        out.append({"kind": "items", "takers": [{f"t{j}": v for j, v in enumerate(row)} for row in x.tolist()]})
    for n in (5, 60):
        for c in (0, 1, n // 2, n):
            for k in (1, 2, n):
                out.append({"kind": "pass_at", "n": n, "c": c, "k": k})
    return out


def near(ours, theirs, tolerance, what):
    assert math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance), f"{what}: {ours} against {theirs}"


def check_paired(case, ours):
    d = np.array(case["differences"])
    near(ours["mean"], d.mean(), 1e-12, "mean")
    plus, minus = int((d > 0).sum()), int((d < 0).sum())
    assert (ours["sign"]["better"], ours["sign"]["worse"]) == (plus, minus)
    sign = stats.binomtest(min(plus, minus), plus + minus).pvalue if plus + minus else 1.0
    near(ours["sign"]["p"], sign, 1e-10, "sign test")
    if len(d) > 1:
        near(ours["sd"], d.std(ddof=1), 1e-12, "sd")
    exact = ours["permutation"]["method"] == "exact"
    resamples = np.inf if exact else 20000
    theirs = stats.permutation_test((d,), lambda x, axis: x.sum(axis=axis), permutation_type="samples", vectorized=True,
                                    n_resamples=resamples, random_state=3).pvalue if len(d) > 1 else 1.0
    near(ours["permutation"]["p"], theirs, 1e-9 if exact else 0.02, "permutation test")


def check_wilson(case, ours):
    ci = stats.binomtest(case["c"], case["n"]).proportion_ci(case["level"], method="wilson")
    near(ours["low"], ci.low, 1e-9, "wilson")
    near(ours["high"], ci.high, 1e-9, "wilson")


def check_normal(case, ours):
    near(ours["cdf"], stats.norm.cdf(case["x"]), 1e-12, "cdf")
    near(ours["quantile"], stats.norm.ppf(case["p"]), 1e-6 if case["p"] > 0.999 else 1e-9, "quantile")


def check_ratio(case, ours):
    num = np.array([t["num"] for t in case["tasks"]], float)
    den = np.array([t["den"] for t in case["tasks"]], float)
    near(ours["estimate"], num.sum() / den.sum(), 1e-12, "ratio")
    found = stats.bootstrap((num, den), lambda a, b, axis: a.sum(axis=axis) / b.sum(axis=axis), paired=True, vectorized=True,
                            n_resamples=20000, confidence_level=case["level"], method="percentile", random_state=7)
    width = found.confidence_interval.high - found.confidence_interval.low
    near(ours["low"], found.confidence_interval.low, 0.04 * width, "bootstrap low")
    near(ours["high"], found.confidence_interval.high, 0.04 * width, "bootstrap high")
    near(ours["se"], found.standard_error, 0.2 * ours["se"], "clustered standard error")


def check_items(case, ours):
    names = sorted(case["takers"][0])
    x = np.array([[row[n] for n in names] for row in case["takers"]])
    for j, name in enumerate(names):
        rest = np.delete(x, j, axis=1).mean(axis=1)
        near(ours[name]["discrimination"], stats.pearsonr(x[:, j], rest).statistic, 1e-9, "discrimination")
        near(ours[name]["difficulty"], 1 - x[:, j].mean(), 1e-12, "difficulty")


def check_pass_at(case, ours):
    n, c, k = case["n"], case["c"], case["k"]
    near(ours["value"], 1 - comb(n - c, k) / comb(n, k), 1e-12, "pass@k")


if sys.argv[1] == "cases":
    print(json.dumps(cases()))
else:
    asked, answers = (json.load(open(path)) for path in sys.argv[2:4])
    assert len(asked) == len(answers)
    for case, ours in zip(asked, answers):
        globals()[f"check_{case['kind']}"](case, ours)
    print(f"ok - {len(asked)} cases as scipy has them")
