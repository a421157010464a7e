package job

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Export is the work of a job that exports an entity instead of running a program.
type Export struct {
	// Format is one of limit.Formats. PI is the entity.
	Format  string         `json:"format"`
	PI      string         `json:"pi"`
	Options *ExportOptions `json:"options,omitempty"`
}

// ExportOptions selects the content of an export. The defaults of absent fields are: not
// recursive, depth 5, batches of 10, with OCR, the full graph.
type ExportOptions struct {
	Recursive         *bool   `json:"recursive,omitempty"`
	MaxDepth          *int    `json:"maxDepth,omitempty"`
	ParallelBatchSize *int    `json:"parallelBatchSize,omitempty"`
	IncludeOCR        *bool   `json:"includeOcr,omitempty"`
	CheimarrosMode    *string `json:"cheimarrosMode,omitempty"`
}

// Validate returns the problems of an export, with fields relative to it.
func (e Export) Validate() []Problem {
	p := &problems{}
	e.validate("", p)
	return p.sorted()
}

// validate records the problems of the export with fields below path.
func (e Export) validate(path string, p *problems) {
	if formats := limit.Formats(); !slices.Contains(formats, e.Format) {
		p.bad(join(path, "format"), "unknown export format %q, want one of %s", limit.Cut(e.Format, nameLimit), strings.Join(formats, ", "))
	}
	if !limit.ValidPI(e.PI) {
		p.bad(join(path, "pi"), "malformed PI, want a ULID: 26 characters of 0-9 and A-Z without I, L, O and U, the first at most 7")
	}
	o, in := e.Options.withDefaults(), join(path, "options")
	p.within(join(in, "maxDepth"), o.MaxDepth, 0, limit.ExportDepth)
	p.within(join(in, "parallelBatchSize"), o.ParallelBatchSize, 1, limit.ExportBatch)
	if modes := limit.CheimarrosModes(); !slices.Contains(modes, *o.CheimarrosMode) {
		p.bad(join(in, "cheimarrosMode"), "unknown mode, want one of %s", strings.Join(modes, ", "))
	}
}

// Work returns the work of a valid export, with the options that the worker receives.
func (e Export) Work() spec.Work {
	options, _ := json.Marshal(e.Options.withDefaults()) //nolint:errchkjson // strings, numbers and flags have a JSON form
	return spec.Work{Kind: spec.KindExport, Format: e.Format, PI: e.PI, Options: options}
}

func (o *ExportOptions) withDefaults() ExportOptions {
	var all ExportOptions
	if o != nil {
		all = *o
	}
	orDefault(&all.Recursive, false)
	orDefault(&all.MaxDepth, 5)
	orDefault(&all.ParallelBatchSize, 10)
	orDefault(&all.IncludeOCR, true)
	orDefault(&all.CheimarrosMode, "full")
	return all
}

func orDefault[T any](value **T, fallback T) {
	if *value == nil {
		*value = &fallback
	}
}

// validateExport checks a job that exports. It refuses fields that describe a program.
func validateExport(d Definition, p *problems) {
	d.Export.validate("export", p)
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"command", d.Command != nil},
		{"env", d.Env != nil},
		{"input", d.Input != ""},
		{"output", d.Output != nil},
		{"completion", d.Completion != ""},
		{"exitCodes", d.ExitCodes != nil},
		{"logs", d.Logs != ""},
	} {
		if field.given {
			p.addConflict(field.name, "no meaning with export; leave one out")
		}
	}
}
