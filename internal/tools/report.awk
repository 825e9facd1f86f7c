# report.awk reads the output of "go test" and a last line "exit CODE", and exits with CODE.
# A package that fails keeps its output. Of a package that passes, the script prints the
# line "ok" and, after "go test -v", the skipped tests with their reasons. The last lines
# are the ten slowest packages.
BEGIN { FS = "\t" }

/^exit [0-9]+$/ { code = substr($0, 6); next }
/^(=== |\?)|^ *--- PASS/ { next }
/^(ok  |FAIL)\t/ {
	printf "%s", $1 == "FAIL" ? output : skips
	output = skips = ""
	print
	fflush()
	if ($3 ~ /^[0-9.]+s/) seconds[$2] += $3
	next
}
/^ *--- SKIP/ { skips = skips $0 "\n" last }
{
	last = $0 "\n"
	output = output last
}

END {
	printf "%s", output
	print "\nthe ten slowest packages, in seconds:"
	sort = "sort -rn | head -n 10"
	for (name in seconds) printf "%8.2f %s\n", seconds[name], name | sort
	close(sort)
	exit code
}
