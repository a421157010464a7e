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

// pageList returns the list of the pages as Markdown. It is empty without a measurement.
func (m Measured) pageList() string {
	if len(m.Pages) == 0 {
		return ""
	}
	var pages []string
	for _, p := range m.Pages {
		pages = append(pages, fmt.Sprintf("%s %s", p.Path, figure(p.ReadUnits)))
	}
	return fmt.Sprintf("\nRead units of a page of the console, with the runs of this measurement; a million units cost $%.3f:\n%s.\n",
		Dollars(Usage{ReadUnits: 1e6}), strings.Join(pages, ", "))
}
