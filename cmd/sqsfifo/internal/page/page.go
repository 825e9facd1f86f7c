// Package page writes the command's HTML pages, each as one self-contained file.
//
// Problem: users keep and mail a page about a log, and open it from a disk. The log's
// content may come from strangers.
//
// Guarantee: a page loads no other resource. Its Content-Security-Policy allows only the
// page's style and script, by their hashes. A script in the content of a log therefore
// cannot run, even if it got into the page's HTML. [Document].Data is stored as JSON in a
// script element without executable code; the JSON cannot end the element.
//
// Limits: the markup, style and scripts of a [Document] are trusted. Scripts must insert
// data as text.
package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
)

// Document is the content of one page, without the common style and scripts.
type Document struct {
	Title   string
	Markup  template.HTML // markup of the page's body
	Style   string
	Scripts []string // scripts, run in order in one scope
	Data    []byte   // JSON from encoding/json, with < escaped

	// Connects lets the page fetch data and images from its own server.
	Connects bool
}

var (
	//go:embed assets/base.css
	baseStyle string
	//go:embed assets/text.js
	textScript string
	//go:embed assets/marks.js
	marksScript string
)

// Icon is the icon of the pages, an SVG image.
//
//go:embed assets/icon.svg
var Icon string

var document = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{{.Title}}</title>
<style>{{.Style}}</style>
</head>
<body>
{{.Markup}}
<script type="application/json" id="data">{{.Data}}</script>
<script>{{.Script}}</script>
</body>
</html>
`))

// Write writes the page.
func (d Document) Write(w io.Writer) error {
	style, script := d.parts()
	data := d.Data
	if data == nil {
		data = []byte("null")
	}
	return document.Execute(w, map[string]any{
		"Policy": d.Policy(), "Title": d.Title,
		// #nosec G203 -- callers put only safe HTML, CSS and scripts into Document; the data has no "<"
		"Style": template.CSS(style), "Markup": d.Markup, "Data": template.JS(data), "Script": template.JS(script),
	})
}

// Policy returns the page's Content-Security-Policy.
func (d Document) Policy() string {
	style, script := d.parts()
	policy := fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'", hash(style), hash(script))
	if d.Connects {
		policy += "; connect-src 'self'; img-src 'self'"
	}
	return policy
}

func (d Document) parts() (style, script string) {
	var b strings.Builder
	b.WriteString("\"use strict\";\n(() => {\n")
	for _, part := range append([]string{textScript, marksScript}, d.Scripts...) {
		b.WriteString(part)
	}
	b.WriteString("})();\n")
	return baseStyle + d.Style, b.String()
}

// hash returns the term of a Content-Security-Policy that allows an inline script or
// style with this text.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
