"""Writes the archives of the image tests: python3 archives.py FOLDER. What hostile ones try is in their names."""
import gzip
import io
import json
import hashlib
import os
import subprocess
import sys
import tarfile

out = sys.argv[1]


def entry(name, kind=tarfile.REGTYPE, data=b"", **fields):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = len(data)
    info.mode = fields.pop("mode", 0o755 if kind == tarfile.DIRTYPE else 0o644)
    info.mtime = 1600000000
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def directory(name, **fields):
    return entry(name, tarfile.DIRTYPE, **fields)


def link(name, target):
    return entry(name, tarfile.SYMTYPE, linkname=target)


def hard(name, target):
    return entry(name, tarfile.LNKTYPE, linkname=target)


def tar_bytes(entries):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def write(name, entries):
    with open(os.path.join(out, name + ".tar"), "wb") as file:
        file.write(entries if isinstance(entries, bytes) else tar_bytes(entries))


def raw_link_with_data(name, target, data):
    """A hard link that carries bytes, which a careless reader writes through the link."""
    info, _ = hard(name, target)
    info.size = len(data)
    info.pax_headers = {"comment": "only pax archives may do so"}
    block = info.tobuf(format=tarfile.PAX_FORMAT)
    return block + data + b"\0" * (-len(data) % 512)


victim = os.environ["VICTIM"]
write("dotdot", [entry("../escaped", data=b"x")])
write("dotdot_inside", [directory("a"), entry("a/../../escaped", data=b"x")])
write("absolute", [entry(victim + "/absolute", data=b"x")])
write("through_absolute_link", [link("d", victim), entry("d/escaped", data=b"x")])
write("through_relative_link", [link("d", "../../../../../../../.." + victim), entry("d/escaped", data=b"x")])
write("through_file_link", [link("f", victim + "/secret"), entry("f", data=b"overwritten")])
write("hard_link_out", [hard("passwd", victim + "/secret")])
write("hard_link_dotdot", [hard("passwd", "../../../../../../.." + victim + "/secret")])
write("hard_link_via_link", [link("d", victim), hard("x", "d/secret")])
write("devices", [entry("null", tarfile.CHRTYPE, devmajor=1, devminor=3), entry("disk", tarfile.BLKTYPE, devmajor=8),
                  entry("pipe", tarfile.FIFOTYPE), entry("ok", data=b"ok")])
write("long_path", [entry("/".join(["d" * 100] * 50), data=b"x")])
write("long_name", [entry("n" * 300, data=b"x")])
write("deep", [directory("/".join(["d"] * 1500)), entry("ok", data=b"ok")])
write("duplicates", [entry("f", data=b"first"), directory("f"), entry("f/x", data=b"x"), link("f", "elsewhere"),
                     entry("f", data=b"last", mode=0o600)])
write("no_such_target", [hard("x", "nothing")])
write("root_is_file", [entry(".", data=b"x")])
write("whiteout_dots", [entry("d/.wh..", data=b"")])
write("whiteout_dotdot", [entry("d/.wh...", data=b"")])
write("whiteout_nothing", [entry("d/.wh.", data=b"")])
write("attributes", [entry("f", data=b"x", pax_headers={"SCHILY.xattr.user.kept": "1",
      "SCHILY.xattr.user.overlay.opaque": "y", "SCHILY.xattr.trusted.overlay.redirect": "/etc"})])
write("setuid", [entry("su", data=b"x", mode=0o4755, uid=0), entry("sticky", tarfile.DIRTYPE, mode=0o1777),
                 entry("theirs", data=b"x", uid=1234, gid=4321), entry("huge_owner", data=b"x", uid=4000000000)])
write("unicode", [entry("na\u00efve", data=b"1"), entry("new\nline", data=b"2"), entry("\udcff", data=b"3")])
write("sparse", [entry("zeros", data=b"\0" * (8 << 20))])
write("many", [entry("e%d" % i, data=b"x" * 100) for i in range(20000)])
with open(os.path.join(out, "bomb.tar.gz"), "wb") as raw:
    info, _ = entry("zeros")
    info.size = 3 << 30
    raw.write(gzip.compress(info.tobuf()))
    raw.write(gzip.compress(b"\0" * (1 << 20)) * (3 << 10))
