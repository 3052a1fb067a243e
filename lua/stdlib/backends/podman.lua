--- backends/podman.lua: the same with podman's Docker-compatible socket (`podman system service`).
return require "agentbox.docker.backend".new "podman"
