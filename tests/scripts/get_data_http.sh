#!/usr/bin/env bash
# scripts/get-data against an HTTP server of this machine, and against no server at all.
. "$(dirname "$0")/checks.sh"
get=$1
for tool in curl sha256sum; do command -v "$tool" >/dev/null || skip "$tool is not installed"; done
python="${GRAPHRUN_PYTHON:-python3}"
command -v "$python" >/dev/null || skip "there is no $python"

mkdir -p "$work/there"
head -c 200000 /dev/urandom >"$work/there/a.gz"
"$python" -u -m http.server --bind 127.0.0.1 --directory "$work/there" 0 >"$work/server.log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
port=""
for _ in $(seq 100); do
  port="$(sed -n 's/.* port \([0-9][0-9]*\) .*/\1/p' "$work/server.log")"
  [ -z "$port" ] || break
  kill -0 "$server" 2>/dev/null || skip "the HTTP server does not start: $(cat "$work/server.log")"
  sleep 0.1
done
[ -n "$port" ] || skip "the HTTP server does not say its port"

sum="$(sum_of "$work/there/a.gz")"
echo "web a.gz $sum http://127.0.0.1:$port/none http://127.0.0.1:$port/a.gz" >"$work/table.txt"
expect 0 "$get" --table "$work/table.txt" --to "$work/data"
says "a.gz fetched from http://127.0.0.1:$port/a.gz"
same "$work/there/a.gz" "$work/data/a.gz"

# This server knows no ranges: a beginning is fetched anew.
rm "$work/data/a.gz"
head -c 1000 "$work/there/a.gz" >"$work/data/a.gz.part"
expect 0 "$get" --table "$work/table.txt" --to "$work/data"
same "$work/there/a.gz" "$work/data/a.gz"
gone "$work/data/a.gz.part"

echo "web b.gz $sum http://127.0.0.1:$port/none" >"$work/table.txt"
expect 1 "$get" --table "$work/table.txt" --to "$work/data"
says "404"
gone "$work/data/b.gz"

kill "$server"
wait "$server" 2>/dev/null || true
echo "web b.gz $sum http://127.0.0.1:$port/a.gz" >"$work/table.txt"
expect 1 "$get" --table "$work/table.txt" --to "$work/data"
says "b.gz could not be fetched"
says "Is this machine on the network?"
gone "$work/data/b.gz"
