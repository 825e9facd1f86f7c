package fifovet

import (
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// idPackage matches packages that make identifiers, whoever wrote them; a major
// version at the end of the path is cut off before.
var idPackage = regexp.MustCompile(`(^|[^a-z])(short)?(uuid|guid|ulid|ksuid|xid|nanoid|cuid2?|shortid|uniuri)$`)

var majorVersion = regexp.MustCompile(`(/v[0-9]+|\.v[0-9]+)$`)

// generators are sources outside the packages that idPackage and sourceOf know.
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

// sourceOf reports whether a function returns another value at each call: a
// clock, a random source, a generator of identifiers.
func (s *settings) sourceOf(obj *types.Func) bool {
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
	case sdkPath:
		return false
	default:
		if s.named(obj) || slices.Contains(generators, qualified(obj)) {
			return true
		}
		if isClock(obj) {
			return true
		}
		return idPackage.MatchString(strings.ToLower(majorVersion.ReplaceAllString(path, ""))) && mintsID(obj)
	}
}

// named reports whether -nondet lists a function.
func (s *settings) named(obj *types.Func) bool {
	return slices.Contains(s.nondet, qualified(obj))
}

// isClock reports whether a method is the Now of a clock that is passed around
// as an interface or a struct.
func isClock(obj *types.Func) bool {
	sig := obj.Signature()
	return obj.Name() == "Now" && sig.Params().Len() == 0 && sig.Results().Len() == 1 && isTime(sig.Results().At(0).Type())
}

// mintsID tells the constructors of fresh identifiers from those that parse one
// or derive one from their arguments.
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
	for v := range obj.Signature().Params().Variables() {
		if isText(v.Type()) && !alphabet || isRecord(v.Type()) {
			return false // derived from a name, like NewSHA1 and NewV5
		}
	}
	return true
}

// identifies reports whether a value of the type can be an identifier itself,
// rather than a generator of them.
func identifies(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Info()&(types.IsString|types.IsInteger) != 0
	case *types.Array, *types.Slice:
		return true
	case *types.Pointer:
		return identifies(u.Elem())
	case *types.Struct:
		return strings.Contains(strings.ToLower(typeName(t)), "id")
	}
	return false
}

// isText reports whether a type is a string, bytes, or an identifier made of
// bytes.
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

var settingsName = regexp.MustCompile(`(?i)opt|config|setting`)

// isRecord reports whether a type is a struct with texts, such as an order, and no
// options.
func isRecord(t types.Type) bool {
	s := structOf(t)
	if s == nil || settingsName.MatchString(typeName(t)) {
		return false
	}
	for f := range s.Fields() {
		if f.Exported() && isText(f.Type()) {
			return true
		}
	}
	return false
}

func isTime(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == "Time" && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "time"
}

