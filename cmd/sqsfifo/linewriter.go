package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// lineWriter writes JSON lines and other text. After an error it writes nothing, and flush
// returns the error. It is not safe for concurrent use.
type lineWriter struct {
	buffer  *bufio.Writer
	encoder *json.Encoder
	err     error
}

func newLineWriter(w io.Writer) *lineWriter {
	b := bufio.NewWriterSize(w, 64<<10)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return &lineWriter{buffer: b, encoder: e}
}

// write writes a JSON line.
func (w *lineWriter) write(object any) {
	if w.err == nil {
		w.err = w.encoder.Encode(object)
	}
}

// print writes `object` as a JSON line if asJSON is true, and otherwise the formatted text.
func (w *lineWriter) print(asJSON bool, object any, format string, args ...any) {
	switch {
	case asJSON:
		w.write(object)
	case w.err == nil:
		_, w.err = fmt.Fprintf(w.buffer, format, args...)
	}
}

// flush writes the buffered lines, and returns the first error of the writer.
func (w *lineWriter) flush() error {
	if w.err == nil {
		w.err = w.buffer.Flush()
	}
	return w.err
}

// printLine prints `object` as a JSON line if asJSON is true, and otherwise `text` as a
// line.
func printLine(w io.Writer, asJSON bool, object any, text string) error {
	out := newLineWriter(w)
	out.print(asJSON, object, "%s\n", text)
	return out.flush()
}
