package flow

import (
	"go/types"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Encoded searches backwards from a JSON text, such as the result of json.Marshal(arg).
// The search continues at arg, but ignores fields missing in the text: unexported fields,
// and fields with the tag json:"-".
func (t *Tracer) Encoded(arg ssa.Value, l Place) {
	whole := l
	whole.Path, whole.Under, whole.Mixed = nil, nil, false
	n, visited := len(t.Origins), len(t.InOrder)
	t.Value(arg, whole)
	as := EncodedType(arg)
	made := t.Origins[n:]
	t.Origins = t.Origins[:n:n]
	t.followMarshal(as, l, 0)
	for _, v := range slices.Clone(t.InOrder[visited:]) {
		if mk, ok := v.(*ssa.MakeInterface); ok && !types.Identical(mk.X.Type(), as) {
			t.followMarshal(mk.X.Type(), l, 0)
		}
	}
	for _, o := range made {
		if !JSONVisible(as, o.Under) {
			continue
		}
		if o.Encoded == nil {
			o.Encoded, o.Part = as, o.Under
		}
		o.Under, o.Mixed, o.Joined = l.Under, true, false
		t.Origins = append(t.Origins, o)
	}
}

// EncodedType returns the type of an argument before its conversion to an interface. For
// json.Marshal(order), this is the type of order, not any.
func EncodedType(v ssa.Value) types.Type {
	if mk, ok := v.(*ssa.MakeInterface); ok {
		return mk.X.Type()
	}
	return v.Type()
}

// jsonPackages have encoders that use the struct tags of encoding/json.
var jsonPackages = []string{
	"encoding/json", "encoding/json/v2", "github.com/json-iterator/go", "github.com/goccy/go-json", "github.com/bytedance/sonic",
	SDKPath + "/canonicaljson",
}

// encodesJSON reports whether a function or method writes its arguments as JSON.
func encodesJSON(obj *types.Func) bool {
	return slices.Contains(jsonPackages, pathOf(obj)) &&
		(strings.HasPrefix(obj.Name(), "Marshal") || strings.HasPrefix(obj.Name(), "Encode") || obj.Name() == "AppendValue")
}

// TypeAt returns the type at a path of fields within a value. It returns nil if an
// element of the path is not the name of a field.
func TypeAt(t types.Type, path AccessPath) types.Type {
	for _, name := range path {
		f, _ := FieldOf(t, name)
		if f == nil {
			return nil
		}
		t = f.Type()
	}
	return t
}

func FieldOf(t types.Type, name string) (field *types.Var, tag string) {
	s := StructOf(t)
	if s == nil {
		return nil, ""
	}
	for i := range s.NumFields() {
		if s.Field(i).Name() == name {
			return s.Field(i), s.Tag(i)
		}
	}
	return nil, ""
}

// JSONVisible reports whether the JSON form of a value of type t contains the part at
// path. A type with a marshal method may write any of its parts, so all of them count as
// visible.
func JSONVisible(t types.Type, path AccessPath) bool {
	for _, name := range path {
		if t == nil || hasMarshal(t) {
			return true
		}
		if strings.HasPrefix(name, "[") {
			m, ok := t.Underlying().(*types.Map)
			if !ok {
				return true
			}
			t = m.Elem()
			continue
		}
		f, tag := FieldOf(Element(t), name)
		if f == nil {
			return true
		}
		if hasMarshal(Element(t)) {
			return true
		}
		if !f.Exported() && !f.Embedded() || reflect.StructTag(tag).Get("json") == "-" {
			return false
		}
		t = f.Type()
	}
	return true
}

// Element returns the element type of a pointer, slice or array. For nested types such as
// []*T it returns T.
func Element(t types.Type) types.Type {
	for range maxTypeDepth {
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			t = u.Elem()
		case *types.Slice:
			t = u.Elem()
		case *types.Array:
			t = u.Elem()
		default:
			return t
		}
	}
	return t
}

func hasMarshal(t types.Type) bool {
	if _, ok := t.Underlying().(*types.Pointer); !ok {
		t = types.NewPointer(t)
	}
	return hasMethod(t, "MarshalJSON", "MarshalText", "AppendJSON", "MarshalJSONTo")
}

func hasMethod(t types.Type, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name)
		_, ok := obj.(*types.Func)
		return ok
	})
}
