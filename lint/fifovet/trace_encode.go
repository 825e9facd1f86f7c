package fifovet

import (
	"go/types"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// encoded follows a value into an encoder of JSON. What the encoder leaves out,
// json:"-" and fields that are not exported, is not part of the text.
func (t *tracer) encoded(arg ssa.Value, l place) {
	whole := l
	whole.path, whole.under, whole.mixed = nil, nil, false
	n := len(t.origins)
	t.value(arg, whole)
	made := t.origins[n:]
	t.origins = t.origins[:n:n]
	as := encodedType(arg)
	for _, o := range made {
		if !jsonVisible(as, o.under) {
			continue
		}
		if o.encoded == nil {
			o.encoded, o.part = as, o.under
		}
		o.under, o.mixed = l.under, true
		t.origins = append(t.origins, o)
	}
}

// encodedType is the type of a value before it was put into an interface.
func encodedType(v ssa.Value) types.Type {
	if mk, ok := v.(*ssa.MakeInterface); ok {
		return mk.X.Type()
	}
	return v.Type()
}

// jsonPackages hold encoders that know the struct tags of encoding/json.
var jsonPackages = []string{
	"encoding/json", "encoding/json/v2", "github.com/json-iterator/go", "github.com/goccy/go-json", "github.com/bytedance/sonic",
	sdkPath + "/canonicaljson",
}

// encodesJSON reports whether a function or method writes its arguments as JSON.
func encodesJSON(obj *types.Func) bool {
	return obj.Pkg() != nil && slices.Contains(jsonPackages, obj.Pkg().Path()) &&
		(strings.HasPrefix(obj.Name(), "Marshal") || strings.HasPrefix(obj.Name(), "Encode") || obj.Name() == "AppendValue")
}

// written reports whether the part of a use's value that an origin is in is
// written where the value is encoded later.
func (u *use) written(o origin) bool {
	if !u.encoded {
		return true
	}
	return jsonVisible(typeAt(encodedType(u.value), u.path), o.under)
}

// typeAt is the type of the part of a value that is at a path, nil if the path is
// not one of fields.
func typeAt(t types.Type, path accessPath) types.Type {
	for _, name := range path {
		f, _ := fieldOf(t, name)
		if f == nil {
			return nil
		}
		t = f.Type()
	}
	return t
}

func fieldOf(t types.Type, name string) (field *types.Var, tag string) {
	s := structOf(t)
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

// jsonVisible reports whether a part of an encoded value is in the output. A
// type with a method of its own for it decides for itself.
func jsonVisible(t types.Type, path accessPath) bool {
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
		f, tag := fieldOf(element(t), name)
		if f == nil {
			return true
		}
		if hasMarshal(element(t)) {
			return true
		}
		if !f.Exported() && !f.Embedded() || reflect.StructTag(tag).Get("json") == "-" {
			return false
		}
		t = f.Type()
	}
	return true
}

// element looks through pointers, slices and arrays.
func element(t types.Type) types.Type {
	for range maxElements {
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
	for _, name := range []string{"MarshalJSON", "MarshalText", "AppendJSON", "MarshalJSONTo"} {
		if obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name); obj != nil {
			if _, ok := obj.(*types.Func); ok {
				return true
			}
		}
	}
	return false
}
