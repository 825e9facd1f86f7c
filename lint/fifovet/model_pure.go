package fifovet

import (
	"go/types"
	"slices"
	"strings"
)

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
		return true // what is not a source there parses, prints or derives
	}
	return isPointerHelper(obj)
}

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
	case "strings.Clone", "strings.TrimSpace", "bytes.Clone", "maps.Clone", "github.com/google/uuid.Must", "github.com/gofrs/uuid.Must", "github.com/satori/go.uuid.Must":
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

// computes reports whether a method makes its receiver from its arguments, such as
// SetBytes and Mul of big.Int. It returns the receiver.
func computes(obj *types.Func) bool {
	sig := obj.Signature()
	return sig.Recv() != nil && obj.Pkg() != nil && obj.Pkg().Path() == "math/big" && sig.Results().Len() > 0 &&
		types.Identical(sig.Results().At(0).Type(), sig.Recv().Type())
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
