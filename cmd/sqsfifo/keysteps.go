package main

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/kansas-frontier-matrix/sqsfifo"
)

// keySteps lists the steps from a dataset to its normal form, in the order of the
// specification. A step changes one component of the dataset: dataset_id, version or
// source_uri. It starts with the result of the component's previous step.
func keySteps(given, normal sdk.Dataset) []keyStep {
	steps := make([]keyStep, 0, 4)
	value, component := "", ""
	begin := func(name, text string) { component, value = name, text }
	step := func(what, result string) {
		if result != value {
			steps = append(steps, keyStep{component, value, result, what})
			value = result
		}
	}
	begin("dataset_id", given.ID)
	step("white space around it removed", normal.ID)
	begin("version", given.Version)
	step("white space around it removed", strings.TrimSpace(value))
	step("written in its v form", normal.Version)
	begin("source_uri", given.SourceURI)
	step("white space around it removed", strings.TrimSpace(value))
	step("fragment removed", beforeFragment(value))
	step("scheme in lower case", lowerScheme(value))
	if u, err := url.Parse(value); err == nil {
		step("host in lower case", strings.Replace(value, "://"+u.Host, "://"+strings.ToLower(u.Host), 1))
	}
	if u, n := parsed(value), parsed(normal.SourceURI); u.Port() != "" && n.Port() == "" {
		step("default port removed", strings.Replace(value, "://"+u.Host, "://"+strings.TrimSuffix(u.Host, ":"+u.Port()), 1))
	}
	path, query, hasQuery := strings.Cut(value, "?")
	normalPath, normalQuery, normalHasQuery := strings.Cut(normal.SourceURI, "?")
	join := func(path, query string, has bool) string {
		if has {
			return path + "?" + query
		}
		return path
	}
	if dotSegment.MatchString(path) {
		step("dot segments resolved, percent-encoding normalised", join(normalPath, query, hasQuery))
	} else {
		step("path and percent-encoding normalised", join(normalPath, query, hasQuery))
	}
	if !slices.IsSorted(strings.Split(query, "&")) {
		step("query parameters sorted, their percent-encoding normalised", join(normalPath, normalQuery, normalHasQuery))
	}
	step("query normalised", normal.SourceURI)
	return steps
}

// dotSegment is "." or ".." as a path segment, optionally percent-encoded.
var dotSegment = regexp.MustCompile(`(?i)/(\.|%2e){1,2}(/|$)`)

func beforeFragment(uri string) string {
	before, _, _ := strings.Cut(uri, "#")
	return before
}

func lowerScheme(uri string) string {
	scheme, rest, found := strings.Cut(uri, ":")
	if !found {
		return uri
	}
	return strings.ToLower(scheme) + ":" + rest
}

func parsed(uri string) *url.URL {
	u, err := url.Parse(uri)
	if err != nil {
		return new(url.URL)
	}
	return u
}
