package httpidem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// answer is the part of a response that the store keeps.
type answer struct {
	status   int
	header   http.Header
	body     []byte
	length   int64 // length of the body that the handler wrote
	retained bool  // body is whole; false if it was too large to keep
}

// answerFormat is the version of the stored form: one line of JSON, then the body.
const answerFormat = 1

// maxHead is the limit of the JSON line of a stored answer, in bytes. If the headers of
// the answer make the line longer, neither headers nor body are retained.
const maxHead = 32 << 10

type answerHead struct {
	Format   int                 `json:"format"`
	Status   int                 `json:"status"`
	Header   map[string][][]byte `json:"header,omitempty"` // in base64, because header values need not be UTF-8
	Length   int64               `json:"length"`
	Retained bool                `json:"retained"`
}

// encode returns the stored form, of at most maxHead + len(a.body) bytes.
func (a answer) encode() ([]byte, error) {
	head := answerHead{Format: answerFormat, Status: a.status, Length: a.length, Retained: a.retained, Header: map[string][][]byte{}}
	for name, values := range a.header {
		raw := make([][]byte, len(values)) // may be empty, which stops net/http from setting a default
		for i, v := range values {
			raw[i] = []byte(v)
		}
		head.Header[name] = raw
	}
	line, err := json.Marshal(head)
	if err == nil && len(line) >= maxHead {
		head.Header, head.Retained = nil, false
		line, err = json.Marshal(head)
	}
	if err != nil {
		return nil, err
	}
	line = append(line, '\n')
	if head.Retained {
		line = append(line, a.body...)
	}
	return line, nil
}

// decodeAnswer is the inverse of encode. The body shares memory with b.
func decodeAnswer(b []byte) (answer, error) {
	line, body, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		return answer{}, errors.New("httpidem: the stored answer has no header line")
	}
	var head answerHead
	if err := json.Unmarshal(line, &head); err != nil {
		return answer{}, fmt.Errorf("httpidem: the header line of the stored answer: %w", err)
	}
	switch {
	case head.Format != answerFormat:
		return answer{}, fmt.Errorf("httpidem: the stored answer has format %d, want %d", head.Format, answerFormat)
	case head.Status < 200 || head.Status > 999:
		return answer{}, fmt.Errorf("httpidem: the stored answer has status %d", head.Status)
	case head.Retained && head.Length != int64(len(body)), !head.Retained && len(body) > 0, head.Length < 0:
		return answer{}, fmt.Errorf("httpidem: the stored answer has %d bytes of a body of %d (retained: %v)", len(body), head.Length, head.Retained)
	}
	a := answer{status: head.Status, header: http.Header{}, body: body, length: head.Length, retained: head.Retained}
	for name, values := range head.Header {
		text := make([]string, len(values))
		for i, v := range values {
			text[i] = string(v)
		}
		a.header[name] = text
	}
	return a, nil
}

// send writes the answer. Its headers replace those of w with the same name.
func (a answer) send(w http.ResponseWriter) {
	h := w.Header()
	for name, values := range a.header {
		h[name] = values
	}
	if bodyAllowed(a.status) {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	} else {
		h.Del("Content-Length")
	}
	w.WriteHeader(a.status)
	if len(a.body) > 0 {
		_, _ = w.Write(a.body) // ignore an error: a client that left can repeat the request
	}
}
