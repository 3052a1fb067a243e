--- generate/pytest_report.lua: a Python program that runs pytest and tells what each test raised.
---
--- Its verdict is not the verifier's (that one is verifiers/pytest_run.lua): it runs the task's author's code to see
--- whether the task is any good. The plugin may put the tests in another order.
return {
  SOURCE = [==[
import json, os, random, sys
import pytest


class Report:
    def __init__(self, seed):
        self.seed, self.tests, self.errors = seed, [], []

    def pytest_collectreport(self, report):
        if report.failed:
            text = str(report.longrepr).strip().splitlines() or ["?"]
            self.errors.append("%s: %s" % (report.nodeid, text[-1][:300]))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        if self.seed is not None:
            random.Random(self.seed).shuffle(items)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        if report.when == "call" or report.outcome != "passed":
            error = None
            if call.excinfo is not None:
                error = "fixture" if call.excinfo.typename == "FixtureLookupError" else call.excinfo.typename
            self.tests.append({"id": report.nodeid, "outcome": report.outcome, "when": report.when, "error": error})


def main():
    given = json.loads(sys.argv[1])
    where = "/tmp/agentbox-tests.json"
    if os.path.exists(where):
        os.remove(where)
    sys.path.insert(0, os.getcwd())
    sys.argv = ["pytest"]
    plugin = Report(given.get("seed"))
    code = pytest.main(["-p", "no:cacheprovider"] + given["args"], plugins=[plugin])
    with open(where + ".part", "w") as f:
        json.dump({"tests": plugin.tests, "errors": plugin.errors, "exit": int(code)}, f)
    os.rename(where + ".part", where)
    sys.exit(int(code))


main()
]==],
}
