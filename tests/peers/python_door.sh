#!/bin/sh
# The Python package of the door: its wheel is built and installed, mypy reads its types, and pytest uses it against the
# engine, with an online loop among the tests.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/_peer.sh"
binary=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
package=$here/../../python/agentbox
peer 11 python-door setuptools==80.9.0 wheel==0.45.1 pytest==8.4.2 mypy==1.18.2
cp -r "$package" "$out/package"
"$py" -m pip -q --disable-pip-version-check wheel --no-deps --no-build-isolation --no-index -w "$out/wheel" "$out/package"
"$py" -m pip -q --disable-pip-version-check install --no-deps --no-index --target "$out/site" "$out"/wheel/agentbox_door-*.whl
test -f "$out/site/agentbox/py.typed"
(cd "$out" && "$py" -m mypy --strict --no-error-summary --cache-dir "$out/mypy" "$out/site/agentbox")
cd "$out/package/tests"
AGENTBOX_BIN=$binary PYTHONPATH=$out/site PYTHONDONTWRITEBYTECODE=1 timeout -k 5 500 "$py" -m pytest -q -x -s -p no:cacheprovider --basetemp "$out/tmp" .
