#!/usr/bin/env bash
# Checks event.pml and store.pml with spin: each configuration exhaustively, one line
# a run.
#
#   check.sh                             all runs
#   check.sh trace -DOLD ...             the shortest counterexample of one configuration
#   check.sh trace store -DSEND_FIRST    of store.pml
#
# It fails if the design has an error, or if the old design or a mutation has none.
# README.md and STORE.md explain the runs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CC=${CC:-gcc}

if ! command -v spin >/dev/null; then
	echo "model: skipped, spin is not installed (Debian: apt-get install spin)"
	exit 0
fi
if ! command -v "$CC" >/dev/null || ! command -v cpp >/dev/null; then
	echo "model: skipped, spin needs a C compiler and cpp"
	exit 0
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# explore DIR MODEL FLAGS...: builds and runs one configuration in DIR.
explore() {
	local dir=$1 model=$2.pml opt=-O0
	shift 2
	mkdir -p "$dir"
	cd "$dir"
	cp "$here/$model" .
	case "$model $* " in event.pml*" -DSUBMISSIONS=2 "* | store.pml*" -D"*) ;; *) opt=-O2 ;; esac
	spin -a "$@" "$model" >spin.out 2>&1 </dev/null &&
		"$CC" -w "$opt" -DSAFETY -DBFS -o pan pan.c >cc.out 2>&1 &&
		./pan -m100000 -w20 >pan.out 2>&1 </dev/null
}

if [ "${1:-}" = trace ]; then
	shift
	model=event
	if [ "${1:-}" = store ]; then
		model=store
		shift
	else
		set -- -DSUBMISSIONS=2 "$@"
	fi
	explore "$tmp/trace" $model "$@" || { cat "$tmp"/trace/*.out; exit 1; }
	grep -h 'assertion violated\|invalid end state \|errors:' pan.out
	if [ -f $model.pml.trail ]; then
		spin -t "$@" $model.pml </dev/null |
			awk '/^ *tick/ { t++ } /^ *(submission|process|Close|it is settled|the )/ { sub(/^ */, ""); print "t=" t+0 "  " $0 }'
	fi
	exit 0
fi

# design | what differs | property: a number or "all" | expected | flags | model
runs=()
model=event
run() { runs+=("$1|$2|$3|$4|$5|$model"); }

# The design.
run new "three alive at once" all holds ""
run new "two alive at once, with Close" all holds "-DSUBMISSIONS=2 -DCLOSE"
for point in 1 2 3 4; do
	run new "reaches point $point" all reached "-DSUBMISSIONS=2 -DREACH=$point"
done

# Today's design: the violations of the issue.
run old "a resend that waited" 2 fails "-DSUBMISSIONS=2 -DOLD -DRESEND_ONLY -DNO_ANSWERS"
run old "a copy that waited" 2 fails "-DSUBMISSIONS=2 -DOLD"
run old "a resend that ends early" 3 fails "-DSUBMISSIONS=2 -DOLD -DRESEND_ONLY -DNO_ANSWERS"
run old "a copy that ends early" 4 fails "-DSUBMISSIONS=2 -DOLD"

# Each rule left out.
mutation() { run mutation "${1//+/ }" "$2" fails "-DSUBMISSIONS=2 ${1//+/ }"; }
mutation -DNO_CAPTURE 2
mutation -DLATE_CAPTURE 2
mutation -DNO_RECHECK 2
mutation -DLOOK_THEN_WAIT 2
mutation -DNO_REFRESH 2
mutation -DREFRESH=6 2
mutation -DREFRESH_ONLY_UNKNOWN 4
mutation -DNOT_KEPT 2
mutation -DNEWER_RECORD_REPLACES 2
mutation -DLIMIT_OF_SUBMISSION 2
mutation -DLIMIT_OF_LATEST 2
mutation -DDOUBT_FROM_ANSWER 2
mutation -DNO_MARGIN 2
mutation -DNO_SLACK_BEFORE 2
mutation -DNO_SLACK_AFTER 2
mutation -DENDS_FROM_ANSWER 2
mutation -DENDS_WITH_FIRST 2
mutation -DSTORED_WITHOUT_LIMIT 2
mutation -DRACE+-DNO_EARLIEST 2
mutation -DERRORS_DO_NOT_LOOK 3
mutation -DNO_UNDERWAY 3
mutation -DREFUSAL_ENDS_DOUBT 3
mutation -DWEAK_REFUSAL 3
mutation -DNO_LOCAL_DUPLICATE 4
mutation -DWEAK_SUCCESS 5
mutation -DTWO_OUTCOMES 1
mutation -DNO_COMMIT 3
mutation -DCLOSE+-DNO_WITHDRAWAL 1
mutation -DFOREIGN+-DFOREIGN_AS_OWN 2

