package cost

import (
	"fmt"
	"strings"
)

// Page is a page of the console with the read units of one request.
type Page struct {
	// Path is below /console/.
	Path      string  `json:"path"`
	ReadUnits float64 `json:"readUnits"`
}

// pageTable returns the table of the pages as Markdown. It is empty without a measurement.
func (m Measured) pageTable() string {
	if len(m.Pages) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString("\nPages of the console, with the runs of this measurement. A list reads one page of an index:\n\n| page | read units | $ a million |\n|---|---:|---:|\n")
	for _, p := range m.Pages {
		fmt.Fprintf(&text, "| %s | %s | %.2f |\n", p.Path, figure(p.ReadUnits), Dollars(Usage{ReadUnits: p.ReadUnits})*1e6)
	}
	return text.String()
}
