// Package figure has the figures of the report of a release: how they are kept, printed and
// compared.
package figure

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Better says which direction of a figure is better.
type Better string

// The directions. Of a figure without one, only the change is of interest.
const (
	More    Better = "more"
	Less    Better = "less"
	Neither Better = ""
)

// Figure is one measured value.
type Figure struct {
	// Name is unique within a part.
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// Unit is "ms", "MB" or "runs/s"; empty for counts.
	Unit   string `json:"unit,omitempty"`
	Better Better `json:"better,omitempty"`
	// Noise is the share of the value by which two measurements of the same code differ on the
	// same machine: 0.1 is 10 %. 0 is an exact figure.
	Noise float64 `json:"noise,omitempty"`
	// Goal is the goal in words, empty without one. Missed says that it is not reached.
	Goal   string `json:"goal,omitempty"`
	Missed bool   `json:"missed,omitempty"`
}

// Text returns the value with at most four digits, and its unit.
func (f Figure) Text() string {
	text := strconv.FormatFloat(f.Value, 'f', -1, 64)
	if f.Value != math.Trunc(f.Value) {
		digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(f.Value)))))
		text = strconv.FormatFloat(f.Value, 'f', digits, 64)
	}
	if f.Unit != "" {
		text += " " + f.Unit
	}
	return text
}

// Part is what one part of the report has measured.
type Part struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Command repeats the measurement.
	Command string `json:"command"`
	// Commit is the measured commit, with "+" if the tree had other changes.
	Commit  string   `json:"commit"`
	Date    string   `json:"date"`
	Machine string   `json:"machine"`
	Seconds int      `json:"seconds"`
	Figures []Figure `json:"figures"`
	// Tables are printed as they are, in Markdown.
	Tables []string `json:"tables,omitempty"`
	// Notes are sentences about what was not measured, or about what a figure does not say.
	Notes []string `json:"notes,omitempty"`
}

// Add adds a figure.
func (p *Part) Add(f Figure) { p.Figures = append(p.Figures, f) }

// Count adds an exact figure.
func (p *Part) Count(name string, value int, better Better) {
	p.Add(Figure{Name: name, Value: float64(value), Better: better})
}

// Zero adds an exact figure whose goal is zero.
func (p *Part) Zero(name string, value int) {
	p.Add(Figure{Name: name, Value: float64(value), Better: Less, Goal: "0", Missed: value != 0})
}

// Note adds a note.
func (p *Part) Note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// Find returns the figure with the name.
func (p *Part) Find(name string) (Figure, bool) {
	i := slices.IndexFunc(p.Figures, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		return Figure{}, false
	}
	return p.Figures[i], true
}

// Save writes the part to NAME.json in the folder.
func (p *Part) Save(folder string) error {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("cannot create the folder of results: %w", err)
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode part %s: %w", p.Name, err)
	}
	if err := os.WriteFile(filepath.Join(folder, p.Name+".json"), append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot keep part %s: %w", p.Name, err)
	}
	return nil
}

// Load returns the parts in the folder, by name. Another file in it is an error.
func Load(folder string) (map[string]*Part, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("cannot list results: %w", err)
	}
	parts := map[string]*Part{}
	for _, entry := range entries {
		name, isPart := strings.CutSuffix(entry.Name(), ".json")
		if !isPart || entry.IsDir() {
			return nil, fmt.Errorf("%s in %s is no result: want PART.json", entry.Name(), folder)
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("cannot read a result: %w", err)
		}
		var p Part
		if err := json.Unmarshal(text, &p); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(folder, entry.Name()), err)
		}
		if p.Name != name {
			return nil, fmt.Errorf("%s has the result of part %q", filepath.Join(folder, entry.Name()), p.Name)
		}
		parts[name] = &p
	}
	return parts, nil
}
