#!/usr/bin/env bash
# commit_msg.sh HOOK: accepted and rejected messages of scripts/hooks/commit-msg, as a file and as a hook of git.
. "$(dirname "$0")/checks.sh"
hook=$1
# check CODE MESSAGE: runs the hook on MESSAGE, which printf formats.
check() { printf "$2" >"$work/message"; expect "$1" "$hook" "$work/message"; }

check 0 'data: Fix the first row of tables without a header\n\nIt was read as names.\n'
check 0 '# comment\n\nsession, cli: Report steps\n\nWhy.\n# ------------------------ >8 ------------------------\ndiff\n'
check 0 "cli: Fix $(printf 'ö%.0s' {1..63})\n\nWhy.\n"
check 0 'fixup! data: Fix the first row\n'
check 0 "Merge branch 'tables'\n"
check 0 'Revert "data: Fix the first row"\n\nThis reverts commit 0123456789.\n'
check 0 '# an empty message, which git rejects\n'

check 1 "cli: Fix $(printf 'ö%.0s' {1..64})\n\nWhy.\n"; says '73 characters'
check 1 'Tables are read once more\n\nWhy.\n'; says 'area: Summary'
check 1 'Merge the tables\n\nWhy.\n'; says 'area: Summary'
check 1 'data: fix rows\n\nWhy.\n'; says 'area: Summary'
check 1 'data: Fix rows.\n\nWhy.\n'; says 'full stop'
check 1 'data: Fixed rows\n\nWhy.\n'; says "'Fixed' is not an imperative"
check 1 'data: What rows are\n\nWhy.\n'; says 'not an imperative'
check 1 'data: Fix rows\n'; says 'no body'
check 1 'data: Fix rows\n\nSigned-off-by: A <a@b.c>\n'; says 'no body'
check 1 'data: Fix rows\nof tables\n'; says 'second line'

command -v git >/dev/null || skip 'git is missing'
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE
git init -q "$work/clone" && cd "$work/clone"
git config core.hooksPath "$(dirname "$hook")"
expect 1 git commit -q --allow-empty -m 'wip'
expect 0 git commit -q --allow-empty -m 'data: Fix rows' -m 'Why.'
expect 0 "$hook" --log HEAD
git commit -q --no-verify --allow-empty -m 'wip'
expect 1 "$hook" --log HEAD
says "$(git rev-parse --short=10 HEAD)"
