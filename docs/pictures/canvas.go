package main

import (
	"fmt"
	"html"
	"strings"
)

// canvas collects the elements of an SVG. Colours are CSS classes, so the reader's light
// or dark scheme applies. Each colour has a contrast of at least 4.5 to its background.
type canvas struct {
	strings.Builder
}

const style = `<style>
text{font:14px ui-sans-serif,system-ui,sans-serif;fill:#1f2328}
.bg{fill:#ffffff}.box{fill:#f6f8fa;stroke:#57606a}.line{stroke:#57606a;fill:none}.head{font-weight:600}.small{font-size:12px}
.good{stroke:#1a7f37;fill:none}.bad{stroke:#cf222e;fill:none}text.good{fill:#1a7f37;stroke:none}text.bad{fill:#cf222e;stroke:none}
.memory{fill:#ddf4ff;stroke:#0969da}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}
.bg{fill:#0d1117}.box{fill:#161b22;stroke:#8b949e}.line{stroke:#8b949e}
.good{stroke:#3fb950}.bad{stroke:#ff7b72}text.good{fill:#3fb950}text.bad{fill:#ff7b72}
.memory{fill:#0c2d6b;stroke:#58a6ff}
}
</style>
`

// draw returns a complete SVG. The description is the text alternative.
func draw(width, height int, title, description string, paint func(*canvas)) string {
	c := &canvas{}
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%d" role="img" aria-labelledby="t d">`+"\n", width, height)
	fmt.Fprintf(c, "<title id=\"t\">%s</title>\n<desc id=\"d\">%s</desc>\n", html.EscapeString(title), html.EscapeString(description))
	c.WriteString(style)
	fmt.Fprintf(c, `<rect class="bg" width="%d" height="%d"/>`+"\n", width, height)
	paint(c)
	c.WriteString("</svg>\n")
	return c.String()
}

// text draws the string s. Its left end is at x, or its middle if `anchor` is "middle".
func (c *canvas) text(x, y int, class, anchor, s string) {
	fmt.Fprintf(c, `<text x="%d" y="%d" class="%s" text-anchor="%s">%s</text>`+"\n", x, y, class, anchor, html.EscapeString(s))
}

func (c *canvas) rect(x, y, width, height int, class string) {
	fmt.Fprintf(c, `<rect x="%d" y="%d" width="%d" height="%d" rx="4" class="%s"/>`+"\n", x, y, width, height, class)
}

func (c *canvas) line(x1, y1, x2, y2 int, class, dashes string) {
	fmt.Fprintf(c, `<path d="M%d %dL%d %d" class="%s" stroke-width="1.5" stroke-dasharray="%s"/>`+"\n", x1, y1, x2, y2, class, dashes)
}

// arrow draws a horizontal arrow; its head is at x2.
func (c *canvas) arrow(x1, x2, y int, class, dashes string) {
	c.line(x1, y, x2, y, class, dashes)
	back := 8
	if x2 > x1 {
		back = -8
	}
	fmt.Fprintf(c, `<path d="M%d %dL%d %dL%d %d" class="%s" stroke-width="1.5"/>`+"\n", x2+back, y-5, x2, y, x2+back, y+5, class)
}

// cross draws a cross around the point x, y, where a message or an answer is lost.
func (c *canvas) cross(x, y int) {
	fmt.Fprintf(c, `<path d="M%d %dl12 12m0 -12l-12 12" class="bad" stroke-width="2.5"/>`+"\n", x-6, y-6)
}
