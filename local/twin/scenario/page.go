package scenario

import (
	"fmt"
	"html/template"
	"io"
	"strings"
)

// Page writes the answer as one page of HTML with pictures, without scripts and without other
// files.
func Page(out io.Writer, results ...Result) error {
	data := struct {
		Results  []Result
		Measures []Measure
		Charts   []chart
	}{results, Measures(results...), charts(results)}
	if err := page.Execute(out, data); err != nil {
		return fmt.Errorf("cannot write the page: %w", err)
	}
	return nil
}

var page = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Scenario: {{(index .Results 0).Scenario}}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1f24; background: #fff; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #d8dee4; vertical-align: top }
svg { width: 100%; height: auto; background: #f6f8fa }
text { font-size: 11px; fill: #57606a }
.area { fill: #79b8ff } .limit { stroke: #cf222e; stroke-dasharray: 4 3 } .axis { stroke: #8c959f }
</style>
</head>
<body>
<h1>What the jobs would do</h1>
{{range .Results}}<p>{{.Scenario}}, seed {{.Seed}}: from {{.Start.Format "2006-01-02 15:04 MST"}} to {{.End.Format "2006-01-02 15:04 MST"}}.</p>
{{end}}
{{range .Charts}}<h2>{{.Title}}</h2>
<svg viewBox="0 0 1000 160" role="img" aria-label="{{.Title}}, at most {{.Most}} in an hour">
<path class="area" d="{{.Path}}"/>
{{if .LimitY}}<line class="limit" x1="40" x2="1000" y1="{{.LimitY}}" y2="{{.LimitY}}"/>{{end}}
<line class="axis" x1="40" x2="1000" y1="140" y2="140"/>
<text x="4" y="20">{{.Most}}</text><text x="4" y="140">0</text>
{{range .Days}}<text x="{{.X}}" y="155">{{.Text}}</text>{{end}}
</svg>
{{end}}
<h2>Figures</h2>
<table>
<tr><th>Job</th><th>Figure</th>{{range .Results}}<th>{{.Scenario}}</th>{{end}}</tr>
{{range .Measures}}<tr><td>{{.Of}}</td><td>{{.Name}}</td>{{range .Values}}<td>{{.}}</td>{{end}}</tr>
{{end}}</table>
<p>Machines, programs and clients are drawn; everything else is the code of a server. Costs are assumptions of the scenario.</p>
</body>
</html>
`))

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
