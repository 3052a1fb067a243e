"""What tests/peers/pages.sh runs: the pages as somebody uses them."""

import os
import sys
import time
from pathlib import Path

from axe_playwright_python.base import AXE_FILE_PATH
from playwright.sync_api import sync_playwright

binary, chromium, out = sys.argv[1], sys.argv[2], Path(sys.argv[3])
pictures = os.environ.get("AGENTBOX_PICTURES")
AXE = Path(AXE_FILE_PATH).read_text()
failures, checks = [], 0


def check(what, ok, more=""):
    global checks
    checks += 1
    if not ok:
        failures.append(f"{what}: {more}")
        print("FAIL", what, more)


class Tab:
    """A browser's page that notes what it should not do."""

    def __init__(self, browser, width=1440, height=1000, scheme="light", bypass=False):
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=bypass
        )
        self.page = self.context.new_page()
        self.errors, self.requests, self.allowed = [], [], None
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("dialog", lambda d: (self.errors.append("dialog: " + d.message), d.dismiss()))
        self.page.on("request", lambda r: self.requests.append(r.url))

    def open(self, name, fragment=""):
        self.allowed = name if name.startswith("http") else (out / name).as_uri()
        self.page.goto("about:blank")
        self.requests.clear()
        self.page.goto(self.allowed + fragment)
        self.ready()

    def ready(self):
        self.page.wait_for_selector("html[data-ready]", state="attached", timeout=60000)

    def go(self, fragment):
        self.page.evaluate("to => { delete document.documentElement.dataset.ready; location.hash = to }", fragment)
        self.ready()

    def js(self, expression):
        return self.page.evaluate(expression)

    def eventually(self, look, good):
        """What `look` gives, once it is good; after ten seconds whatever it is."""
        for _ in range(500):
            value = look()
            if good(value):
                break
            self.page.wait_for_timeout(20)
        return value

    def clean(self, what):
        check(what + ": console", not self.errors, self.errors[:3])
        base = self.allowed.split("#")[0].rsplit("?", 1)[0] if self.allowed else ""
        other = [u for u in self.requests if not u.startswith((base, "data:", "about:"))]
        check(what + ": requests", not other, other[:3])

    def close(self):
        self.context.close()


def accessible(tab, what):
    tab.page.evaluate(AXE)
    found = tab.page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    bad = [
        (v["id"], v["impact"], v["nodes"][0]["html"][:120], v["nodes"][0]["failureSummary"][:200])
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]
    check(what + ": axe", not bad, bad)


VIEWS = [
    ("overview", "#/"),
    ("list", "#/list"),
    ("mismatch", "#/t/14b-lru-cache-1"),
    ("error", "#/t/3b-json-patch-3"),
    ("drift", "#/t/14b-json-patch-0"),
]


def every_view(browser):
    for scheme in ("light", "dark"):
        for width, height in ((390, 844), (1440, 1000), (2560, 1400)):
            tab = Tab(browser, width, height, scheme, bypass=True)
            for name, fragment in VIEWS:
                what = f"{name} {scheme} {width}"
                tab.open("run.html", fragment)
                wide = tab.js("() => document.documentElement.scrollWidth - innerWidth")
                check(what + ": nothing beside the window", wide <= 0, wide)
                if width != 2560:
                    accessible(tab, what)
            tab.clean(f"{scheme} {width}")
            tab.close()


def policy_holds(browser):
    """Nothing runs but the page's own script, with the policy in force."""
    tab = Tab(browser)
    for name in ("run.html", "one.html"):
        tab.open(name)
        tab.clean("policy " + name)
    policy = tab.page.get_attribute('meta[http-equiv="Content-Security-Policy"]', "content")
    check("policy", "default-src 'none'" in policy and "unsafe" not in policy and "connect-src" not in policy, policy)
    tab.close()


