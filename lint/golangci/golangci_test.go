package golangci_test

import (
	"flag"
	"os"
	"testing"

	"github.com/golangci/plugin-module-register/register"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/golangci"
)

// build makes the plugin as golangci-lint does: it finds the plugin by name, and passes
// settings of the types that a YAML reader returns.
func build(t *testing.T, settings any) error {
	t.Helper()
	t.Cleanup(func() {
		fifovet.Analyzer.Flags.VisitAll(func(f *flag.Flag) { require.NoError(t, f.Value.Set(f.DefValue)) })
	})
	create, err := register.GetPlugin(golangci.Name)
	require.NoError(t, err)
	plugin, err := create(settings)
	if err != nil {
		return err
	}
	assert.Equal(t, register.LoadModeTypesInfo, plugin.GetLoadMode())
	analyzers, err := plugin.BuildAnalyzers()
	if err != nil {
		return err
	}
	require.Len(t, analyzers, 1)
	assert.Equal(t, fifovet.Analyzer.FactTypes, analyzers[0].FactTypes)
	assert.Equal(t, golangci.Name, analyzers[0].Name, "golangci-lint shows the analyzer under the linter's name")
	return nil
}

func TestPlugin(t *testing.T) {
	require.NoError(t, build(t, nil))
	require.NoError(t, build(t, map[string]any{}))
}

func TestSettingsBecomeFlags(t *testing.T) {
	settings := map[string]any{
		"enable": []any{"SF001", "SF010"}, "disable": []any{"SF009"}, "strict": true,
		"nondet": []any{"example.com/id.New", "example.com/id.Gen.Next"}, "forbid-raw": true, "notes": true,
	}
	require.NoError(t, build(t, settings))
	got := map[string]string{}
	fifovet.Analyzer.Flags.VisitAll(func(f *flag.Flag) { got[f.Name] = f.Value.String() })
	assert.Equal(t, map[string]string{
		"enable": "SF001,SF010", "disable": "SF009", "strict": "true",
		"nondet": "example.com/id.New,example.com/id.Gen.Next", "forbid-raw": "true", "notes": "true",
	}, got, "every flag of the analyzer is a setting")

	require.NoError(t, build(t, nil))
	fifovet.Analyzer.Flags.VisitAll(func(f *flag.Flag) { assert.Equal(t, f.DefValue, f.Value.String(), f.Name) })
}

func TestSettingsThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		settings any
		says     string
	}{
		"unknown name":  {map[string]any{"stict": true}, "stict"},
		"wrong type":    {map[string]any{"strict": "yes"}, "strict"},
		"not a map":     {[]any{"strict"}, "settings"},
		"unknown rule":  {map[string]any{"disable": []any{"SF999"}}, "setting disable"},
		"not a package": {map[string]any{"nondet": []any{"New"}}, "setting nondet"},
	} {
		t.Run(name, func(t *testing.T) {
			err := build(t, tc.settings)
			require.ErrorContains(t, err, tc.says)
			assert.ErrorContains(t, err, "sqsfifo: ")
		})
	}
}

// golangci-lint would report each related position of a finding as a separate issue, so the
// plugin removes the related positions.
func TestAFindingIsOneIssue(t *testing.T) {
	run := fifovet.Analyzer.Run
	t.Cleanup(func() { fifovet.Analyzer.Run = run })
	create, err := register.GetPlugin(golangci.Name)
	require.NoError(t, err)
	plugin, err := create(nil)
	require.NoError(t, err)
	analyzers, err := plugin.BuildAnalyzers()
	require.NoError(t, err)
	fifovet.Analyzer.Run = func(pass *analysis.Pass) (any, error) {
		pass.Report(analysis.Diagnostic{Pos: 1, Message: "a finding", Related: []analysis.RelatedInformation{{Pos: 2, Message: "from here"}}})
		return nil, nil
	}
	var got []analysis.Diagnostic
	_, err = analyzers[0].Run(&analysis.Pass{Report: func(d analysis.Diagnostic) { got = append(got, d) }})
	require.NoError(t, err)
	assert.Equal(t, []analysis.Diagnostic{{Pos: 1, Message: "a finding"}}, got)
}

// docs/guide/linting.md has the lines by which golangci-lint finds the plugin.
func TestTheGuideHasTheConfiguration(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/linting.md")
	require.NoError(t, err)
	assert.Contains(t, string(text), "\nversion: "+golangciVersion+"\n", "the version that make golangci builds")
	assert.Contains(t, string(text), "    import: "+"github.com/kansas-frontier-matrix/sqsfifo/lint/golangci"+"\n")
	assert.Contains(t, string(text), "\n  enable: ["+golangci.Name+"]\n")
	assert.Contains(t, string(text), "\n      "+golangci.Name+":\n        type: module\n        settings:\n          strict: true\n")
	require.NoError(t, build(t, map[string]any{"strict": true}))
}
