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
	"github.com/sortie-dev/sortie/shared/base/limit"
)

// Options are the options of the export contract (EC-1.3). DefaultOptions
// returns the defaults.
type Options struct {
	// Recursive also exports the descendants of the entity, as one collection.
	Recursive bool
	// MaxDepth is the largest depth of a recursive export, from 0 (only the root) to
	// limit.ExportDepth.
	MaxDepth int
	// ParallelBatchSize is the number of entities that are read concurrently, from 1 to
	// limit.ExportBatch. Each costs a connection and a share of the memory.
	ParallelBatchSize int
	// IncludeOCR writes the text of files into MODS.
	IncludeOCR bool
	// CheimarrosMode sets how much of the graph is written.
	CheimarrosMode formats.GraphMode
}

// DefaultOptions returns the options of an empty EXPORT_OPTIONS.
func DefaultOptions() Options {
	return Options{MaxDepth: 5, ParallelBatchSize: 10, IncludeOCR: true, CheimarrosMode: formats.GraphFull}
}

// ParseOptions reads EXPORT_OPTIONS, a JSON object. Empty text, an absent member and null
// select the defaults. An unknown member is an error, because the caller expects it to have an
// effect. The error names every problem.
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

// set stores one member. It returns a description of an invalid value, or "".
func (o *Options) set(name string, raw json.RawMessage) string {
	switch name {
	case "recursive":
		return boolean(raw, &o.Recursive)
	case "includeOcr":
		return boolean(raw, &o.IncludeOCR)
	case "maxDepth":
		return whole(raw, &o.MaxDepth, 0, limit.ExportDepth)
	case "parallelBatchSize":
		return whole(raw, &o.ParallelBatchSize, 1, limit.ExportBatch)
	case "cheimarrosMode":
		var mode formats.GraphMode
		if json.Unmarshal(raw, &mode) != nil ||
			mode != formats.GraphFull && mode != formats.GraphMinimal && mode != formats.GraphSkip {
			return `must be "full", "minimal" or "skip"`
		}
		o.CheimarrosMode = mode
		return ""
	}
	return "is unknown, want recursive, maxDepth, parallelBatchSize, includeOcr or cheimarrosMode"
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
