#!/usr/bin/env bash
# scripts/get-data against file:// places: fetching, resuming, wrong files, wrong usage.
. "$(dirname "$0")/checks.sh"
get=$1
for tool in curl sha256sum; do command -v "$tool" >/dev/null || skip "$tool is not installed"; done

mkdir -p "$work/there"
head -c 300000 /dev/urandom >"$work/there/a.gz"
head -c 10 /dev/urandom >"$work/there/b"
table="$work/table.txt"
{
  echo "# a comment"
  echo "one sub/a.gz $(sum_of "$work/there/a.gz") file://$work/no/such file://$work/there/a.gz"
  echo "two b $(sum_of "$work/there/b") file://$work/there/b"
} >"$table"
run=("$get" --table "$table" --to "$work/data")

# One set, from its second place; then everything, what is there left alone.
expect 0 "${run[@]}" one
same "$work/there/a.gz" "$work/data/sub/a.gz"
gone "$work/data/b"
expect 0 "${run[@]}"
says "sub/a.gz is there"
says "b fetched from file://$work/there/b"
says "--data-dir $work/data"

# Without --to: beside the models, where nothing more need be said.
mkdir -p "$work/clone/scripts"
cp "$get" "$work/clone/scripts/"
expect 0 "$work/clone/scripts/get-data" --table "$table" two
same "$work/there/b" "$work/clone/models/b"
says "all files are in $work/clone/models, where its models look for them"
expect 0 env GRAPHRUN_DATA="$work/data" "$work/clone/scripts/get-data" --table "$table" two
says "GRAPHRUN_DATA=$work/data"

# A beginning is gone on with, a false beginning is thrown away.
rm "$work/data/sub/a.gz"
head -c 100000 "$work/there/a.gz" >"$work/data/sub/a.gz.part"
expect 0 "${run[@]}" one
same "$work/there/a.gz" "$work/data/sub/a.gz"
rm "$work/data/sub/a.gz"
head -c 100000 /dev/zero >"$work/data/sub/a.gz.part"
expect 0 "${run[@]}" one
same "$work/there/a.gz" "$work/data/sub/a.gz"
gone "$work/data/sub/a.gz.part"

# Another file than expected: nothing gets the name.
rm "$work/data/b"
echo changed >"$work/there/b"
expect 1 "${run[@]}" two
says "b could not be fetched"
says "another file than expected"
gone "$work/data/b"
gone "$work/data/b.part"

# A file of the user's is not overwritten.
echo mine >"$work/data/b"
expect 1 "${run[@]}" two
says "move it away"
[ "$(cat "$work/data/b")" = mine ] || fail "the file was overwritten"

# Nowhere.
rm "$work/there/a.gz" "$work/data/sub/a.gz"
expect 1 "${run[@]}" one
says "file://$work/no/such: curl"
says "Is this machine on the network?"
gone "$work/data/sub/a.gz"

expect 2 "${run[@]}" three
says "there is no set 'three'; there are: one two"
expect 2 "$get" --frm x
says "unknown option '--frm'"
expect 2 "$get" --to
expect 2 "$get" --table "$work/none"
expect 0 "$get" --help
says "usage:"
expect 0 "$get" --list mnist
says "mnist/train-images-idx3-ubyte.gz"
says "https://"
# The table that comes with it: four fields at least, a SHA-256, https only.
awk '!/^(#|$)/ { if (NF < 4 || $3 !~ /^[0-9a-f]+$/ || length($3) != 64) exit 1
                 for (i = 4; i <= NF; ++i) if ($i !~ /^https:/) exit 1 }' "$(dirname "$get")/data-files.txt" ||
  fail "data-files.txt is damaged"
