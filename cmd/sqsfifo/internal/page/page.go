// Package page writes the HTML pages of the command: one file each, with everything in
// it.
//
// Problem: a page about a log is opened from a disk, mailed, and kept; what is in the log
// was written by strangers.
//
// Guarantee: a page loads nothing from anywhere. Its Content-Security-Policy allows the
// one script and the one style that were written with it, by their hashes, so that markup
// in a log cannot run even where a page would put it into the document. Data goes into an
// inert element, as JSON that cannot end that element.
//
// Limits: the markup, style and scripts of a [Document] are trusted. The scripts have to
// set what comes from data as text.
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

// Document is what one page consists of, apart from the style and the scripts that all
// pages share.
type Document struct {
	Title   string
	Markup  template.HTML // of the body
	Style   string
	Scripts []string // run in their order, in one scope
	Data    []byte   // JSON as encoding/json writes it, with < escaped

	// Connects lets the scripts talk to the server that the page came from.
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
		// #nosec G203 -- trusted by the contract of Document; the data has no "<"
		"Style": template.CSS(style), "Markup": d.Markup, "Data": template.JS(data), "Script": template.JS(script),
	})
}

// Policy is the page's Content-Security-Policy.
func (d Document) Policy() string {
	style, script := d.parts()
	policy := fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'", hash(style), hash(script))
	if d.Connects {
		policy += "; connect-src 'self'"
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

// hash is the source expression that allows an inline element with the text.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
