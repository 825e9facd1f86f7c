package flow

import (
	"go/types"
	"slices"
	"strings"
)

// SDKPath is the import path of package sqsfifo. The analyzer recognises the path and never
// imports it.
const SDKPath = "github.com/kansas-frontier-matrix/sqsfifo"

// purePackages have functions whose results depend only on their arguments.
var purePackages = []string{
	"bytes", "cmp", "encoding", "fmt", "hash", "html", "maps", "math", "math/big", "math/bits", "net/url", "path", "path/filepath", "slices",
	"sort", "strconv", "strings", "unicode", "unicode/utf8", "unicode/utf16", "text/template", "html/template", "errors", "regexp", "net/netip",
	"crypto/hmac", "crypto/md5", "crypto/sha1", "crypto/sha256", "crypto/sha512", "crypto/sha3", "hash/fnv", "hash/crc32", "hash/crc64", "hash/maphash",
	"encoding/json", "encoding/json/v2", "encoding/json/jsontext", "encoding/hex", "encoding/base64", "encoding/base32", "encoding/binary",
	"encoding/xml", "encoding/gob", "encoding/csv", "encoding/ascii85",
	"github.com/aws/aws-sdk-go-v2/aws", "github.com/aws/aws-sdk-go/aws", "github.com/aws/smithy-go/ptr",
	"google.golang.org/protobuf/proto", "google.golang.org/protobuf/encoding/protojson", "github.com/golang/protobuf/proto", "github.com/gogo/protobuf/proto",
	"github.com/golang/protobuf/jsonpb", "github.com/json-iterator/go", "github.com/goccy/go-json", "github.com/bytedance/sonic",
	"github.com/mitchellh/hashstructure", "github.com/cespare/xxhash", "github.com/cespare/xxhash/v2", "golang.org/x/crypto/blake2b",
	"github.com/samber/lo", "github.com/pkg/errors", "gopkg.in/yaml.v3", "gopkg.in/yaml.v2", "github.com/vmihailenco/msgpack/v5",
	SDKPath, SDKPath + "/canonicaljson",
}

// stringers are names of methods that return the receiver in another form, such as text
// or bytes. They count as pure for every type.
var stringers = []string{
	"String", "GoString", "Bytes", "Hex", "MarshalText", "MarshalBinary", "MarshalJSON", "AppendText", "AppendBinary", "Sum", "Sum32", "Sum64", "URN",
}

// IsPure reports whether the result of a function depends only on its arguments and its
// receiver. It returns true even for time.Now and some other clocks and random sources.
// Where these matter, callers check SourceOf first.
func IsPure(obj *types.Func) bool {
	path, name := pathOf(obj), obj.Name()
	if path == "" || path == "time" || obj.Signature().Recv() != nil && slices.Contains(stringers, name) {
		return true
	}
	if slices.Contains(purePackages, path) {
		return !strings.HasPrefix(name, "Unmarshal") && !strings.HasPrefix(name, "Decode") && !strings.HasPrefix(name, "Scan") &&
			!strings.HasPrefix(name, "Sscan") && !strings.HasPrefix(name, "Fscan") && !strings.HasPrefix(name, "Read") && name != "Getenv"
	}
	if idPackage.MatchString(strings.ToLower(majorVersion.ReplaceAllString(path, ""))) {
		// The package makes IDs. Its functions such as Parse are pure. For functions such
		// as New, callers check SourceOf first.
		return true
	}
	return IsPointerHelper(obj)
}

// IsPointerHelper reports whether a function only converts T to *T or *T to T, like
// aws.String and aws.ToString. Many programs define their own helpers, so IsPointerHelper
// judges by the types of the parameter and the result. The name of the function must match
// too, unless the function is generic.
func IsPointerHelper(obj *types.Func) bool {
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

// IsIdentity reports whether a function only returns its argument or receiver in another
// form: a copy, a pointer or a text. A trace then treats the result and the argument as
// the same value, field by field.
func IsIdentity(obj *types.Func) bool {
	if IsPointerHelper(obj) {
		return true
	}
	switch Qualified(obj) {
	case "strings.Clone", "strings.TrimSpace", "bytes.Clone", "maps.Clone", "github.com/google/uuid.Must", "github.com/gofrs/uuid.Must", "github.com/satori/go.uuid.Must":
		return true
	}
	sig := obj.Signature()
	return sig.Recv() != nil && obj.Name() == "String" && sig.Params().Len() == 0
}

// joinsText reports whether a function returns a text that contains its arguments.
func joinsText(name string) bool {
	return slices.Contains([]string{"fmt.Sprint", "fmt.Sprintf", "strings.Join", "path.Join", "net/url.JoinPath"}, name)
}

// IsReader reports whether a function leaves its arguments unchanged, judged by its
// package, such as log. The function need not be pure (see IsPure).
func IsReader(obj *types.Func) bool {
	switch path := pathOf(obj); path {
	case "", "log", "log/slog", "context", "os", "sync", "sync/atomic":
		return true
	default:
		return strings.HasPrefix(path, "go.uber.org/zap") || strings.HasPrefix(path, "github.com/sirupsen/logrus") ||
			strings.HasPrefix(path, "github.com/rs/zerolog")
	}
}

// isWriter reports whether a function writes its other arguments to its first argument,
// like fmt.Fprint, or is a method that writes its arguments to the receiver, like Write.
// It knows some functions of the standard library, and recognizes methods by their names.
func isWriter(obj *types.Func) bool {
	name := obj.Name()
	if obj.Signature().Recv() != nil {
		return strings.HasPrefix(name, "Write") || name == "Encode" || name == "ReadFrom"
	}
	switch Qualified(obj) {
	case "io.WriteString", "io.Copy", "io.CopyN", "encoding/binary.Write", "encoding/json.MarshalWrite", "encoding/json/v2.MarshalWrite",
		"encoding/json.Indent", "encoding/json.Compact":
		return true
	}
	return pathOf(obj) == "fmt" && strings.HasPrefix(name, "Fprint")
}

// setsReceiver reports whether obj is a method of math/big that stores its result in the
// receiver, as z.Mul(x, y) does. Such a method also returns the receiver.
func setsReceiver(obj *types.Func) bool {
	sig := obj.Signature()
	return sig.Recv() != nil && pathOf(obj) == "math/big" && sig.Results().Len() > 0 &&
		types.Identical(sig.Results().At(0).Type(), sig.Recv().Type())
}

// wrapsWriter reports whether a function returns a writer that writes everything to
// another writer, one of the function's arguments.
func wrapsWriter(obj *types.Func) bool {
	return obj.Signature().Recv() == nil && slices.Contains([]string{"NewEncoder", "NewWriter", "NewWriterSize", "NewWriterLevel", "MultiWriter"}, obj.Name())
}
