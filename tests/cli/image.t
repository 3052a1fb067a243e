Images, in a store of this folder.

$ export AGENTBOX_HOME="$PWD/store"; agentbox image list; ls store 2>/dev/null
[exit 2]

$ agentbox image inspect nothing:1
agentbox: no image 'nothing:1' here: agentbox image pull nothing:1
agentbox image pull nothing:1
[exit 2]

$ mkdir root && echo hello > root/file && tar -C root -cf root.tar . && export AGENTBOX_HOME="$PWD/store" && agentbox image import root.tar
agentbox: a root file system has no name of its own
say what to call it: --name NAME
[exit 2]

$ export AGENTBOX_HOME="$PWD/store"; agentbox image import root.tar --name mine:1; agentbox image list --json
mine:1 <*> kB  import
[{<*>"name":"mine:1"<*>}]
[exit 0]

$ printf 'FROM mine:1\nCOPY root.tar /\nCMD x\n' > Dockerfile; export AGENTBOX_HOME="$PWD/store"; agentbox image build -t built .
agentbox: line 3: CMD is not supported
build it with Docker, then: docker save IMAGE | agentbox image import -; or use the Docker backend
[exit 3]

$ printf 'FROM mine:1\nENV A=b\nCOPY root.tar /\n' > Dockerfile; export AGENTBOX_HOME="$PWD/store"; agentbox image build -q -t built . && agentbox image inspect built | grep -v -e layer -e files
built:latest <*>  build
name          built:latest
id            sha256:<*>
digest        sha256:<*>
architecture  <*>
created       TIME
source        build
env           A=b
[exit 0]

$ export AGENTBOX_HOME="$PWD/store"; agentbox image rm mine:1 built && agentbox image gc && agentbox image list
mine:1
built:latest
removed 2 trees, 6 blobs, 0 leftovers: <*>
[exit 0]

$ agentbox image build
agentbox: image build: option '--tag' is required
Try 'agentbox image build --help' for more information.
[exit 2]

$ agentbox image
...
[exit 0]
