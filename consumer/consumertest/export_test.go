package consumertest

import "testing"

// CaseNames returns the names of all cases, for tests of the suite.
func CaseNames() (names []string) {
	for _, c := range cases {
		names = append(names, c.name)
	}
	return names
}

// Check returns the violations of one case, for tests of the suite.
func Check(t *testing.T, name string, run Run) []string {
	for _, c := range cases {
		if c.name == name {
			return c.check(t, run)
		}
	}
	t.Fatalf("no case %q", name)
	return nil
}
