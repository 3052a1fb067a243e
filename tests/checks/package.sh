#!/bin/sh
# The release as a user gets it: installed into an empty root and run there, and the .deb with its control fields.
set -eu
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
fail() { echo "$*"; exit 1; }

cmake --preset release >/dev/null
cmake --build --preset release --target all made >"$root/log" 2>&1 || { cat "$root/log"; exit 1; }
DESTDIR=$root cmake --install build/release --prefix /usr >/dev/null
for file in bin/agentbox share/bash-completion/completions/agentbox share/fish/vendor_completions.d/agentbox.fish \
    share/zsh/vendor-completions/_agentbox share/agentbox/lua/agentbox/init.lua share/agentbox/lua/agentbox/tools/read_file.lua \
    share/agentbox/tasks/fix_fizzbuzz/task.json share/doc/agentbox/README.md share/doc/agentbox/examples/demo.lua; do
    [ -s "$root/usr/$file" ] || fail "not installed: $file"
done
# Everything is inside the executable: it runs from a folder where nothing of ours is.
(cd / && env -i PATH=/usr/bin:/bin "$root/usr/bin/agentbox" version) || fail "the installed program does not run"
if command -v scdoc >/dev/null; then
    zcat "$root/usr/share/man/man1/agentbox.1.gz" | grep -q '^\.TH "agentbox" "1"' || fail "no manual page"
fi
bash -n "$root/usr/share/bash-completion/completions/agentbox" || fail "the bash completion does not parse"

command -v dpkg-shlibdeps >/dev/null || { echo "SKIP the .deb needs dpkg-dev"; exit 77; }
(cd build/release && cpack -G DEB -B "$root/deb" >"$root/log" 2>&1) || { cat "$root/log"; exit 1; }
deb=$(echo "$root"/deb/*.deb)
dpkg-deb -I "$deb" >"$root/control"
dpkg-deb -c "$deb" >"$root/contents"
for field in 'Package: agentbox' 'Depends: .*libuv1' 'Depends: .*libcurl4' 'Depends: .*libc6'; do
    grep -q "$field" "$root/control" || { cat "$root/control"; fail "control lacks $field"; }
done
grep -q ' \./usr/bin/agentbox$' "$root/contents" || fail "the .deb has no program"
if grep -q ' \./etc/apparmor.d/agentbox$' "$root/contents"; then
    [ "$(dpkg-deb -I "$deb" conffiles)" = /etc/apparmor.d/agentbox ] || fail "the profile is not a conffile"
fi
dpkg-deb -x "$deb" "$root/unpacked"
"$root/unpacked/usr/bin/agentbox" version || fail "the packaged program does not run"
