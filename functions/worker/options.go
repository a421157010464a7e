package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/functions/worker/formats"
)

// Limits of the options. The depth is what a path note can reasonably hold;
// the batch is bounded because each entity in flight costs a connection and a
// share of the memory.
const (
	maxDepth = 1000
	maxBatch = 100
)

// Options are the export contract's. DefaultOptions are its defaults.
type Options struct {
	// Recursive exports the entity's descendants too, as one collection.
	Recursive bool
	// MaxDepth is how far below the root a recursive export goes, 0 to 1,000;
	// 0 is the root alone.
	MaxDepth int
	// ParallelBatchSize is how many entities are read at once, 1 to 100.
	ParallelBatchSize int
	// IncludeOCR writes the text of files into MODS.
	IncludeOCR bool
	// CheimarrosMode is how much of the graph is written.
	CheimarrosMode formats.GraphMode
}

// DefaultOptions are what holds where EXPORT_OPTIONS says nothing.
func DefaultOptions() Options {
	return Options{MaxDepth: 5, ParallelBatchSize: 10, IncludeOCR: true, CheimarrosMode: formats.GraphFull}
}

// ParseOptions reads EXPORT_OPTIONS, a JSON object; empty text is all
// defaults, and so is null for any member. Unknown members are refused by
// name: an option that has no effect is a misunderstanding. All problems are
// named at once.
func ParseOptions(text string) (Options, error) {
	o := DefaultOptions()
	if strings.TrimSpace(text) == "" {
		return o, nil
	}
	var members map[string]json.RawMessage
	decoder := json.NewDecoder(strings.NewReader(text))
	if err := decoder.Decode(&members); err != nil || members == nil {
		return o, errors.New("EXPORT_OPTIONS is not a JSON object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return o, errors.New("EXPORT_OPTIONS is not one JSON object")
	}
	var problems []error
	for name, raw := range members {
		if bytes.Equal(raw, []byte("null")) && known(name) {
			continue
		}
		if problem := o.set(name, raw); problem != "" {
			problems = append(problems, fmt.Errorf("EXPORT_OPTIONS: %s %s", name, problem))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return o, errors.Join(problems...)
}

func known(name string) bool {
	return slices.Contains([]string{"recursive", "maxDepth", "parallelBatchSize", "includeOcr", "cheimarrosMode"}, name)
}

// set takes one member; it gives what is wrong with it.
func (o *Options) set(name string, raw json.RawMessage) string {
	switch name {
	case "recursive":
		return boolean(raw, &o.Recursive)
	case "includeOcr":
		return boolean(raw, &o.IncludeOCR)
	case "maxDepth":
		return whole(raw, &o.MaxDepth, 0, maxDepth)
	case "parallelBatchSize":
		return whole(raw, &o.ParallelBatchSize, 1, maxBatch)
	case "cheimarrosMode":
		var mode formats.GraphMode
		if json.Unmarshal(raw, &mode) != nil ||
			mode != formats.GraphFull && mode != formats.GraphMinimal && mode != formats.GraphSkip {
			return `must be "full", "minimal" or "skip"`
		}
		o.CheimarrosMode = mode
		return ""
	}
	return "is no option; the options are recursive, maxDepth, parallelBatchSize, includeOcr and cheimarrosMode"
}

func boolean(raw json.RawMessage, to *bool) string {
	if json.Unmarshal(raw, to) != nil {
		return "must be true or false"
	}
	return ""
}

func whole(raw json.RawMessage, to *int, least, most int) string {
	var n int
	if json.Unmarshal(raw, &n) != nil || n < least || n > most {
		return fmt.Sprintf("must be a whole number from %d to %d", least, most)
	}
	*to = n
	return ""
}
