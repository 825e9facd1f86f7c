package canonicaljson

import "strconv"

// pointerAt returns the JSON pointer (RFC 6901) of the value at offset at of src, or of
// the innermost value around that offset. The bytes before at are scanned and well
// formed. With isName, at is the offset of a duplicate name, and the pointer is that
// member's.
//
// pointerAt runs only for errors, so the scanner need not track the current path.
func pointerAt(src []byte, at int, isName bool) string {
	type level struct {
		name   []byte // without quotes; nil in an array or before the colon
		index  int
		object bool
	}
	var (
		levels  []level
		text    []byte
		pending []byte
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
				top.name = nil
			} else {
				top.index++
			}
		case ':':
			levels[len(levels)-1].name = pending
		case '"':
			name := quoted(src[i:])
			pending = src[i+1 : i+1+len(name)]
			i += len(name) + 1
		}
	}
	if isName {
		levels[len(levels)-1].name = quoted(src[at:])
	}
	for _, l := range levels {
		switch {
		case l.name != nil:
			text = append(text, '/')
			text = appendReference(text, string(unescape(nil, l.name)))
		case !l.object:
			text = append(text, '/')
			text = strconv.AppendInt(text, int64(l.index), 10)
		}
	}
	return string(text)
}

// quoted returns the bytes between the quotes of the string at the start of b, with
// escapes as written, or the rest of b if no quote closes the string.
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
func appendReference(dst []byte, name string) []byte {
	for i := range len(name) {
		switch name[i] {
		case '~':
			dst = append(dst, '~', '0')
		case '/':
			dst = append(dst, '~', '1')
		default:
			dst = append(dst, name[i])
		}
	}
	return dst
}
