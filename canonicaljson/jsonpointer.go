package canonicaljson

import "strconv"

// pointerAt returns the JSON pointer (RFC 6901) of the innermost value at or around
// src[at]. If isName is true, a duplicate name begins there, and pointerAt returns the
// pointer of its member. The text before src[at] must have no fault.
func pointerAt(src []byte, at int, isName bool) string {
	type level struct {
		object bool
		index  int // index of the current element of an array
		name   int // offset of the name of the object's current member; 0 before the colon
	}
	var (
		levels     []level
		lastString int // offset of the last string before i
	)
	for i := 0; i < at && i < len(src); i++ {
		switch src[i] {
		case '{':
			levels = append(levels, level{object: true})
		case '[':
			levels = append(levels, level{})
		case '}', ']':
			levels = levels[:len(levels)-1]
		case ',':
			if top := &levels[len(levels)-1]; top.object {
				top.name = 0
			} else {
				top.index++
			}
		case ':':
			levels[len(levels)-1].name = lastString
		case '"':
			lastString = i
			i += len(quoted(src[i:])) + 1
		}
	}
	if isName {
		levels[len(levels)-1].name = at
	}
	var text, token []byte
	for _, l := range levels {
		switch {
		case !l.object:
			text = append(text, '/')
			text = strconv.AppendInt(text, int64(l.index), 10)
		case l.name != 0:
			text = append(text, '/')
			token = unescape(token[:0], quoted(src[l.name:]))
			text = appendReference(text, token)
		}
	}
	return string(text)
}

// quoted returns the bytes between the quotes of the string at the start of b, with escapes
// as written. If no quote closes the string, quoted returns the rest of b.
func quoted(b []byte) []byte {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return b[1:i]
		case '\\':
			i++
		}
	}
	return b[min(1, len(b)):]
}

// appendReference appends name as a reference token of a JSON pointer.
func appendReference(dst, name []byte) []byte {
	for _, b := range name {
		switch b {
		case '~':
			dst = append(dst, '~', '0')
		case '/':
			dst = append(dst, '~', '1')
		default:
			dst = append(dst, b)
		}
	}
	return dst
}
