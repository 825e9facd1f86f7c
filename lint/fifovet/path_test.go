package fifovet

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAccessPath(t *testing.T) {
	p := accessPath{"Order", "[id]"}
	for _, c := range []struct {
		name         string
		path, prefix accessPath
		rest         accessPath
		ok           bool
	}{
		{"nothing", p, nil, p, true},
		{"a field", p, accessPath{"Order"}, accessPath{"[id]"}, true},
		{"all", p, p, accessPath{}, true},
		{"another field", p, accessPath{"Account"}, nil, false},
		{"more than all", p, p.then("Name"), nil, false},
		{"any key for a key", p, accessPath{"Order", anyKey}, accessPath{}, true},
		{"a key for any key", accessPath{anyKey, "Name"}, accessPath{"[id]"}, accessPath{"Name"}, true},
		{"another key", p, accessPath{"Order", "[name]"}, nil, false},
		{"the keys are no value", accessPath{keysOfMap}, accessPath{anyKey}, nil, false},
		{"a field is no key", accessPath{"Order"}, accessPath{anyKey}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			rest, ok := c.path.cut(c.prefix)
			assert.Equal(t, c.ok, ok)
			if c.ok {
				assert.Equal(t, c.rest, rest)
			}
		})
	}
	name, ok := keyName(keyOf("id"))
	assert.True(t, ok)
	assert.Equal(t, "id", name)
	_, ok = keyName(anyKey)
	assert.False(t, ok)
	_, ok = keyName("Order")
	assert.False(t, ok)
}

// Paths are values: what is made of one leaves it as it was, and takes it apart again.
func TestAccessPathIsAValue(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	elements := []string{"A", "B", "[a]", "[b]"}
	random := func() accessPath {
		p := make(accessPath, r.IntN(4), 8) // room for an append in place
		for i := range p {
			p[i] = elements[r.IntN(len(elements))]
		}
		return p
	}
	for range 1000 {
		p, part := random(), random()
		before := slices.Clone(p)
		first, second := p.then(part...), p.then("X")
		_ = p.in("Y")
		assert.Equal(t, before, p)
		rest, ok := first.cut(p)
		assert.True(t, ok)
		assert.True(t, slices.Equal(part, rest))
		assert.Equal(t, "X", second[len(second)-1])
		assert.Equal(t, first.key() == p.key(), len(part) == 0)
	}
}
