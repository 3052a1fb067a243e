"""A registry that can lie: python3 registry.py --watch-pid PID. Prints its port; ends with the process PID.

PUT /images/NAME?file=PATH&mode=MODE adds the image in PATH as NAME:1. MODE says what goes wrong:
  ok, index, auth, cut:N (ends after N bytes of a layer, once), stall:N (stops after N bytes), flip (a layer's byte is
  changed), flipmanifest, long (a layer goes on for ever), norange (answers 200 to a range), shift (another range than
  asked for), huge (an endless manifest), busy (503 twice first), foreign (a layer elsewhere), gzip, otherarch,
  redirect (as auth, and blobs are on another host)
GET /log gives the requests so far.
"""
import gzip
import hashlib
import http.server
import json
import os
import socketserver
import sys
import tarfile
import threading
import time
import urllib.parse

images, log, once = {}, [], set()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Image:
    def __init__(self, path, mode):
        self.mode = mode
        with tarfile.open(path) as tar:
            read = lambda name: tar.extractfile(name).read()
            entry = json.loads(read("manifest.json"))[0]
            layers = [read(name) for name in entry["Layers"]]
            config = read(entry["Config"])
        if mode == "gzip":
            layers = [gzip.compress(layer, 1) for layer in layers]
        kind = "application/vnd.oci.image.layer.v1.tar" + ("+gzip" if mode == "gzip" else "")
        self.blobs = {digest(blob): blob for blob in layers + [config]}
        self.layers = {digest(layer) for layer in layers}
        described = [{"mediaType": kind, "digest": digest(l), "size": len(l)} for l in layers]
        if mode == "foreign":
            described[0]["urls"] = ["http://192.0.2.1/layer"]
        self.manifest = json.dumps({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(config), "size": len(config)},
            "layers": described}).encode()
        self.manifests = {digest(self.manifest): self.manifest, "1": self.manifest}
        if mode in ("index", "flipmanifest", "otherarch"):
            arch = json.loads(config)["architecture"]
            here = {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest(self.manifest),
                    "size": len(self.manifest), "platform": {"os": "linux", "architecture": "s390x" if mode == "otherarch" else arch}}
            other = dict(here, digest="sha256:" + "1" * 64, platform={"os": "linux", "architecture": "mips"})
            self.manifests["1"] = json.dumps({"schemaVersion": 2, "manifests": [other, here],
                                              "mediaType": "application/vnd.oci.image.index.v1+json"}).encode()
        if mode == "flipmanifest":
            self.manifests[digest(self.manifest)] = self.manifest.replace(b'"schemaVersion": 2', b'"schemaVersion":  2')


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=(), length=None):
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.send_header("Connection", "close")  # a kept one would be a descriptor too many, now and then
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        url = urllib.parse.urlparse(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        images[url.path[len("/images/"):]] = Image(query["file"], query["mode"])
        self.answer(201)

    def do_GET(self):
        if self.path == "/log":
            return self.answer(200, json.dumps(log).encode())
        url = urllib.parse.urlparse(self.path)
        log.append({"path": self.path, "range": self.headers.get("Range") or "", "auth": self.headers.get("Authorization") or ""})
        if url.path == "/token":
            good = self.headers.get("Authorization") == "Basic dXNlcjpzZWNyZXQtd29yZA=="
            return self.answer(200 if good else 401, json.dumps({"token": "the-token"}).encode())
        parts = url.path.split("/")
        if parts[1] == "elsewhere":
            return self.answer(200, images["/".join(parts[2:-1])].blobs[parts[-1]])
        image = images.get("/".join(parts[2:-2]))
        if not image:
            return self.answer(404)
        mode, _, number = image.mode.partition(":")
        if mode in ("auth", "redirect") and self.headers.get("Authorization") != "Bearer the-token":
            host = self.headers["Host"]
            return self.answer(401, headers=[("WWW-Authenticate",
                'Bearer realm="http://%s/token",service="test",scope="repository:%s:pull"' % (host, "/".join(parts[2:-2])))])
        if mode == "busy" and len([1 for r in log if r["path"] == self.path]) <= 2:
            return self.answer(503, headers=[("Retry-After", "0")])
        if parts[-2] == "manifests":
            return self.manifest(image, mode, parts[-1])
        return self.blob(image, mode, int(number or 0), parts[-1])

    def manifest(self, image, mode, reference):
        if mode == "huge":
            self.answer(200, length=1 << 40)
            return self.endless()
        body = image.manifests.get(reference)
        self.answer(200 if body else 404, body or b"", [("Content-Type", json.loads(body)["mediaType"])] if body else ())

    def endless(self):
        try:
            while True:
                self.wfile.write(b" " * 65536)
        except OSError:
            self.close_connection = True

    def blob(self, image, mode, number, reference):
        body = image.blobs.get(reference)
        if body is None:
            return self.answer(404)
        is_layer = reference in image.layers
        if mode == "redirect":
            port = self.headers["Host"].split(":")[1]
            return self.answer(307, headers=[("Location", "http://localhost:%s/elsewhere/%s/%s" % (
                port, "/".join(self.path.split("/")[2:-2]), reference))])
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        if is_layer and mode == "flip":
            body = body[:1000] + bytes([body[1000] ^ 1]) + body[1001:]
        if is_layer and mode == "long":
            self.answer(200, length=1 << 40)
            return self.endless()
        if is_layer and mode in ("cut", "norange", "shift") and reference not in once:
            once.add(reference)
            self.answer(200, body[:number or 5000], length=len(body))
            self.close_connection = True
            return None
        if is_layer and mode == "stall" and start == 0:
            self.answer(200, body[:number], length=len(body))
            self.wfile.flush()
            time.sleep(3600)
        if start == 0 or mode == "norange":
            return self.answer(200, body)
        if mode == "shift" and (reference, "shifted") not in once:
            once.add((reference, "shifted"))
            start += 1
        return self.answer(206, body[start:], [("Content-Range", "bytes %d-%d/%d" % (start, len(body) - 1, len(body)))])


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def watch(pid):
    while os.path.exists("/proc/%d" % pid):
        time.sleep(0.5)
    os._exit(0)


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=watch, args=(int(sys.argv[2]),), daemon=True).start()
print(server.server_address[1], flush=True)
os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
server.serve_forever()
