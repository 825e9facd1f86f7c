package flow

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// generators lists functions that make identifiers, under names that the patterns in
// names.go do not match.
var generators = []string{
	"github.com/bwmarrin/snowflake.Node.Generate",
	"github.com/sony/sonyflake.Sonyflake.NextID",
	"github.com/sony/sonyflake/v2.Sonyflake.NextID",
	"go.mongodb.org/mongo-driver/bson/primitive.NewObjectID",
	"go.mongodb.org/mongo-driver/v2/bson.NewObjectID",
	"gopkg.in/mgo.v2/bson.NewObjectId",
	"github.com/globalsign/mgo/bson.NewObjectId",
	"k8s.io/apimachinery/pkg/util/rand.String",
	"github.com/samber/lo.RandomString",
	"github.com/thanhpk/randstr.String",
	"github.com/thanhpk/randstr.Hex",
}

// Sources lists additional sources (see SourceOf) as import/path.Func or
// import/path.Type.Method.
type Sources []string

// SourceOf reports whether a function is a source: a clock, a random source, a counter, a
// generator of identifiers, or a function with a different result in each process, such
// as os.Getpid.
func (s Sources) SourceOf(obj *types.Func) bool {
	if obj.Pkg() == nil {
		return false
	}
	name := obj.Name()
	sig := obj.Signature()
	switch path := obj.Pkg().Path(); path {
	case "time":
		return sig.Recv() == nil && (name == "Now" || name == "Since" || name == "Until")
	case "math/rand", "math/rand/v2":
		return !strings.HasPrefix(name, "New") && name != "Seed" && sig.Results().Len() > 0
	case "crypto/rand":
		return name != "Read"
	case "os":
		return slices.Contains(processSources, Qualified(obj))
	case "context":
		return name == "Deadline"
	case "sync/atomic":
		return isCounter(obj)
	case "hash/maphash": // the seeds of maphash are random
		return name == "MakeSeed" || name == "String" || name == "Bytes" || name == "Comparable" || strings.HasPrefix(name, "Sum")
	case SDKPath:
		return false
	default:
		if s.named(obj) || slices.Contains(generators, Qualified(obj)) {
			return true
		}
		if isClock(obj) {
			return true
		}
		return GuessedID(obj)
	}
}

// GuessedID reports whether a function makes identifiers, judged by the names of the
// function and its package.
func GuessedID(obj *types.Func) bool {
	return obj.Pkg() != nil && idPackage.MatchString(strings.ToLower(majorVersion.ReplaceAllString(obj.Pkg().Path(), ""))) && mintsID(obj)
}

// isSource is like SourceOf, but returns false for a function of another package with the
// fact Derived: its name suggests an ID generator, but it derives the ID from its arguments.
// The fact comes from the analysis of the function's package. For a function listed in the
// flag -nondet, isSource returns true even if there is such a fact.
func (p *Program) isSource(obj *types.Func) bool {
	if !p.sources.SourceOf(obj) {
		return false
	}
	return p.sources.named(obj) || !p.fact(obj).Derived
}

// named reports whether the flag -nondet lists the function.
func (s Sources) named(obj *types.Func) bool {
	return slices.Contains(s, Qualified(obj))
}

// picksFew reports whether a call of a random source returns one of a few possible
// numbers, such as rand.IntN(16).
func picksFew(obj *types.Func, c *ssa.CallCommon) bool {
	if path := obj.Pkg().Path(); path != "math/rand" && path != "math/rand/v2" || len(c.Args) == 0 {
		return false
	}
	n, ok := constInt(c.Args[len(c.Args)-1])
	return ok && n <= maxChoices && strings.HasSuffix(strings.ToUpper(obj.Name()), "N")
}

// isClock reports whether a function or method has the form of a clock: the name Now, no
// parameters, and a time.Time as its result.
func isClock(obj *types.Func) bool {
	sig := obj.Signature()
	return obj.Name() == "Now" && sig.Params().Len() == 0 && sig.Results().Len() == 1 && isTime(sig.Results().At(0).Type())
}

// mintsID reports whether a function makes a fresh identifier, and does not parse an
// identifier or derive one from its arguments.
func mintsID(obj *types.Func) bool {
	name := obj.Name()
	verb := slices.ContainsFunc([]string{"New", "MustNew", "Make", "Generate", "MustGenerate", "Must", "Random"}, func(v string) bool {
		return strings.HasPrefix(name, v)
	})
	if !verb && name != "ID" && name != "String" || obj.Signature().Recv() != nil && !verb {
		return false
	}
	if r := obj.Signature().Results(); r.Len() == 0 || !identifies(r.At(0).Type()) {
		return false
	}
	alphabet := strings.Contains(obj.Pkg().Path(), "nanoid")
	// A function with a text or record as argument, like uuid.NewSHA1, derives the
	// identifier from this argument.
	return !Any(obj.Signature().Params().Variables(), func(v *types.Var) bool { return isText(v.Type()) && !alphabet || isRecord(v.Type()) })
}

// identifies reports whether a value of type t can be an identifier. Strings, integers,
// arrays and slices can. A struct can if the name of its type contains "id".
func identifies(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Info()&(types.IsString|types.IsInteger) != 0
	case *types.Array, *types.Slice:
		return true
	case *types.Pointer:
		return identifies(u.Elem())
	case *types.Struct:
		return strings.Contains(strings.ToLower(TypeName(t)), "id")
	}
	return false
}

// isText reports whether a type is a string, a byte slice, or an array such as uuid.UUID.
func isText(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Info()&types.IsString != 0
	case *types.Slice:
		b, ok := u.Elem().Underlying().(*types.Basic)
		return ok && b.Kind() == types.Byte
	case *types.Array:
		return true
	}
	return false
}

// isRecord reports whether a type is a struct that describes a thing, such as an order.
// The struct must have an exported text field. A struct for settings, with a name such as
// Options or Config, is not a record.
func isRecord(t types.Type) bool {
	s := StructOf(t)
	if s == nil || SettingsName.MatchString(TypeName(t)) {
		return false
	}
	return Any(s.Fields(), func(f *types.Var) bool { return f.Exported() && isText(f.Type()) })
}

func isString(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

func isTime(t types.Type) bool {
	return TypeName(t) == "Time" && PackagePath(t) == "time"
}

// isRandomFill reports whether a call fills its buffer from a random source.
func isRandomFill(obj *types.Func, c *ssa.CallCommon) bool {
	switch q := Qualified(obj); q {
	case "crypto/rand.Read", "math/rand.Read", "math/rand.Rand.Read":
		return true
	case "io.ReadFull", "io.ReadAtLeast":
		load, ok := c.Args[0].(*ssa.UnOp)
		if !ok {
			return false
		}
		g, ok := load.X.(*ssa.Global)
		return ok && g.Pkg.Pkg.Path() == "crypto/rand" && g.Name() == "Reader"
	}
	return false
}
