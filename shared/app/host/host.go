// Package host knows the images that are programs of the server's own host, and who may run them.
package host

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Programs has the images that are programs of the server's own host. Such a program has
// all rights of the user who started the server, so its runs need a caller with the scope exec.
// The zero value allows no such image.
type Programs struct {
	// Exec: an image "exec:PATH" is a program of the host.
	Exec bool
	// Bound are the names of images that are programs of the host.
	Bound []string
	// Owner is the subject of the token of the data folder. A job or a pool that Owner has
	// stored counts as stored with the scope exec, also if its record does not have that.
	Owner string
}

// execScheme is the scheme of an image that names a program of the host.
const execScheme = "exec:"

// NeedsExec reports whether the work needs the scope exec. An export with a bound image does not
// need it: clients cannot change the command line of the export contract.
func (h Programs) NeedsExec(w spec.Work) bool {
	return strings.HasPrefix(w.Image, execScheme) || w.Program != nil && slices.Contains(h.Bound, w.Image)
}

// Check refuses work that the caller may not run. Faults: RunnerNotAllowed, MissingScope,
// InvalidRequest and Unprocessable, each with the field.
func (h Programs) Check(who port.Identity, w spec.Work) error {
	program, exec := strings.CutPrefix(w.Image, execScheme)
	switch {
	case exec && !h.Exec:
		f := fault.New(fault.RunnerNotAllowed, "images of the form %sPATH run on a local system only, want a container image", execScheme)
		f.Field = "image"
		return f
	case !h.NeedsExec(w):
		return nil
	case !who.May(access.Exec):
		return MissingExec(who, "image")
	case exec && (!path.IsAbs(program) || path.Clean(program) != program || !limit.Printable(program)):
		return fault.Invalid("image", "malformed image %q, want %s and the absolute path of a program", w.Image, execScheme)
	case w.Program != nil && w.Program.Output != nil && path.IsAbs(w.Program.Output.Path):
		f := fault.New(fault.Unprocessable, "the program of the host writes in a folder of its own, want a relative path")
		f.Field = "output.path"
		return f
	}
	return nil
}

// MissingExec returns the fault of a caller without the scope exec: RunnerNotAllowed without a
// token, otherwise MissingScope.
func MissingExec(who port.Identity, field string) *fault.Fault {
	code := fault.MissingScope
	if who.Anonymous {
		code = fault.RunnerNotAllowed
	}
	f := fault.New(code, "a program of the server's host needs a token with the scope %s: that of the file token in the data folder, "+
		"which the command line takes from SORTIE_TOKEN, or one of \"sortie tokens add NAME --scope %s ...\"", access.Exec, access.Exec)
	f.Field = field
	return f
}

// Owns reports whether the subject is the owner of the data folder.
func (h Programs) Owns(subject string) bool { return h.Owner != "" && subject == h.Owner }

// Run returns a run of a stored job with the rights of the client that stored the job.
func (h Programs) Run(j job.Job, defaults spec.Policy) run.Run {
	r := j.Run(defaults)
	r.Exec = j.Exec || h.Owns(j.UpdatedBy)
	return r.TriggersExec(r.Exec)
}

// NewRun is like Run, and sets parameters, inputs, the override and the PayloadDigest. inputs are
// values of job.Definition.InputValues; nil means the defaults.
func (h Programs) NewRun(j job.Job, defaults spec.Policy, parameters map[string]string, inputs map[string]spec.Value, o spec.Override) run.Run {
	r := h.Run(j, defaults).With(o)
	if inputs != nil {
		r.Inputs = inputs
	}
	r.Parameters, r.Work.Program = parameters, r.Work.Program.With(parameters)
	r.PayloadDigest = payloadDigest(j, parameters, r.Inputs, o)
	return r
}

// payloadDigest returns run.Run.PayloadDigest for a run of a stored job; empty for a definition
// without a canonical form.
func payloadDigest(j job.Job, parameters map[string]string, inputs map[string]spec.Value, o spec.Override) string {
	d := j.Definition
	d.Priority, d.ConcurrencyKey = cmp.Or(o.Priority, d.Priority), cmp.Or(o.Key, d.ConcurrencyKey)
	if parameters == nil {
		parameters = map[string]string{}
	}
	document, err := json.Marshal(struct {
		Definition job.Definition        `json:"definition"`
		Version    int64                 `json:"definitionVersion"`
		Parameters map[string]string     `json:"parameters"`
		Inputs     map[string]spec.Value `json:"inputs,omitempty"`
	}{d, j.Version, parameters, inputs})
	if err != nil {
		return ""
	}
	digest, err := events.Digest(document)
	if err != nil {
		return ""
	}
	return digest
}
