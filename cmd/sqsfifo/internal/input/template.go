package input

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Template makes a text from an event: literal text with JSON pointers in braces, as in
// landsat|{/collection}|{/id}. A text that begins with "/" is one pointer. "{{" and "}}"
// stand for braces.
type Template struct {
	pieces []piece
}

// piece is a part of a template: a literal text or, if pointer is true, a JSON pointer.
type piece struct {
	text    string
	pointer bool
}

// ParseTemplate parses a template. The error has the position of the invalid byte.
func ParseTemplate(text string) (Template, error) {
	var t Template
	if text == "" {
		return t, errors.New("empty; write a text, a JSON pointer such as /id, or both as in export|{/id}")
	}
	if text[0] == '/' {
		return Template{[]piece{{text, true}}}, nil
	}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t.pieces = append(t.pieces, piece{text: literal.String()})
			literal.Reset()
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case (c == '{' || c == '}') && i+1 < len(text) && text[i+1] == c:
			literal.WriteByte(c)
			i++
		case c == '}':
			return t, fmt.Errorf(`byte %d: "}" without "{"; write "}}" for a brace`, i)
		case c == '{':
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return t, fmt.Errorf(`byte %d: "{" without "}"; write "{{" for a brace`, i)
			}
			pointer := text[i+1 : i+end]
			if pointer != "" && pointer[0] != '/' {
				return t, fmt.Errorf("byte %d: %q is not a JSON pointer; write {/%s}", i+1, pointer, pointer)
			}
			flush()
			t.pieces = append(t.pieces, piece{pointer, true})
			i += end
		default:
			literal.WriteByte(c)
		}
	}
	flush()
	return t, nil
}

// literal returns the template's text, or false if the template has a JSON pointer.
func (t Template) literal() (string, bool) {
	if len(t.pieces) == 1 && !t.pieces[0].pointer {
		return t.pieces[0].text, true
	}
	return "", len(t.pieces) == 0
}

// text returns the template's text with each pointer replaced by the event's value.
func (t Template) text(event any) (string, error) {
	var b strings.Builder
	for _, p := range t.pieces {
		if !p.pointer {
			b.WriteString(p.text)
			continue
		}
		v, err := scalar(event, p.text)
		if err != nil {
			return "", err
		}
		b.WriteString(v)
	}
	return b.String(), nil
}

// parts divides the template of a dedupe key at each "|" of its literal text. A part with
// two JSON pointers, such as {/a}{/b}, is an error: the values 1 and 23 would give the same
// key as 12 and 3.
func (t Template) parts() ([]Template, error) {
	parts := []Template{{}}
	for _, p := range t.pieces {
		texts := []string{p.text}
		if !p.pointer {
			texts = strings.Split(p.text, "|")
		}
		for i, text := range texts {
			if i > 0 {
				parts = append(parts, Template{})
			}
			last := &parts[len(parts)-1]
			if text != "" || p.pointer {
				last.pieces = append(last.pieces, piece{text, p.pointer})
			}
		}
	}
	for i, part := range parts {
		var pointers []string
		for _, p := range part.pieces {
			if p.pointer {
				pointers = append(pointers, "{"+p.text+"}")
			}
		}
		if len(part.pieces) == 0 {
			return nil, fmt.Errorf(`part %d is empty; write a text or a pointer between two "|"`, i+1)
		}
		if len(pointers) > 1 {
			return nil, fmt.Errorf(`%s stand in one part, so that different values may give one key; put a "|" between them`, strings.Join(pointers, " and "))
		}
	}
	return parts, nil
}

// Key is a template of a dedupe key, divided into the parts for sqsfifo.JoinKey. The zero
// Key is none.
type Key struct{ parts []Template }

// ParseKey parses the template of a dedupe key.
func ParseKey(text string) (Key, error) {
	t, err := ParseTemplate(text)
	if err != nil {
		return Key{}, err
	}
	parts, err := t.parts()
	return Key{parts}, err
}

// Of returns the dedupe key of a message body, or an error if the body is not JSON or lacks
// a value of the key.
func (k Key) Of(body string) (string, error) {
	var event any
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&event); err != nil {
		return "", err
	}
	return k.of(event)
}

func (k Key) of(event any) (string, error) {
	parts := make([]string, len(k.parts))
	for i, part := range k.parts {
		var err error
		if parts[i], err = part.text(event); err != nil {
			return "", err
		}
	}
	key, err := sqsfifo.JoinKey(parts...)
	var wrong *sqsfifo.InvalidError
	if errors.As(err, &wrong) {
		err = fmt.Errorf("%s: %s", wrong.Field, wrong.Rule)
	}
	return key, err
}

// scalar returns the string, number or boolean at a JSON pointer, as text. Any other value
// is an error.
func scalar(event any, pointer string) (string, error) {
	v, err := lookUp(event, pointer)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		return strconv.FormatBool(v), nil
	case nil:
		return "", fmt.Errorf("%s is null; an event without it cannot be told from others", pointer)
	default:
		return "", fmt.Errorf("%s is %s; name a string, a number or a boolean in it", orWhole(pointer), kindOf(v))
	}
}

func kindOf(v any) string {
	if _, ok := v.([]any); ok {
		return "an array"
	}
	return "an object"
}

func orWhole(pointer string) string {
	if pointer == "" {
		return "the whole event"
	}
	return pointer
}

// lookUp returns the value at an RFC 6901 pointer.
func lookUp(event any, pointer string) (any, error) {
	if pointer == "" {
		return event, nil
	}
	v, seen := event, ""
	for token := range strings.SplitSeq(pointer[1:], "/") {
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		found := false
		switch holder := v.(type) {
		case map[string]any:
			v, found = holder[name]
		case []any:
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(holder) && name == strconv.Itoa(i) {
				v, found = holder[i], true
			}
		default:
		}
		if !found {
			return nil, fmt.Errorf("%s is missing: there is no %q in %s", pointer, name, orWhole(seen))
		}
		seen += "/" + token
	}
	return v, nil
}
