#!/bin/sh
# python.sh SCRIPT ARGS...: runs the script with $GRAPHRUN_PYTHON, or python3. Exit code 77: there is no such program.
python=${GRAPHRUN_PYTHON:-python3}
"$python" -c '' 2>/dev/null || { echo "skipped: there is no $(basename "$python")"; exit 77; }
exec "$python" -B "$@"
