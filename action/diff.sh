#!/usr/bin/env bash
# What changes for traffic on $DEV from $BASE to what is checked out, for each of $SCRIPTS (files, one a line): Markdown in $FOLDER/diff.md. A difference is no failure.
set -euo pipefail
mkdir -p "$FOLDER"
before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
status=0
{
  echo "### What changes for traffic on \`$DEV\`"
  while IFS= read -r script; do
    [ -n "${script// /}" ] || continue
    if [ -d "$script" ]; then
      echo "diff: $script is a folder; name its scripts one by one to compare them" >&2
      continue
    fi
    echo
    echo "\`$script\`"
    echo
    old="$before/$(basename "$script")"
    if ! git show "$BASE:$script" > "$old" 2>/dev/null; then
      echo "is new."
      continue
    fi
    said=0
    text=$(penstock diff --dev "$DEV" "$old" "$script") || said=$?
    case "$said" in
      0) echo "treats all traffic as before." ;;
      1) printf '```\n%s\n```\n' "$text" ;;
      *) echo "cannot be compared; the log says why."; status=$said ;;
    esac
  done <<< "$SCRIPTS"
} > "$FOLDER/diff.md"
cat "$FOLDER/diff.md" >> "${GITHUB_STEP_SUMMARY:-/dev/null}"
echo "comment=$FOLDER/diff.md" >> "${GITHUB_OUTPUT:-/dev/null}"
exit "$status"
