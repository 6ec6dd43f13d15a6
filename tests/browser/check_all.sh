#!/bin/sh
# Checks pages of several samples: sh check_all.sh [FOLDER for the pages]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$(mktemp -d)}
failed=0

page() { # NAME: the document comes from the standard input
  cat > "$folder/$1.json"
  python3 "$here/assemble.py" "$folder/$1.json" "$folder/$1.html"
}

check() { # NAME OPTIONS
  name=$1
  shift
  echo "== $name"
  node "$here/check.mjs" "$folder/$name.html" "$@" || failed=1
}

python3 "$here/sample.py" 300 | page plain
python3 "$here/sample.py" 300 --hostile | page hostile
python3 "$here/sample.py" 300 --ranks --hostile | page ranks
python3 "$here/sample.py" 3000 --gpu | page gpu
python3 "$here/sample.py" 100000 | page large
python3 "$here/sample.py" 0 --empty | page empty
echo '{"version": 1}' | page sparse
echo '{"version": 2}' | page version
echo '{"version": 1' | page broken

for name in plain hostile ranks gpu empty sparse version broken; do
  check "$name"
done
check large --frames
exit "$failed"
