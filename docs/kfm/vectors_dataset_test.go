package kfm

import "strings"

const (
	exampleDataset = "noaa_storm_events_1950_2025"
	exampleVersion = "v10.3.1"
	exampleURI     = "https://www.ncei.noaa.gov/storm-events/file_1950_2025.csv"
)

func datasetOf(id, version, uri string, parameters ...string) input {
	return input{DatasetID: ptr(text(id)), Version: ptr(text(version)), SourceURI: ptr(text(uri)), QueryParameters: parameters}
}

func datasetCases() []vector {
	var out []vector
	add := func(make func(rule, op, note string, in input) vector, rule, note string, ins ...input) {
		for _, in := range ins {
			out = append(out, make(rule, "dataset", note, in))
		}
	}
	uri := func(make func(rule, op, note string, in input) vector, rule, note string, uris ...string) {
		for _, u := range uris {
			add(make, rule, note, datasetOf("soil", "v1.0.0", u, "year", "state", "ü", "flag", "token"))
		}
	}
	version := func(make func(rule, op, note string, in input) vector, rule, note string, versions ...string) {
		for _, v := range versions {
			add(make, rule, note, datasetOf(exampleDataset, v, exampleURI))
		}
	}
	add(good, "D1", "the contract's example", datasetOf(exampleDataset, exampleVersion, exampleURI))
	add(good, "D1", "each component counts", datasetOf("ssurgo", exampleVersion, exampleURI), datasetOf(exampleDataset, "v10.3.2", exampleURI), datasetOf(exampleDataset, exampleVersion, exampleURI+"x"))
	for _, c := range whiteSpace {
		add(good, "D2", "trimmed", datasetOf(string(c)+"soil"+string(c), " v1.0.0", exampleURI+"\n"))
	}
	add(good, "D2", "a version with white space around it", datasetOf("soil", "\tv1.0.0\n", exampleURI), datasetOf("soil", "v1.0.0", "  "+exampleURI+"\u3000"))
	add(refused, "D3", "a bar", datasetOf("a|b", "v1.0.0", exampleURI), datasetOf("a", "v1.0.0|", exampleURI), datasetOf("a", "v1.0.0", exampleURI+"|"))
	add(refused, "D4", "not text", datasetOf("a\xff", "v1.0.0", exampleURI), datasetOf("a", "v1.0.0\xff", exampleURI), datasetOf("a", "v1.0.0", exampleURI+"\xff"),
		datasetOf("a\x00b", "v1.0.0", exampleURI), datasetOf("a", "v1.0\x7f.0", exampleURI), datasetOf("a", "v1.0.0", "https://h/a\u0085b"), datasetOf("a", "v1.0.0", "https://h/a\nb"))
	add(refused, "D5", "empty", datasetOf("", "v1.0.0", exampleURI), datasetOf(" \u00a0", "v1.0.0", exampleURI))
	add(good, "D5", "case and inner white space stay", datasetOf("NOAA Storm", "v1.0.0", exampleURI), datasetOf("noaa storm", "v1.0.0", exampleURI), datasetOf("a/é🙂", "v1.0.0", exampleURI))
	version(good, "D6", "with and without v", "10.3.1", "V10.3.1", "v0.0.0", "1.2.3-RC.1+Build.007")
	version(good, "D7", "semantic", "1.2.3-alpha.1", "1.2.3-0", "1.2.3--", "1.2.3-x-y.z", "1.2.3+001", "1.2.3-a+b-c.d", "1.2.3-0a", "99999999999999999999.0.0", "1.2.3-01a")
	version(refused, "D7", "not semantic", "", "v", "1.2", "1.2.3.4", "01.2.3", "1.02.3", "1.2.-3", "vv1.2.3", "1.2.3-", "1.2.3+", "1.2.3-01", "1.2.3-a..b", "1.2.3+a+b", "1.2.3-é", "1.2.x", "latest", "v 1.2.3", "1.2.3-a_b", "１.2.3")
	uri(good, "D8", "schemes", "HTTPS://example.org/a", "s3://bucket/key.csv", "a+b-c.d1://host/x", "file:///srv/key.csv", "file:/srv/key.csv", "gs://b/", "http://h/a", "http://h", "http://h#f?year=1", "file:///")
	uri(refused, "D8", "not absolute", "", "/srv/file.csv", "//h/file.csv", "example.org/a", "urn:isbn:1", "1a://h/x", "mailto:a", "file:", "file:srv", "file://", "://h/a", "é://h/a", "h ttp://h/a", "#a://b/c")
	uri(refused, "D9", "user info", "https://me@h/a", "https://me:secret@h/a", "https://@h/a", "s3://a@b@c/d")
	uri(good, "D9", "an @ elsewhere", "https://h/me@h")
	uri(refused, "D10", "no host", "https:///a", "https:/a", "s3://:/a", "s3://:80/a", "file://:80/a", "file://:/a", "https://h:x/a", "https://h:-1/a", "https://h: 80/a", "https://h:8é/a")
	uri(good, "D10", "a host for a file", "file://nas/srv/key.csv")
	uri(good, "D11", "lower case", "https://Example.ORG/A", "s3://My_Bucket.x-y/", "https://192.0.2.1/x", "https://1/x")
	uri(refused, "D11", "not a host", "https://caf\u00e9.example/", "https://a,b/", "https://a%41/", "https://a b/", "https://\u212a.example/", "https://a%2fb/", "https://h~/", "https://a!/")
	uri(good, "D12", "addresses", "https://[2001:DB8::1]/x", "https://[2001:db8:0:0:0:0:0:1]:443/x", "https://[::FFFF:C000:0201]/x", "https://[::ffff:192.0.2.1]/x", "https://[::]/", "https://[0:0:1:0:0:0:1:1]/", "https://[1:0:0:2:0:0:3:4]/", "https://[1:2:3:4:5:6:7::]/", "https://[1:2:3:0:5:6:7:8]/", "https://[::1.2.3.4]/", "https://[1::1.2.3.4]:8443/", "https://[::ffff:0:1]/", "https://[00ab::0001]/")
	uri(refused, "D12", "not an address", "https://[1:2:3]/", "https://[fe80::1%25eth0]/", "https://[192.0.2.1]/", "https://[::1::2]/", "https://[1:2:3:4:5:6:7:8:9]/", "https://[12345::1]/", "https://[::1", "https://[g::1]/", "https://[::1]x/", "https://[]/", "https://[::01.2.3.4]/", "https://[::1.2.3]/")
	uri(good, "D13", "ports", "https://h:443/a", "http://h:80/a", "ftp://h:21/a", "sftp://h:22/a", "https://h:80/a", "https://h:/a", "https://h:0443/a", "https://h:00/a", "s3://h:443/a", "https://h:99999999/a")
	uri(good, "D14", "fragments", "https://h/a#part", "https://h/a#", "https://h/a#a#b", "https://h/a#?year=1")
	uri(refused, "D15", "bad escapes", "https://h/%", "https://h/a%2", "https://h/a%zz", "https://h/?year=%", "https://h/?year=%4&flag", "https://h/?%xx=1", "https://h/a#%", "https://h/a#%g0")
	uri(good, "D16", "escapes", "https://h/%61/%2D%2e%5f%7E", "https://h/a%2fb", "https://h/c d%2Fe", "https://h/:@!$&'()*+,;=-._~", "https://h/%3a%40", "https://h/\"<>[]\\^`{}", "https://h/caf\u00e9", "https://h/%c3%A9", "https://h/%ff%00", "https://h/a%25b", "https://h/*", "https://h/🙂", "https://h/%7c")
	uri(good, "D17", "dot segments", "https://h/a/./x/../b", "https://h/../a", "https://h/a/x/%2e%2E/b", "https://h/a/.", "https://h/a/..", "https://h/a//b", "https://h/a//x/../b", "https://h/a/b/../../../c", "https://h/..//x", "https://h/.", "https://h/...", "https://h/a/..b", "file:/..//x", "https://h/a/%2f../b")
	uri(good, "D18", "root", "https://h", "https://h/", "https://h?year=1", "https://h#f")
	uri(refused, "D19", "not declared", "https://h/a?month=1", "https://h/a?Year=1", "https://h/a?secret", "https://h/a?=1", "https://h/a?year=1&month", "https://h/a?u%CC%88=1", "https://h/a??year=1", "https://h/a?%ff=1")
	uri(good, "D19", "declared", "https://h/a?y%65ar=1", "https://h/a?ü=1&%C3%BC=2", "https://h/a?", "https://h/a?&&")
	uri(good, "D20", "values", "https://h/q?year=2025&state=KS", "https://h/q?state=New+York", "https://h/q?state=New%20York%2b", "https://h/q?state=a=b%26c", "https://h/q?year=2&year=1&year=10", "https://h/q?year=1&year=1", "https://h/q?flag", "https://h/q?flag=", "https://h/q?flag&flag=", "https://h/q?year=%ff/~", "https://h/q?year=a?b/c;d", "https://h/q?year=*", "https://h/q?year=🙂", "https://h/q?&state=b&&flag&year=a-._~")
	uri(refused, "D21", "secrets", "https://h/a?X-Amz-Signature=1", "https://h/a?x-goog-date", "https://h/a?Signature=1", "https://h/a?sig=1", "https://h/a?AWSAccessKeyId=1", "https://h/a?GoogleAccessId=1", "https://h/a?Key-Pair-Id=1", "https://h/a?Policy=1", "https://h/a?token=1", "https://h/a?Access_Token=1", "https://h/a?%73ig=1", "https://h/a?year=1&tOken")
	add(refused, "D21", "declared in the same spelling", datasetOf("soil", "v1.0.0", "https://h/a?token", "token"), datasetOf("soil", "v1.0.0", "https://h/a?x-amz-a=1", "x-amz-a"))
	add(good, "D21", "almost a secret", datasetOf("soil", "v1.0.0", "https://h/a?to\u212aen=1&tokens=2&x-am=3", "to\u212aen", "tokens", "x-am"))
	key := func(make func(rule, op, note string, in input) vector, note string, keys ...string) {
		for _, k := range keys {
			out = append(out, make("D22", "check_dataset_key", note, input{Key: ptr(text(k))}))
		}
	}
	digits := "7fd365dc3a22bccf2f7e584b28fa6bbb1730d8db5c5b7eb6d3a0e6d73743b6ea"
	key(good, "a key", "sha256:"+digits)
	key(refused, "not a key", "", digits, "sha256:", "sha256:"+digits[1:], "sha256:"+digits+"0", "sha256:"+strings.ToUpper(digits), "SHA256:"+digits, "sha256:"+digits[:63]+"g", " sha256:"+digits, "sha256:"+digits+"\n")
	return out
}
