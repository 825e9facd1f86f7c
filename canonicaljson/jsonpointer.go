package canonicaljson

import "strconv"

// pointerAt returns the JSON pointer (RFC 6901) of the value that stands at the
// offset at of src, or of the innermost one around it. All that stands before
// at has been scanned and is well formed. For a name that is the offset of a
// duplicate the pointer is that of its member.
//
// It runs only when there is an error to report, which is why the scanner need
// not keep track of where it is.
func pointerAt(src []byte, at int, isName bool) string {
	type level struct {
		name   []byte // between its quotes; nil in an array or before the colon
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

// quoted returns what stands between the quotes of the string that b starts
// with, escapes as they are written, or up to the end of b where none closes it.
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
