#!/usr/bin/env bash
# check_includes.sh ROOT: holds the includes below ROOT/include and ROOT/src against layers.txt.
# Prints file:line for each include that the table forbids; exit 1 when there is one, 2 when the table or tree is odd.
set -euo pipefail
table="$(dirname "$(readlink -f "$0")")/layers.txt"
cd "${1:?usage: check_includes.sh ROOT}"

mapfile -t files < <(find include src -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cuh' -o -name '*.cu' \) | sort)
if [ "${#files[@]}" -eq 0 ]; then
  echo "check_includes: no sources below $PWD" >&2
  exit 2
fi

awk '
  function begins(text, prefix) { return substr(text, 1, length(prefix)) == prefix }
  function any_begins(text, prefixes,    list, n, i) {  # is one of the prefixes the beginning of text?
    n = split(prefixes, list, " ")
    for (i = 1; i <= n; i++) if (begins(text, list[i])) return 1
    return 0
  }
  function complain(why) { printf "%s:%d: %s: %s\n", FILENAME, FNR, included, why; bad++ }

  FNR == 1 { file_number++ }
  file_number == 1 {  # the table
    if ($0 ~ /^[ \t]*(#|$)/) next
    colon = index($0, ":")
    if (colon < 2) { printf "%s:%d: expected \"place: prefix ...\"\n", FILENAME, FNR; exit 2 }
    key = substr($0, 1, colon - 1)
    value = substr($0, colon + 1)
    if (key == "<none") bare = value
    else if (begins(key, "<")) outside[substr(key, 2)] = value
    else { allowed[key] = value; split(key, parts, "/"); if (parts[1] == "src") folder[parts[2] "/"] = 1 }
    next
  }
  # The folder of the file that stands for the "*" of a place; "" when the place has none or the file is not below it.
  function star_of(file, place,    before, rest) {
    before = index(place, "*") - 1
    if (before < 0 || !begins(file, substr(place, 1, before))) return ""
    rest = substr(file, before + 1)
    return index(rest, "/") ? substr(rest, 1, index(rest, "/") - 1) : ""
  }
  FNR == 1 {
    checked++
    place = star = ""
    for (p in allowed) {
      folder_of_star = star_of(FILENAME, p)
      if (folder_of_star != "") { whole = p; sub(/[*]/, folder_of_star, whole) } else whole = p
      if (!begins(FILENAME, whole)) continue
      if (length(whole) > length(place) || (whole == place && whole == p)) { place = whole; prefixes = allowed[p]; star = folder_of_star }
    }
    if (star != "") gsub(/[*]/, star, prefixes)
    if (place == "") { printf "%s: no layer of the table holds this file\n", FILENAME; bad++ }
  }
  /^[ \t]*#[ \t]*include/ {
    text = $0
    sub(/^[ \t]*#[ \t]*include[ \t]*/, "", text)
    angled = begins(text, "<")
    included = substr(text, 2)
    sub(/[>"].*/, "", included)
    ours = begins(included, "graphrun/")
    for (f in folder) if (begins(included, f)) ours = 1
    if (ours) {
      if (place != "" && !any_begins(included, prefixes))
        complain("not allowed in " place " (may include:" prefixes ")")
    } else if (!angled && index(included, "/") == 0 && any_begins("./", prefixes)) {
      next
    } else if (!angled) {
      complain("an include of ours is qualified from src/ or include/")
    } else {
      if (any_begins(FILENAME, bare)) complain("this file includes no outside header")
      for (o in outside)
        if (begins(included, o) && !any_begins(FILENAME, outside[o])) complain("allowed only in" outside[o])
    }
  }
  END {
    if (bad) { printf "layering: %d forbidden includes in %d files\n", bad, checked; exit 1 }
    printf "layering: %d files, every include allowed\n", checked
  }
' "$table" "${files[@]}"
