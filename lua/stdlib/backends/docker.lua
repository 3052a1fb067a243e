--- backends/docker.lua: sandboxes that are containers of Docker, through its socket; docs/docker.md.
return require "agentbox.docker.backend".new "docker"
