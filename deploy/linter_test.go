package deploy

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// model is the part of a dashboard that the linter reads.
type model struct {
	Title    string
	Editable *bool
	Refresh  string

	Templating struct {
		List []struct {
			Name, Label, Type, Query, AllValue string
			Multi, IncludeAll                  bool
			Refresh                            int
			Datasource                         struct{ UID string }
		}
	}
	Panels []struct {
		ID                       int
		Type, Title, Description string
		Datasource               struct{ UID string }
		GridPos                  struct{ H, W, X, Y int }
		FieldConfig              struct{ Defaults struct{ Unit string } }
		Targets                  []struct {
			RefID, Expr, LegendFormat string
			Datasource                struct{ UID string }
		}
	}
}

// lintDashboard returns the faults of a dashboard, by the rules of Grafana's
// dashboard-linter for Prometheus. The rules target-job-rule and target-instance-rule do
// not apply to metrics of CloudWatch, which have no job or instance label.
func lintDashboard(t *testing.T, text []byte) (faults []string) {
	t.Helper()
	var d model
	require.NoError(t, json.Unmarshal(text, &d))
	fault := func(rule, where string) { faults = append(faults, rule+": "+where) }

	variables := map[string]bool{}
	for i, v := range d.Templating.List {
		variables[v.Name] = true
		switch {
		case i == 0 && (v.Name != "datasource" || v.Type != "datasource" || v.Query != "prometheus" || v.Label != "Data source"):
			fault("template-datasource-rule", v.Name)
		case v.Type == "query" && v.Datasource.UID != "$datasource":
			fault("template-datasource-rule", v.Name)
		case v.Type == "query" && !regexp.MustCompile(`^label_values\([a-z_]+\{.*\}, [a-z_]+\)$`).MatchString(v.Query):
			fault("template-label-promql-rule", v.Name)
		case v.Type == "query" && v.Refresh != 2:
			fault("template-on-time-change-reload-rule", v.Name)
		case v.Type == "query" && (!v.Multi || !v.IncludeAll || v.AllValue != ".+" || v.Label != v.Name):
			fault("template-"+v.Name+"-rule", v.Name)
		}
	}
	for _, name := range []string{"datasource", "job", "instance"} {
		if !variables[name] {
			fault("template-"+name+"-rule", "no variable "+name)
		}
	}
	if d.Editable == nil || *d.Editable {
		fault("uneditable-dashboard", d.Title)
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			fault("panel-id", p.Title)
		}
		ids[p.ID] = true
		if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.H < 1 {
			fault("panel-position", p.Title)
		}
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" {
			fault("panel-title-description-rule", p.Title)
		}
		if p.FieldConfig.Defaults.Unit == "" {
			fault("panel-units-rule", p.Title)
		}
		if p.Datasource.UID != "$datasource" {
			fault("panel-datasource-rule", p.Title)
		}
		if len(p.Targets) == 0 {
			fault("panel-no-targets-rule", p.Title)
		}
		for _, target := range p.Targets {
			lintTarget(p.Title, target.Expr, variables, fault)
			if target.Datasource.UID != "$datasource" || target.LegendFormat == "" || target.RefID == "" {
				fault("target-datasource-rule", p.Title)
			}
		}
	}
	return faults
}

var (
	selector = regexp.MustCompile(`([a-z_]+)(\{[^}]*\})(\[[^\]]*\])?`)
	variable = regexp.MustCompile(`\$([a-z_]+)`)
	grouping = regexp.MustCompile(`\b(?:by|on) \([^)]*\)`)
	metric   = regexp.MustCompile(`\b(?:sqs_fifo|messaging|aws_sqs)_[a-z_]+`)
)

func lintTarget(title, expr string, variables map[string]bool, fault func(rule, where string)) {
	for _, m := range variable.FindAllStringSubmatch(expr, -1) {
		if !variables[m[1]] && m[1] != "__rate_interval" {
			fault("target-variable", title+" "+m[0])
		}
	}
	selected := 0
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		name, matchers, over := m[1], m[2], m[3]
		selected++
		if !strings.HasPrefix(name, "aws_sqs_") {
			for _, label := range []string{"job", "instance"} {
				if !strings.Contains(matchers, label+`=~"$`+label+`"`) {
					fault("target-"+label+"-rule", title+" "+name)
				}
			}
		}
		if over != "" && over != "[$__rate_interval]" && !strings.Contains(expr, "aws_sqs_") {
			fault("target-rate-interval-rule", title+" "+over)
		}
		if over == "" && !strings.HasPrefix(name, "aws_sqs_") && regexp.MustCompile(`_(total|bucket|count|sum)$`).MatchString(name) {
			fault("target-counter-agg-rule", title+" "+name)
		}
	}
	// Every metric in the query must have a selector in braces. Report each metric without
	// one.
	bare := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(grouping.ReplaceAllString(expr, ""), "{}")
	for _, at := range metric.FindAllStringIndex(bare, -1) {
		if name := bare[at[0]:at[1]]; !strings.HasPrefix(bare[at[1]:], "{") && name != q {
			fault("target-job-rule", title+" "+name)
		}
	}
	if selected == 0 {
		fault("target-promql-rule", title)
	}
}

// The linter accepts the dashboard. It reports each fault that the test puts in.
func TestDashboardLinter(t *testing.T) {
	text, err := os.ReadFile("grafana/sqsfifo.json")
	require.NoError(t, err)
	assert.Empty(t, lintDashboard(t, text))

	for _, tc := range []struct{ rule, old, new string }{
		{"template-datasource-rule", `"query": "prometheus"`, `"query": "loki"`},
		{"template-job-rule", `"name": "job"`, `"name": "job2"`},
		{"template-instance-rule", `"name": "instance"`, `"name": "instance2"`},
		{"template-label-promql-rule", `label_values(sqs_fifo_producer_event_limit{}, job)`, `label_names()`},
		{"template-on-time-change-reload-rule", `"refresh": 2`, `"refresh": 1`},
		{"uneditable-dashboard", `"editable": false`, `"editable": true`},
		{"panel-title-description-rule", `"description": "Age of the oldest pause`, `"description": "", "x": "`},
		{"panel-units-rule", `"unit": "percentunit"`, `"unit": ""`},
		{"panel-datasource-rule", `"uid": "$datasource"`, `"uid": "fixed"`},
		{"panel-no-targets-rule", `"targets": [`, `"nothing": [`},
		{"target-variable", `$__rate_interval`, `$__interval`},
		{"target-job-rule", `{job=~\"$job\",`, `{`},
		{"target-instance-rule", `instance=~\"$instance\",`, ``},
		{"target-rate-interval-rule", `[$__rate_interval]`, `[5m]`},
		{"target-counter-agg-rule", `_total{job=~\"$job\",instance=~\"$instance\",messaging_destination_name=~\"$queue\"}[$__rate_interval]`, `_total{job=~\"$job\",instance=~\"$instance\",messaging_destination_name=~\"$queue\"}`},
		{"panel-id", `"id": 3,`, `"id": 2,`},
		{"panel-position", `"x": 16`, `"x": 17`},
	} {
		broken := strings.ReplaceAll(string(text), tc.old, tc.new)
		require.NotEqual(t, string(text), broken, tc.rule)
		assert.True(t, slices.ContainsFunc(lintDashboard(t, []byte(broken)), func(f string) bool { return strings.HasPrefix(f, tc.rule+":") }), tc.rule)
	}
}
