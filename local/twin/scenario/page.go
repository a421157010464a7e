package scenario

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// Page writes the answer as one page of HTML with pictures, without scripts and without other
// files. It uses no template of the standard library: these make the program a third larger.
func Page(out io.Writer, results ...Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, html.EscapeString(results[0].Scenario))
	const layout = "2006-01-02 15:04 MST"
	for _, r := range results {
		fmt.Fprintf(&b, "<p>%s, seed %d: from %s to %s.</p>\n", html.EscapeString(r.Scenario), r.Seed, r.Start.Format(layout), r.End.Format(layout))
	}
	for _, c := range charts(results) {
		c.write(&b)
	}
	b.WriteString("<h2>Figures</h2>\n<table>\n<tr><th>Job</th><th>Figure</th>")
	for _, r := range results {
		fmt.Fprintf(&b, "<th>%s</th>", html.EscapeString(r.Scenario))
	}
	b.WriteString("</tr>\n")
	for _, m := range Measures(results...) {
		b.WriteString("<tr>")
		for _, cell := range append([]string{m.Of, m.Name}, m.Values...) {
			fmt.Fprintf(&b, "<td>%s</td>", html.EscapeString(cell))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString(pageEnd)
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("cannot write the page: %w", err)
	}
	return nil
}

// write writes the picture.
func (c chart) write(b *strings.Builder) {
	title := html.EscapeString(c.Title)
	fmt.Fprintf(b, `<h2>%s</h2>
<svg viewBox="0 0 1000 160" role="img" aria-label="%s, at most %d in an hour">
<path class="area" d="%s"/>
`, title, title, c.Most, c.Path)
	if c.LimitY > 0 {
		fmt.Fprintf(b, `<line class="limit" x1="40" x2="1000" y1="%.1f" y2="%.1f"/>`, c.LimitY, c.LimitY)
	}
	fmt.Fprintf(b, `<line class="axis" x1="40" x2="1000" y1="140" y2="140"/>
<text x="4" y="20">%d</text><text x="4" y="140">0</text>
`, c.Most)
	for _, d := range c.Days {
		fmt.Fprintf(b, `<text x="%.1f" y="155">%s</text>`, d.X, d.Text)
	}
	b.WriteString("\n</svg>\n")
}

// pageHead is a format with the name of the scenario.
const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Scenario: %s</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1f24; background: #fff; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; min-width: 60rem }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #d8dee4; vertical-align: top }
svg { display: block; max-width: 70rem; background: #f6f8fa }
text { font-size: 11px; fill: #57606a }
.area { fill: #79b8ff } .limit { stroke: #cf222e; stroke-dasharray: 4 3 } .axis { stroke: #8c959f }
</style>
</head>
<body>
<h1>What the jobs would do</h1>
`

const pageEnd = `</table>
<p>Machines, programs and clients are drawn; everything else is the code of a server. Costs are assumptions of the scenario.</p>
</body>
</html>
`

// chart is a picture of a figure by hours.
type chart struct {
	Title string
	Most  int
	Path  string
	// LimitY is the height of the limit; 0 without one.
	LimitY float64
	Days   []label
}

// label is a text of the axis of days.
type label struct {
	X    float64
	Text string
}

// charts returns the pictures. All pictures of a figure have the same scale.
func charts(results []Result) (found []chart) {
	for _, f := range []struct {
		name    string
		limited bool
		of      func(h Hour) int
	}{{"Machines by hour", true, func(h Hour) int { return h.Machines }}, {"Queued runs by hour", false, func(h Hour) int { return h.Queued }}} {
		most := 1
		for _, r := range results {
			for _, h := range r.Hours {
				most = max(most, f.of(h))
			}
		}
		for _, r := range results {
			one := chart{Title: f.name, Most: most}
			if len(results) > 1 {
				one.Title += ": " + r.Scenario
			}
			one.draw(r, f.of)
			if r.Limit > 0 && r.Limit <= most && f.limited {
				one.LimitY = 140 - 130*float64(r.Limit)/float64(most)
			}
			found = append(found, one)
		}
	}
	return found
}

// draw draws the steps of a figure from 40 to 1000 and from 140 up to 10.
func (c *chart) draw(r Result, of func(h Hour) int) {
	var path strings.Builder
	path.WriteString("M40 140")
	width := 960 / float64(max(len(r.Hours), 1))
	every := max(len(r.Hours)/24/10, 1)
	for i, h := range r.Hours {
		x, y := 40+float64(i)*width, 140-130*float64(of(h))/float64(c.Most)
		fmt.Fprintf(&path, "L%.1f %.1fL%.1f %.1f", x, y, x+width, y)
		if i%(24*every) == 0 {
			c.Days = append(c.Days, label{X: rounded(x, 10), Text: h.At.Format("2 Jan")})
		}
	}
	path.WriteString("L1000 140Z")
	c.Path = path.String()
}
