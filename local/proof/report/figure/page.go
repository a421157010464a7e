package figure

import (
	"fmt"
	"strings"
)

// Page returns the report in Markdown, with the parts in the given order. A part without a
// result is named as not measured.
func Page(order []string, parts map[string]*Part) string {
	var b strings.Builder
	b.WriteString("# The report of a release\n\n")
	b.WriteString("For people who want to know what was measured before they believe a figure. `make report` writes it, part by part;\n" +
		"`results/` has the same as JSON. *Noise* is by how much two measurements of the same code differ on this machine; exact\n" +
		"figures have none. A missed goal is in **bold**.\n\n")
	b.WriteString("| part | measured | commit | time |\n|---|---|---|---:|\n")
	var missing []string
	for _, name := range order {
		p := parts[name]
		if p == nil {
			missing = append(missing, name)
			continue
		}
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %d s |\n", p.Title, anchor(p.Title), p.Date, p.Commit, p.Seconds)
	}
	if len(missing) > 0 {
		fmt.Fprintf(&b, "\nNot measured: %s.\n", strings.Join(missing, ", "))
	}
	for _, name := range order {
		if p := parts[name]; p != nil {
			p.print(&b)
		}
	}
	return b.String()
}

func (p *Part) print(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n`%s`, on %s.\n", p.Title, p.Command, p.Machine)
	if len(p.Figures) > 0 {
		b.WriteString("\n| figure | value | goal | noise |\n|---|---:|---|---:|\n")
	}
	for _, f := range p.Figures {
		value, noise := f.Text(), ""
		if f.Missed {
			value = "**" + value + "**"
		}
		if f.Noise > 0 {
			noise = fmt.Sprintf("%.0f %%", 100*f.Noise)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", f.Name, value, f.Goal, noise)
	}
	for _, table := range p.Tables {
		b.WriteString("\n" + strings.TrimSpace(table) + "\n")
	}
	for _, note := range p.Notes {
		b.WriteString("\n" + note + "\n")
	}
}

// anchor returns the fragment that GitHub gives to a heading.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(title))
}
