#!/usr/bin/env bash
# Runs $EXPERIMENTS (one a line): folders and test cases in $FOLDER. Fails if an expectation is not met; all are run first.
set -euo pipefail
mkdir -p "$FOLDER/junit"
status=0
number=0
while IFS= read -r experiment; do
  [ -n "${experiment// /}" ] || continue
  number=$((number + 1))
  name="$number-$(basename "$experiment" .toml)"
  said=0
  penstock run -q --out "$FOLDER/runs/$name" --junit "$FOLDER/junit/$name.xml" "$experiment" || said=$?
  [ "$said" -eq 0 ] || echo "::error file=$experiment::$experiment ended with status $said"
  [ "$said" -le "$status" ] || status=$said
done <<< "$EXPERIMENTS"
echo "junit=$FOLDER/junit" >> "${GITHUB_OUTPUT:-/dev/null}"
exit "$status"
