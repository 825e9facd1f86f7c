package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The dashboard is a valid value of the TypeScript type Dashboard in the npm package
// @grafana/schema. The test is skipped if node or this package is not installed. Run npm ci
// in testdata/node to install the package and the TypeScript compiler.
func TestDashboardHasGrafanasType(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	folder, err := filepath.Abs("testdata/node/node_modules")
	require.NoError(t, err)
	if _, err := os.Stat(folder + "/@grafana/schema/package.json"); err != nil {
		t.Skip("@grafana/schema is not installed: run npm ci in deploy/testdata/node")
	}
	text, err := os.ReadFile("grafana/sqsfifo.json")
	require.NoError(t, err)
	var model object
	require.NoError(t, json.Unmarshal(text, &model))
	for _, annotation := range model["annotations"].(map[string]any)["list"].([]any) {
		// The field `expr` is only for Prometheus, and the TypeScript type lacks it.
		delete(annotation.(map[string]any), "expr")
	}
	dashboard, err := json.MarshalIndent(model, "", "  ")
	require.NoError(t, err)
	check := func(dashboard string) (output string, err error) {
		// TypeScript does not accept a string where the type is an enumeration.
		dashboard = strings.ReplaceAll(dashboard, `"mode": "absolute"`, `"mode": ThresholdsMode.Absolute`)
		dir := t.TempDir()
		require.NoError(t, os.Symlink(folder, filepath.Join(dir, "node_modules")))
		source := "import { type Dashboard, ThresholdsMode } from '@grafana/schema';\nexport const dashboard: Dashboard = " + dashboard + ";\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "dashboard.ts"), []byte(source), 0o600))
		c := exec.CommandContext(t.Context(), node, folder+"/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck",
			"--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "dashboard.ts") // #nosec G204 -- the program and its arguments come from this test
		c.Dir = dir
		out, err := c.CombinedOutput()
		return string(out), err
	}
	output, err := check(string(dashboard))
	require.NoError(t, err, output)
	for _, wrong := range [][2]string{{`"refresh": 2`, `"refresh": "often"`}, {`"gridPos"`, `"gridPosition"`}} {
		broken := strings.Replace(string(dashboard), wrong[0], wrong[1], 1)
		require.NotEqual(t, string(dashboard), broken)
		_, err := check(broken)
		require.Error(t, err, wrong[1])
	}
}
