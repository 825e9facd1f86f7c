package flow

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAccessPath(t *testing.T) {
	p := AccessPath{"Order", "[id]"}
	for _, c := range []struct {
		name         string
		path, prefix AccessPath
		rest         AccessPath
		ok           bool
	}{
		{"nothing", p, nil, p, true},
		{"a field", p, AccessPath{"Order"}, AccessPath{"[id]"}, true},
		{"all", p, p, AccessPath{}, true},
		{"another field", p, AccessPath{"Account"}, nil, false},
		{"more than all", p, p.Then("Name"), nil, false},
		{"any key for a key", p, AccessPath{"Order", anyKey}, AccessPath{}, true},
		{"a key for any key", AccessPath{anyKey, "Name"}, AccessPath{"[id]"}, AccessPath{"Name"}, true},
		{"another key", p, AccessPath{"Order", "[name]"}, nil, false},
		{"the keys are no value", AccessPath{keysOfMap}, AccessPath{anyKey}, nil, false},
		{"a field is no key", AccessPath{"Order"}, AccessPath{anyKey}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			rest, ok := c.path.Cut(c.prefix)
			assert.Equal(t, c.ok, ok)
			if c.ok {
				assert.Equal(t, c.rest, rest)
			}
		})
	}
	name, ok := KeyName(keyOf("id"))
	assert.True(t, ok)
	assert.Equal(t, "id", name)
	_, ok = KeyName(anyKey)
	assert.False(t, ok)
	_, ok = KeyName("Order")
	assert.False(t, ok)
}

// The methods Then and Cut never change their receiver. Cut reverses Then:
// p.Then(part...).Cut(p) returns part.
func TestAccessPathIsAValue(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	elements := []string{"A", "B", "[a]", "[b]"}
	random := func() AccessPath {
		// The spare capacity makes the test fail if the method Then appends in place.
		p := make(AccessPath, r.IntN(4), 8)
		for i := range p {
			p[i] = elements[r.IntN(len(elements))]
		}
		return p
	}
	for range 1000 {
		p, part := random(), random()
		before := slices.Clone(p)
		first, second := p.Then(part...), p.Then("X")
		_ = p.prepend("Y")
		assert.Equal(t, before, p)
		rest, ok := first.Cut(p)
		assert.True(t, ok)
		assert.True(t, slices.Equal(part, rest))
		assert.Equal(t, "X", second[len(second)-1])
		assert.Equal(t, first.key() == p.key(), len(part) == 0)
	}
}