good = tar_bytes([directory("d"), entry("d/f", data=b"hello" * 1000)])
write("cut", good[:2000])
with open(os.path.join(out, "cut.tar.gz"), "wb") as file:
    file.write(gzip.compress(good)[:-20])
write("garbage", os.urandom(4096))
write("empty", b"")


# ---- a base with a shell: this machine's own, and what it is linked with

def programs():
    entries, seen = [directory(d) for d in ("bin", "etc", "tmp", "data", "gone", "opq")], set()
    for name in ["sh", "ls", "cat", "rm", "mkdir", "id", "env", "ln", "touch", "chmod", "mv", "stat", "true", "sleep", "seq"]:
        path = subprocess.run(["which", name], capture_output=True, text=True, check=True).stdout.strip()
        queue = [(path, "bin/" + name)]
        for word in subprocess.run(["ldd", path], capture_output=True, text=True).stdout.split():
            if word.startswith("/"):
                queue.append((word, word.lstrip("/")))
        for source, target in queue:
            if target not in seen:
                seen.add(target)
                with open(os.path.realpath(source), "rb") as file:
                    entries.append(entry(target, data=file.read(), mode=0o755))
    entries.append(entry("etc/passwd", data=b"root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n"))
    entries += [entry("data/lower", data=b"lower\n", mtime=1577934245), hard("data/hard", "data/lower"),
                entry("gone/a", data=b"a"), entry("opq/old", data=b"old")]
    return entries


top = [directory("opq"), entry("opq/new", data=b"new"), entry("opq/.wh..wh..opq"), entry(".wh.gone"),
       entry("own", data=b"own"), entry(".wh.own"), hard("linked", "data/lower")]
base = tar_bytes(programs())
write("base", base)

# The same as what docker save writes: a hard link with data in the second layer must not change the first one's file.
second = tar_bytes(top)
poison = raw_link_with_data("poisoned", "data/lower", b"POISON") + b"\0" * 1024


def saved(name, layers, diff_ids=None, tag="saved:1", config=None):
    diff_ids = diff_ids or ["sha256:" + hashlib.sha256(layer).hexdigest() for layer in layers]
    text = json.dumps({"architecture": os.environ["ARCH"], "os": "linux", "config": config or {},
                       "rootfs": {"type": "layers", "diff_ids": diff_ids}}).encode()
    entries, paths = [], []
    for layer in layers:
        path = hashlib.sha256(layer).hexdigest() + "/layer.tar"
        paths.append(path)
        entries.append(entry(path, data=layer))
    called = hashlib.sha256(text).hexdigest() + ".json"
    entries.append(entry(called, data=text))
    manifest = [{"Config": called, "RepoTags": [tag], "Layers": paths}]
    entries.append(entry("manifest.json", data=json.dumps(manifest).encode()))
    write(name, entries)
    return entries


saved("saved_entrypoint", [base], tag="entry:1", config={"Entrypoint": ["/bin/false"], "Cmd": ["x"], "Env": ["PATH=/bin"]})
settings = {"Env": ["PATH=/bin", "FOO=bar"], "WorkingDir": "/data"}
saved("saved", [base, second], config=settings)
saved("saved_base", [base], tag="base:1", config=settings)
saved("saved_poison", [base, poison], tag="poison:1")
saved("saved_wrong_diff", [base, second], ["sha256:" + "0" * 64] * 2, tag="wrong:1")
write("saved_link_out", [link("0123456789abcdef.json", victim + "/secret"), entry("manifest.json", data=json.dumps(
    [{"Config": "0123456789abcdef.json", "RepoTags": ["x:1"], "Layers": []}]).encode())])
write("saved_dotdot", [entry("manifest.json", data=json.dumps(
    [{"Config": "../" * 12 + victim.lstrip("/") + "/secret", "RepoTags": ["x:1"], "Layers": []}]).encode())])