# Other rules that are as good.
variant() { run variant "${1//+/ }" all holds "-DSUBMISSIONS=2 ${1//+/ }"; }
variant -DRACE
variant -DNO_EARLIEST
variant -DSTORED_IS_LOCAL
variant -DREFRESH=2+-DNO_RECHECK
variant -DPUSH+-DNO_RECHECK
variant -DPUSH_AT_END+-DNO_CAPTURE

run variant "-DFOREIGN" 2 holds "-DSUBMISSIONS=2 -DFOREIGN"
run variant "-DFOREIGN -DFOREIGN_AS_OWN -DSTORED_IS_LOCAL" 2 holds "-DSUBMISSIONS=2 -DFOREIGN -DFOREIGN_AS_OWN -DSTORED_IS_LOCAL"

# What no producer can promise: it learns the instant of acceptance only as a range.
run new "a duplicate is never reported late" 6 fails "-DSUBMISSIONS=2"

# With a store.
model=store
run store "two processes that crash" all holds ""
for point in 1 2 3 4 5 6; do
	run store "reaches point $point" all reached "-DREACH=$point"
done
broken() { run broken "$1" "$2" fails "$1"; }
broken -DSEND_FIRST 1
broken -DCOMPLETE_WITHOUT_FENCE 2
broken -DFAIL_WITHOUT_FENCE 1
broken -DCLAIM_LOST 1
broken -DNO_LEASES 3
broken -DNO_LEASE_CHECK 1
broken -DNO_LATE_CHECK 1
broken -DWINDOW_WITHOUT_LEASE 1
broken -DWINDOW_WITHOUT_SLACK 1
broken -DWINDOW_FROM_RECLAIM 1
broken -DPRIOR_FORGOTTEN 1
broken -DDOUBT_NOT_TOLD 3
broken -DREFUSAL_ENDS_DOUBT 1
broken -DRELEASE_IN_DOUBT 1
broken -DSETTLED_EARLY 1
broken -DWEAK_SUCCESS 2

# What the store's configuration gives up by choice, and what nobody can promise.
broken -DSEND_AGAIN 1
broken -DFAIL_OPEN 1
run store "\"not stored\" is never out of date" 4 fails ""

line='%-9s %-46s %-9s %9s  %s\n'
one() {
	local design what property expected flags model errors states result
	IFS='|' read -r design what property expected flags model <<<"${runs[$1]}"
	[ "$property" = all ] || flags+=" -DONLY=$property"
	# shellcheck disable=SC2086
	if ! (explore "$tmp/$1" "$model" $flags); then
		printf "$line" "$design" "$what" "$property" - "BROKEN RUN" >"$tmp/$1.line"
		cat "$tmp/$1/"*.out >>"$tmp/$1.line"
		touch "$tmp/failed"
		return
	fi
	errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' "$tmp/$1/pan.out")
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$tmp/$1/pan.out")
	if [ "$errors" != 0 ]; then
		if grep -q 'assertion violated' "$tmp/$1/pan.out"; then
			result="violated"
		elif grep -q 'invalid end state' "$tmp/$1/pan.out"; then
			result="violated" # a submission without an outcome
		else
			result="broken: $(grep -m1 '^pan:' "$tmp/$1/pan.out")"
		fi
		[ "$expected" != reached ] || result="reached"
	elif grep -q 'Search not completed\|max search depth' "$tmp/$1/pan.out"; then
		result="not exhausted"
	else
		result="holds"
	fi
	case $expected/$result in
	holds/holds) ;;
	fails/violated) result="violated, as expected" ;;
	reached/reached) ;;
	*)
		result+=" (UNEXPECTED, want: $expected)"
		touch "$tmp/failed"
		;;
	esac
	printf "$line" "$design" "$what" "$property" "$states" "$result" >"$tmp/$1.line"
	rm -rf "${tmp:?}/$1"
}

printf "$line" design "what differs" property states result
jobs=$(nproc 2>/dev/null || echo 2)
for i in "${!runs[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
	one "$i" &
done
wait
for i in "${!runs[@]}"; do cat "$tmp/$i.line"; done
if [ -e "$tmp/failed" ]; then
	echo "model: FAILED" >&2
	exit 1
fi
