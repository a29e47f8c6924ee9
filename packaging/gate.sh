#!/usr/bin/env bash
# What action.yml runs: one gate. Its line goes to the log and the run's summary, its decision to the outputs.
set -uo pipefail
read -r -a options <<< "${OPTIONS:-}"
line=$(genbounds gate "--margin=$MARGIN" --out "$OUT" "${options[@]}" -- "$REFERENCE" "$BASELINE" "$CANDIDATE")
status=$?
[ -z "$line" ] || printf '%s\n' "$line" | tee -a "${GITHUB_STEP_SUMMARY:-/dev/null}"
if [ "$status" -le 1 ] && [ -s "$OUT/results.json" ]; then
  decision=$(python -c 'import json, sys; print(json.load(open(sys.argv[1], encoding="utf-8"))["decision"])' "$OUT/results.json")
  printf 'decision=%s\n' "$decision" >> "${GITHUB_OUTPUT:-/dev/null}"
fi
exit "$status"