def keyboard(browser):
    tab = Tab(browser)
    tab.open("run.html")
    page, keys = tab.page, tab.page.keyboard

    def hash_is(what, test):
        value = tab.eventually(lambda: tab.js("() => location.hash"), test)
        check(what, test(value), value)

    keys.press("g")
    keys.press("l")
    tab.ready()
    hash_is("g l", lambda h: h == "#/list")
    keys.press("/")
    check("/", tab.js("() => document.activeElement.id") == "filter")
    keys.type("flag:mismatch")
    check("filtered", page.inner_text(".total").startswith("5 of"), page.inner_text(".total"))
    hash_is("the filter is in the link", lambda h: h == "#/list?q=flag%3Amismatch")
    keys.press("ArrowDown")
    first = tab.js("() => document.activeElement.closest('.tr')?.dataset.at")
    check("down goes into the rows", first == "0", first)
    keys.press("j")
    keys.press("j")
    keys.press("k")
    check("j j k", tab.js("() => document.activeElement.closest('.tr')?.dataset.at") == "1")
    wanted = tab.js("() => document.activeElement.getAttribute('href')")
    keys.press("Enter")
    page.wait_for_selector(".trajectory")
    hash_is("enter opens", lambda h: h == wanted)
    page.wait_for_selector("#turn-1")
    keys.press("j")
    keys.press("j")
    check(
        "j goes to turns",
        tab.js("() => document.activeElement.id") == "turn-2",
        tab.js("() => document.activeElement.id"),
    )
    keys.press("n")
    page.wait_for_selector("#turn-1")
    hash_is("n", lambda h: h.startswith("#/t/") and not h.startswith(wanted))
    keys.press("p")
    page.wait_for_selector("#turn-1")
    hash_is("p", lambda h: h.startswith(wanted))
    folded = tab.js("() => document.querySelectorAll('.folded').length")
    keys.press("e")
    check("e expands", tab.js("() => document.querySelectorAll('.folded').length") == 0, folded)
    keys.press("u")
    page.wait_for_selector(".listview")
    hash_is("u goes back to the same list", lambda h: h == "#/list?q=flag%3Amismatch")
    check("and it is still filtered", page.inner_text(".total").startswith("5 of"))
    keys.press("?")
    check("? opens the help", page.is_visible("dialog.help"))
    keys.press("Escape")
    check("Esc closes it", not page.is_visible("dialog.help"))
    keys.press("t")
    check("t: light", tab.js("() => document.documentElement.dataset.theme") == "light")
    keys.press("t")
    check("t: dark", tab.js("() => getComputedStyle(document.documentElement).colorScheme") == "dark")
    keys.press("Escape")
    check("Esc clears the filter", page.input_value("#filter") == "")
    tab.open("run.html", "#/list")
    reached = []
    for _ in range(32):
        keys.press("Tab")
        reached.append(tab.js("() => document.activeElement.className || document.activeElement.id"))
    check(
        "tab: first over the bar, then filter, chips, heads, rows",
        reached[0] == "skip" and reached.index("filter") < reached.index("rowlink"),
        reached,
    )
    tab.clean("keyboard")
    tab.close()


def links(browser):
    tab = Tab(browser)
    tab.open("run.html", "#/list?q=status%3Afailed+reward%3E0&sort=-tokens")
    texts = tab.page.locator(".td.c-reward span").all_inner_texts()
    check("a link filters and sorts", len(texts) > 0 and set(texts) == {"0.8"}, texts)
    check("its column says so", tab.page.get_attribute('[data-sort="tokens"]', "aria-sort") == "descending")
    tab.open("run.html", "#/t/14b-merge-intervals-0?turn=3")
    check("a link to a turn", tab.js("() => document.activeElement.id") == "turn-3")
    tab.open("run.html", "#/t/%E0%A4%A")
    check("a broken link says so", "There is no trajectory" in tab.page.inner_text("main"))
    tab.open("run.html", "#/list?sort=constructor&q=%22")
    check("an odd link does no harm", tab.page.inner_text(".total").startswith("81"))
    tab.clean("links")
    tab.close()


def trajectory(browser):
    tab = Tab(browser)
    tab.open("run.html", "#/t/14b-lru-cache-1")
    page = tab.page
    main = page.inner_text("main")
    check(
        "the mismatch is called out",
        "Mismatch. The agent's own last check passed, and the official verifier failed" in main,
    )
    check("both verdicts", page.inner_text("#s-verdict").count("exit_code=") >= 2)
    check("tampering", "tests/conftest.py" in page.inner_text("#s-verdict") and "Worth a look" in main)
    check("a diff", page.locator(".dl.add").count() > 3 and page.locator(".dl.del").count() > 1)
    check("colours of a terminal", page.locator(".a1.ab, .ab.a1").count() > 0)
    page.click("details.wire >> nth=0 >> summary")
    wanted = '"model": "coder-14b@3"'
    wire = tab.eventually(lambda: page.inner_text("details.wire >> nth=0"), lambda text: wanted in text)
    check("request on demand", wanted in wire, wire[:200])
    tab.go("#/t/14b-json-patch-0")
    check("drift in the ledger", "realign" in page.inner_text("#s-tokens"))
    tab.go("#/t/3b-json-patch-3")
    check(
        "the failed call",
        "call 1 failed" in page.inner_text("#s-turns").lower() and "503" in page.inner_text("#s-turns"),
    )
    tab.open("one.html")
    check(
        "a page of one",
        page.inner_text(".tile >> nth=0").split()[-3] == "1" or "1" in page.inner_text(".tile >> nth=0"),
    )
    tab.clean("trajectory")
    tab.close()


