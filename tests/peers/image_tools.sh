# Images as others make them and see them: pushed by skopeo to docker-registry, pulled by us, compared file by file with
# what umoci unpacks; saved by skopeo in its formats, imported by us. Usage: image_tools.sh AGENTBOX
set -eu
agentbox=$1
here=$(cd "$(dirname "$0")" && pwd)
for tool in docker-registry skopeo umoci; do
    command -v $tool >/dev/null 2>&1 || { echo "SKIP $tool is not installed (apt-get install docker-registry skopeo umoci)"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "SKIP umoci keeps owners as root only"; exit 77; }

dir=$(mktemp -d)
registry=
cleanup() {
    [ -z "$registry" ] || kill "$registry" 2>/dev/null || true
    rm -rf "$dir"
}
trap cleanup EXIT
cd "$dir"
export AGENTBOX_HOME="$dir/home"
fail() { echo "FAIL $*"; exit 1; }

# ---- an image of three layers: files of this machine, then changes of every kind
umoci init --layout oci
umoci new --image oci:base >/dev/null
umoci unpack --image oci:base bundle >/dev/null 2>&1
root=bundle/rootfs
mkdir -p $root/usr/lib $root/usr/share $root/etc $root/tmp $root/gone/deep $root/opq $root/data/sub
ln -s usr/lib $root/lib
cp -a /usr/lib/python3*/json /usr/lib/python3*/email $root/usr/lib/ 2>/dev/null || true
cp -a /usr/share/zoneinfo $root/usr/share/ 2>/dev/null || true
cp -a /etc/passwd /etc/group $root/etc/
echo lower >$root/data/lower
ln $root/data/lower $root/data/hard
touch -d '2020-01-02 03:04:05.5' $root/data/lower
echo a >$root/gone/deep/a
echo old >$root/opq/old
chmod 1777 $root/tmp
install -m 4755 /bin/true $root/data/setuid
chown 12:34 $root/data/sub
mkfifo $root/data/fifo
python3 -c 'import os; os.setxattr("'$root'/data/lower", "user.note", b"1")' || true
umoci repack --image oci:one --refresh-bundle bundle >/dev/null 2>&1
rm -r $root/gone $root/opq
mkdir $root/opq
echo new >$root/opq/new
rm $root/data/hard
ln -s lower $root/data/hard
echo through >$root/lib/through
umoci repack --image oci:two --refresh-bundle bundle >/dev/null 2>&1
rm -r $root/data/sub
echo file >$root/data/sub
mkdir $root/gone
touch "$root/new
line" "$root/$(printf 'caf\303\251')"
chmod 700 $root/etc
umoci repack --image oci:three --refresh-bundle bundle >/dev/null 2>&1
umoci config --image oci:three --config.env A=b --config.workingdir /data

# ---- what a tree is: names, kinds, modes, owners, times, contents, attributes, and which names are one file
list() {
    python3 - "$1" <<'PY'
import hashlib, os, stat, sys
top, files = os.fsencode(sys.argv[1]), {}
for base, dirs, names in os.walk(top):
    for name in dirs + names + ([b"."] if base == top else []):
        path = os.path.normpath(os.path.join(base, name))
        st, short = os.lstat(path), os.path.relpath(path, top)
        facts = [stat.filemode(st.st_mode), st.st_uid, st.st_gid, st.st_mtime_ns // 10**9]
        if stat.S_ISREG(st.st_mode):
            facts += [st.st_size, hashlib.sha256(open(path, "rb").read()).hexdigest()]
            files.setdefault(st.st_ino, []).append(short)
        elif stat.S_ISLNK(st.st_mode):
            facts.append(os.readlink(path))
        if not stat.S_ISLNK(st.st_mode):
            facts += sorted((a, os.getxattr(path, a)) for a in os.listxattr(path))
        print(short, facts)
for group in sorted(sorted(g) for g in files.values() if len(g) > 1):
    print("same", group)
PY
}
same_tree() {
    list "$1" | sort >left
    list "$2" | sort >right
    diff left right >difference || { head -n 20 difference; fail "$3: the trees differ"; }
    echo "ok $3: $(wc -l <left) files are the same"
}
root_of() { "$agentbox" image inspect --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["root"])'; }

for tag in one two three; do umoci unpack --image oci:$tag umoci-$tag >/dev/null 2>&1; done

# ---- through a registry
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
printf 'version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %s/registry}}\nhttp: {addr: 127.0.0.1:%s}\n' \
    "$dir" "$port" >registry.yml
docker-registry serve registry.yml >registry.log 2>&1 &
registry=$!
tries=0
until python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port/v2/')" 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { cat registry.log; fail "docker-registry did not start"; }
    sleep 0.1
done
for tag in one two three; do
    skopeo copy --dest-tls-verify=false oci:oci:$tag docker://127.0.0.1:$port/team/image:$tag >/dev/null
done
skopeo copy --dest-tls-verify=false --format v2s2 oci:oci:two docker://127.0.0.1:$port/team/image:docker >/dev/null
for tag in three one docker; do
    "$agentbox" image pull "127.0.0.1:$port/team/image:$tag" >/dev/null
done
same_tree umoci-three/rootfs "$(root_of "127.0.0.1:$port/team/image:three")" "pulled, three layers"
same_tree umoci-one/rootfs "$(root_of "127.0.0.1:$port/team/image:one")" "pulled, one layer"
same_tree umoci-two/rootfs "$(root_of "127.0.0.1:$port/team/image:docker")" "pulled, Docker's manifest"
digest=$(skopeo inspect --tls-verify=false --format '{{.Digest}}' docker://127.0.0.1:$port/team/image:three)
"$agentbox" image inspect --json "127.0.0.1:$port/team/image:three" | grep -q "$digest" || fail "another digest than skopeo's"
"$agentbox" image pull "127.0.0.1:$port/team/image@$digest" >/dev/null

# ---- through files, each in a store of its own
check_import() {
    AGENTBOX_HOME="$dir/home-$1"
    shift
    "$agentbox" image import "$@" --name imported >/dev/null
    same_tree umoci-two/rootfs "$(root_of imported)" "imported: $1"
    AGENTBOX_HOME="$dir/home"
}
skopeo copy oci:oci:two docker-archive:saved.tar:x/y:1 >/dev/null
skopeo copy oci:oci:two oci-archive:layout.tar:two >/dev/null
skopeo copy --dest-compress-format zstd --dest-compress oci:oci:two oci:zstd:two >/dev/null 2>&1 || cp -a oci zstd
check_import saved saved.tar
check_import layout layout.tar
check_import folder oci --ref two
check_import zstd zstd --ref two
tar --xattrs -C umoci-two/rootfs -cf - . | zstd -q >rootfs.tar.zst 2>/dev/null ||
    tar --xattrs -C umoci-two/rootfs -czf rootfs.tar.zst .
check_import rootfs rootfs.tar.zst

"$agentbox" image gc --check --json | grep -q '"damaged":0' || fail "damaged blobs"
for tag in three one docker; do "$agentbox" image rm "127.0.0.1:$port/team/image:$tag" >/dev/null; done
"$agentbox" image rm "127.0.0.1:$port/team/image@$digest" >/dev/null
"$agentbox" image gc >/dev/null
[ -z "$(ls "$AGENTBOX_HOME/images/trees" "$AGENTBOX_HOME/images/tmp" "$AGENTBOX_HOME/images/blobs/sha256" | grep -v :)" ] ||
    fail "something is left after gc"
echo "ok nothing is left"
