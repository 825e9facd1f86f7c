package httpidem

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// parsedForm returns a hash of the request's form, or nil for an unparsed form. The
// fingerprint needs this hash if an outer handler has consumed the body by parsing the
// form, for example by r.PostFormValue.
func parsedForm(r *http.Request) ([]byte, error) {
	form := r.MultipartForm
	if form == nil {
		form = &multipart.Form{Value: r.PostForm}
	}
	if len(form.Value) == 0 && len(form.File) == 0 {
		return nil, nil
	}
	var parts [][]byte
	add := func(values ...string) {
		for _, v := range values {
			parts = append(parts, []byte(v))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(form.Value)) {
		add("value", name, fmt.Sprint(len(form.Value[name])))
		add(form.Value[name]...)
	}
	for _, name := range slices.Sorted(maps.Keys(form.File)) {
		for _, file := range form.File[name] {
			sum, err := contentOf(file)
			if err != nil {
				return nil, err
			}
			add("file", name, file.Filename, file.Header.Get("Content-Type"), string(sum))
		}
	}
	sum := idempotency.FingerprintOf(fingerprintSpec, parts...)
	return sum.Sum[:], nil
}

// contentOf returns the hash of a file of a form.
func contentOf(file *multipart.FileHeader) ([]byte, error) {
	f, err := file.Open()
	if err != nil {
		return nil, fmt.Errorf("httpidem: open a file of the form: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, fmt.Errorf("httpidem: read a file of the form: %w", err)
	}
	return h.Sum(nil), nil
}