def many(browser):
    """B117: as many as there are, few of them drawn."""
    tab = Tab(browser)
    tab.open("many.html", "#/list")
    page = tab.page
    check("10,000", page.inner_text(".total") == "10,000 trajectories", page.inner_text(".total"))
    drawn = lambda: tab.js("() => document.querySelectorAll('.tr[data-at]').length")
    check("few rows are drawn", 10 < drawn() < 120, drawn())
    page.keyboard.press("End")
    check("End", tab.js("() => document.activeElement.closest('.tr').dataset.at") == "9999")
    check("and few again", 5 < drawn() < 120, drawn())
    tab.js("() => scrollTo(0, document.body.scrollHeight / 2)")
    page.wait_for_selector('.tr[data-at="5000"]')
    page.fill("#filter", "task:task-007 reward<0.5")
    n = page.inner_text(".total")
    check("a filter", n.endswith("of 10,000 trajectories") and 0 < int(n.split()[0]) < 40, n)
    tab.go("#/")
    check("the overview counts", "10,000" in page.inner_text(".tiles"))
    tab.open("many.html")
    paint = tab.js("() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    tab.go("#/list")
    keys = tab.js(
        """() => { const f = document.getElementById("filter"), times = [];
        for (const text of ["t", "ta", "tas", "task-0", "task-00 reward<0.5", "failed"]) {
            const began = performance.now(); f.value = text; f.dispatchEvent(new Event("input")); document.body.offsetHeight; times.push(performance.now() - began);
        } return times; }"""
    )
    print(f"10,000 rows: first paint {paint:.0f} ms, a keystroke of the filter at most {max(keys):.0f} ms")
    tab.go("#/")
    check("the heat map is bounded", page.locator(".heatline").count() == 200)
    tab.clean("many")
    tab.close()


def bench(browser):
    for scheme in ("light", "dark"):
        tab = Tab(browser, scheme=scheme, bypass=True)
        tab.open("bench.html")
        page = tab.page
        board = page.locator('[aria-labelledby="board"] tbody tr').all_inner_texts()
        check(
            "bench: ranked",
            len(board) == 2 and board[0].startswith("good") and board[1].startswith("org/second"),
            board,
        )
        check("bench: an interval", "92 %" in board[1] and " – " in board[1], board)
        compared = page.inner_text('[aria-labelledby="compare"]')
        check("bench: compared", "better" in compared and "pts" in compared and "p =" in compared, compared)
        check("bench: what fails alike", page.locator(".alike li").count() == 1)
        check("bench: tasks", "beta" in page.inner_text('[aria-labelledby="tasks"]'))
        accessible(tab, "bench " + scheme)
        page.click('[aria-labelledby="board"] tbody a >> nth=1')
        tab.page.wait_for_selector(".listview")
        check(
            "bench: a student's attempts",
            page.inner_text(".total") == "12 of 24 trajectories",
            page.inner_text(".total"),
        )
        tab.clean("bench")
        tab.close()


def hostile(browser):
    """B115: what an agent says runs nothing."""
    tab = Tab(browser)
    page = tab.page
    size = (out / "hostile.html").stat().st_size
    check("lines of 5 MB make no large page", size < 1500000, size)
    for fragment in ("#/", "#/list"):
        tab.open("hostile.html", fragment)
    for name in ("script", "comment", "ansi", "bidi", "latex", "proto"):
        tab.open("hostile.html", "#/t/bad-" + name)
        page.keyboard.press("e")
        tab.js("() => document.querySelectorAll('main details').forEach(d => { d.open = true })")
        check(
            name + ": nothing became an element",
            tab.js(
                "() => document.querySelectorAll('main img, main script, main iframe, main a[href^=javascript]').length"
            )
            == 0,
        )
    check("no title of theirs", tab.js("() => document.title").startswith("proto"), tab.js("() => document.title"))
    check("no pollution", tab.js("() => ({}).polluted === undefined"))
    tab.go("#/t/bad-script")
    check("shown as it is", "</script><script>document.title='owned'</script>" in page.inner_text("main"))
    tab.go("#/t/bad-bidi")
    check("marks that reorder are named", {"RLO", "LRI", "ZWSP", "BOM"} <= set(page.locator(".odd").all_inner_texts()))
    raw = tab.js("() => /[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.body.textContent.replace(/^.*<script/s, ''))")
    shown = tab.js(
        "() => [...document.querySelectorAll('main *, #bar *')].some(e => /[\\u202a-\\u202e\\u2066-\\u2069]/.test([...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join('')))"
    )
    check("and none is in the text", not shown, raw)
    tab.go("#/t/long-line")
    check("a cut text says so", "are not in this page" in page.inner_text("main"))
    check(
        "bytes that are no UTF-8", "\ufffd" in page.inner_text("main") and "bytes replaced" in page.inner_text("main")
    )
    tab.clean("hostile")
    tab.close()


def printed(browser):
    tab = Tab(browser, scheme="dark")
    tab.open("run.html", "#/t/14b-lru-cache-1")
    tab.page.emulate_media(media="print")
    paper = tab.js("() => getComputedStyle(document.documentElement).backgroundColor")
    check("print: white, of a dark page too", paper == "rgb(255, 255, 255)", paper)
    check("print: no bar", not tab.page.is_visible("#bar"))
    pdf = tab.page.pdf()
    check("print: pages", pdf[:5] == b"%PDF-" and len(pdf) > 20000, len(pdf))
    tab.clean("print")
    tab.close()


def lively(browser):
    """`agentbox view`: rows as they come, bodies and bodies of calls when they are opened, two viewers."""
    address = out / "address"
    deadline = time.monotonic() + 60
    while not address.read_text().endswith("\n"):
        assert time.monotonic() < deadline, "the viewer says no address"
        time.sleep(0.05)
    url = address.read_text().strip()
    tab, other = Tab(browser), Tab(browser, scheme="dark")
    for one in (tab, other):
        one.open(url, "#/list")
        check("live: what is there", one.page.inner_text(".total") == "40 trajectories", one.page.inner_text(".total"))
    tab.page.fill("#filter", "model:3b")
    with open(out / "live" / "trajectories-00000.jsonl", "ab") as file:
        file.write(b"".join((out / "run" / "trajectories-00000.jsonl").read_bytes().splitlines(True)[40:]))
    other.page.get_by_text("81 trajectories", exact=True).wait_for(timeout=60000)
    tab.page.get_by_text("of 81 trajectories").wait_for(timeout=60000)
    check("live: the filter stays", tab.page.input_value("#filter") == "model:3b")
    tab.go("#/t/3b-lru-cache-0")
    check("live: a body when it is opened", "Verdict" in tab.page.inner_text("main"))
    check("live: two requests for it at most", sum("api/body" in u for u in tab.requests) <= 2, tab.requests)
    tab.page.click("details.wire >> nth=0 >> summary")
    tab.page.get_by_text('"messages": [').first.wait_for(timeout=20000)
    other.go("#/")
    check("live: the overview has intervals", "95 %" in other.page.inner_text(".tiles"))
    for one in (tab, other):
        one.clean("live")
        one.close()
    tab = Tab(browser, bypass=True)
    tab.open(url, "#/")
    accessible(tab, "live overview")
    tab.close()


def photograph(browser):
    shots = [
        ("overview", "run.html", "#/", 1440, 1000, "light"),
        ("overview-dark", "run.html", "#/", 1440, 1000, "dark"),
        ("list", "run.html", "#/list", 1440, 800, "light"),
        ("trajectory", "run.html", "#/t/14b-lru-cache-1", 1440, 1300, "light"),
        ("bench", "bench.html", "#/", 1440, 1000, "light"),
        ("phone", "run.html", "#/t/14b-lru-cache-1", 390, 844, "dark"),
    ]
    for name, page, fragment, width, height, scheme in shots:
        tab = Tab(browser, width, height, scheme)
        tab.open(page, fragment)
        tab.page.screenshot(path=str(Path(pictures) / (name + ".png")))
        tab.close()


with sync_playwright() as p:
    with p.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"]) as browser:
        for part in (policy_holds, keyboard, links, trajectory, many, bench, hostile, printed, lively, every_view):
            part(browser)
        if pictures:
            photograph(browser)
print(f"{checks} checks, {len(failures)} failed")
sys.exit(1 if failures else 0)