// isRandomFill reports whether a call fills its buffer from a random source.
func isRandomFill(obj *types.Func, c *ssa.CallCommon) bool {
	switch q := qualified(obj); q {
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

// purePackages hold functions whose results depend on their arguments alone.
var purePackages = []string{
	"bytes", "cmp", "encoding", "fmt", "hash", "html", "maps", "math", "math/big", "math/bits", "net/url", "path", "path/filepath", "slices",
	"sort", "strconv", "strings", "unicode", "unicode/utf8", "unicode/utf16", "text/template", "errors", "regexp", "net/netip",
	"crypto/hmac", "crypto/md5", "crypto/sha1", "crypto/sha256", "crypto/sha512", "crypto/sha3", "hash/fnv", "hash/crc32", "hash/crc64", "hash/maphash",
	"encoding/json", "encoding/json/v2", "encoding/json/jsontext", "encoding/hex", "encoding/base64", "encoding/base32", "encoding/binary",
	"encoding/xml", "encoding/gob", "encoding/csv", "encoding/ascii85",
	"github.com/aws/aws-sdk-go-v2/aws", "github.com/aws/aws-sdk-go/aws", "github.com/aws/smithy-go/ptr",
	"google.golang.org/protobuf/proto", "google.golang.org/protobuf/encoding/protojson", "github.com/golang/protobuf/proto", "github.com/gogo/protobuf/proto",
	"github.com/golang/protobuf/jsonpb", "github.com/json-iterator/go", "github.com/goccy/go-json", "github.com/bytedance/sonic",
	"github.com/mitchellh/hashstructure", "github.com/cespare/xxhash", "github.com/cespare/xxhash/v2", "golang.org/x/crypto/blake2b",
	"github.com/samber/lo", "github.com/pkg/errors", "gopkg.in/yaml.v3", "gopkg.in/yaml.v2", "github.com/vmihailenco/msgpack/v5",
	sdkPath, sdkPath + "/canonicaljson",
}

// stringers are methods that say what their receiver is, on any type.
var stringers = []string{
	"String", "GoString", "Bytes", "Hex", "MarshalText", "MarshalBinary", "MarshalJSON", "AppendText", "AppendBinary", "Sum", "Sum32", "Sum64", "URN",
}

// isPure reports whether the result of a call is made from its arguments and
// its receiver.
func isPure(obj *types.Func) bool {
	if obj.Pkg() == nil {
		return obj.Name() == "Error" // of the universe's error
	}
	path, name := obj.Pkg().Path(), obj.Name()
	if path == "time" {
		return true // the clock itself is taken for a source before
	}
	if obj.Signature().Recv() != nil && slices.Contains(stringers, name) {
		return true
	}
	if slices.Contains(purePackages, path) {
		return !strings.HasPrefix(name, "Unmarshal") && !strings.HasPrefix(name, "Decode") && !strings.HasPrefix(name, "Scan") &&
			!strings.HasPrefix(name, "Sscan") && !strings.HasPrefix(name, "Fscan") && !strings.HasPrefix(name, "Read") && name != "Getenv"
	}
	if idPackage.MatchString(strings.ToLower(majorVersion.ReplaceAllString(path, ""))) {
		return true // what is no source there parses, prints or derives
	}
	return isPointerHelper(obj)
}

// pointerHelperName is what such functions are called: Ptr, StringPtr, ToString,
// Of, P. A function of the form that is called Lookup looks something up.
var pointerHelperName = regexp.MustCompile(`(?i)ptr|pointer|ref|string|^str$|val|bool|int|float|time|^(to|of|p|s|v|addr|new|from)$`)

// isPointerHelper reports whether a function has the form of aws.String or
// aws.ToString, T to *T or *T to T, and such a name. Every code base has its own.
func isPointerHelper(obj *types.Func) bool {
	sig := obj.Signature()
	if sig.Recv() != nil || sig.Params().Len() != 1 || sig.Results().Len() != 1 || sig.Variadic() {
		return false
	}
	if sig.TypeParams() == nil && obj.Origin().Signature().TypeParams() == nil && !pointerHelperName.MatchString(obj.Name()) {
		return false
	}
	in, out := sig.Params().At(0).Type(), sig.Results().At(0).Type()
	if ptr, ok := types.Unalias(out).(*types.Pointer); ok && types.Identical(ptr.Elem(), in) {
		return true
	}
	ptr, ok := types.Unalias(in).(*types.Pointer)
	return ok && types.Identical(ptr.Elem(), out)
}

// isIdentity reports whether a pure function only repackages its argument, so
// that fields and whole values keep their meaning.
func isIdentity(obj *types.Func) bool {
	if isPointerHelper(obj) {
		return true
	}
	switch qualified(obj) {
	case "strings.Clone", "strings.TrimSpace", "bytes.Clone", "github.com/google/uuid.Must", "github.com/gofrs/uuid.Must", "github.com/satori/go.uuid.Must":
		return true
	}
	sig := obj.Signature()
	return sig.Recv() != nil && obj.Name() == "String" && sig.Params().Len() == 0
}

// isReader reports whether a function of a package that is not pure leaves its
// arguments as they are: logs, traces, assertions.
func isReader(obj *types.Func) bool {
	if obj.Pkg() == nil {
		return true
	}
	switch path := obj.Pkg().Path(); path {
	case "log", "log/slog", "context", "os", "sync", "sync/atomic":
		return true
	default:
		return strings.HasPrefix(path, "go.uber.org/zap") || strings.HasPrefix(path, "github.com/sirupsen/logrus") ||
			strings.HasPrefix(path, "github.com/rs/zerolog")
	}
}

// isWriter reports whether a function or method adds its arguments to the first
// of them: the writers of the standard library and whatever is called alike.
func isWriter(obj *types.Func) bool {
	name := obj.Name()
	if obj.Signature().Recv() != nil {
		return strings.HasPrefix(name, "Write") || name == "Encode" || name == "ReadFrom"
	}
	switch qualified(obj) {
	case "io.WriteString", "io.Copy", "io.CopyN", "encoding/binary.Write", "encoding/json.MarshalWrite", "encoding/json/v2.MarshalWrite",
		"encoding/json.Indent", "encoding/json.Compact":
		return true
	}
	return obj.Pkg() != nil && obj.Pkg().Path() == "fmt" && strings.HasPrefix(name, "Fprint")
}

// wrapsWriter reports whether what is written to a function's result goes to
// the writer among its arguments.
func wrapsWriter(obj *types.Func) bool {
	if obj.Signature().Recv() != nil {
		return false
	}
	switch name := obj.Name(); name {
	case "NewEncoder", "NewWriter", "NewWriterSize", "NewWriterLevel", "MultiWriter":
		return true
	}
	return false
}

// sendNames are the calls that hand a message to the network, of the clients
// and of the interfaces that stand in for them.
var sendNames = []string{
	"SendMessage", "SendMessageWithContext", "SendMessageRequest", "SendMessageBatch", "SendMessageBatchWithContext", "SendMessageBatchRequest",
	"Publish", "PublishWithContext", "PublishRequest", "PublishBatch", "PublishBatchWithContext",
}

func isSend(obj *types.Func) bool {
	if !slices.Contains(sendNames, obj.Name()) {
		return false
	}
	for v := range obj.Signature().Params().Variables() {
		if shapeOf(v.Type()) != nil {
			return true
		}
	}
	return false
}
