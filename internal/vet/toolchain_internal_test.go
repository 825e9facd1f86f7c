package vet

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNewerThanBuilt(t *testing.T) {
	for _, tc := range []struct {
		goCommand, built string
		newer            bool
	}{
		{"go1.27.1", "go1.26.8", true},
		{"go1.27.1", "go1.26.0 X:nodwarf5", true},
		{"go1.27rc1", "go1.26.8", true},
		{"go1.27-custom", "go1.26.8", true},
		{"go1.100.0", "go1.27.1", true},
		{"go2.0", "go1.27.1", true},
		{"go1.26.11", "go1.26.8", false},
		{"go1.26.8 X:jsonv2", "go1.26.8", false},
		{"go1.26.8", "go1.27.1", false},
		{"devel go1.28-3d2f", "go1.26.8", false},
		{"go1.27.1", "devel go1.26-3d2f", false},
		{"", "go1.26.8", false},
	} {
		assert.Equal(t, tc.newer, newerThanBuilt(tc.goCommand, tc.built) != nil, "%s, built with %s", tc.goCommand, tc.built)
	}
}
