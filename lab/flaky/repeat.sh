#!/bin/sh
# repeat.sh RUNS FOLDER TESTS [FLAG ...] runs a program of compiled tests RUNS times, for
# "go test -exec". FOLDER keeps the output of each failed run. A run that takes ten minutes
# counts as failed. The exit code is 1 after any failure. The files in FOLDER have the names
# of the package and of the variable LOAD.
runs=$1 folder=$2 failed=0 i=0
shift 2
name=$(pwd | tr / _).$LOAD
while [ $((i += 1)) -le "$runs" ]; do
	if ! "$@" -test.timeout=10m >"$folder/$name" 2>&1; then
		mv "$folder/$name" "$folder/$name.$i.txt"
		failed=$((failed + 1))
	fi
done
rm -f "$folder/$name"
[ $failed = 0 ] || { echo "$LOAD: failed in $failed of $runs runs"; exit 1; }
