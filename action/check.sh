#!/usr/bin/env bash
# Findings of $SCRIPTS (one a line): annotations on standard output, SARIF in $FOLDER/findings.sarif. Fails as `penstock check --fail-on $FAIL_ON` does.
set -euo pipefail
mkdir -p "$FOLDER"
mapfile -t scripts < <(printf '%s\n' "$SCRIPTS" | sed '/^[[:space:]]*$/d')
options=(--fail-on "${FAIL_ON:-warning}")
[ -z "${DEV:-}" ] || options+=(--dev "$DEV")
[ -z "${RATE:-}" ] || options+=(--rate "$RATE")
status=0
penstock check "${options[@]}" --format sarif "${scripts[@]}" > "$FOLDER/findings.sarif" || status=$?
penstock check "${options[@]}" --format github "${scripts[@]}" || true
echo "sarif=$FOLDER/findings.sarif" >> "${GITHUB_OUTPUT:-/dev/null}"
exit "$status"
