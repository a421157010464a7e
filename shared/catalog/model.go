// Package catalog has the models of tenants: what is known about each, whether it may be
// used, and who has signed it.
//
// A model is signed by a statement of in-toto about its digest, in a DSSE envelope. The
// package does no I/O: times are arguments.
package catalog

import (
	"encoding/json"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/artifact"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
)

// The limits of a definition.
const (
	// MaxSize is the size of a request with a definition in bytes.
	MaxSize = 128 << 10
	// MaxSignature is the size of a signature in bytes.
	MaxSignature     = 64 << 10
	MaxTags          = 32
	MaxContextTokens = 100_000_000
	// MaxPrice is the highest price of a token in nano-dollars: a dollar.
	MaxPrice  = 1_000_000_000
	maxSource = 2048
	maxName   = 255
)

// DefaultOutputPrice is the price of a generated token without another one, in
// nano-dollars: $0.000002.
const DefaultOutputPrice = 2000

// State is the state of a model.
type State string

// The states. An operator moves a model between them.
const (
	// Active: tasks may use the model.
	Active State = "Active"
	// Retired: no task is admitted for the model. Admitted ones end.
	Retired State = "Retired"
)

// States lists all states.
func States() []State { return []State{Active, Retired} }

// Price is what a token costs, in nano-dollars.
type Price struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

// Definition is what an operator sets of a model.
type Definition struct {
	// Digest is "sha256:" and hexadecimal digits; empty if it is unknown. It is that of the
	// bytes that the signature is about.
	Digest string `json:"digest,omitempty"`
	// Source is a URI; empty if it is unknown. Sortie does not read it.
	Source string `json:"source,omitempty"`
	// Signature is a DSSE envelope; empty for an unsigned model.
	Signature json.RawMessage `json:"signature,omitempty"`
	// Engines serve the model, at least one.
	Engines []port.EngineKind `json:"engines"`
	// EngineModel is the name under which requests reach the model; empty for an engine
	// that serves one model.
	EngineModel string `json:"engineModel,omitempty"`
	// Tokenizer names the tokenizer, for people.
	Tokenizer string `json:"tokenizer,omitempty"`
	// ContextTokens is the longest prompt with its answer; 0 is that of the engine.
	ContextTokens int             `json:"contextTokens,omitempty"`
	Workloads     []port.Workload `json:"workloads"`
	Price         Price           `json:"price"`
	Tags          []string        `json:"tags,omitempty"`
}

// Signed reports whether the model has a signature, which may be of anyone.
func (d Definition) Signed() bool { return len(d.Signature) > 0 }

// Equal reports whether both are the same.
func (d Definition) Equal(other Definition) bool { return reflect.DeepEqual(d, other) }

// Workloads lists what models can do.
func Workloads() []port.Workload {
	return []port.Workload{port.WorkloadCompletion, port.WorkloadEmbedding, port.WorkloadRerank}
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Check returns the faults of a definition, each with its field.
func (d Definition) Check() (found []*fault.Fault) {
	invalid := func(field, format string, args ...any) {
		found = append(found, fault.Invalid(field, format, args...))
	}
	if d.Digest != "" && !digestPattern.MatchString(d.Digest) {
		invalid("digest", "malformed digest %.100q, want sha256: and 64 lower-case hexadecimal digits", d.Digest)
	}
	if problem := checkSource(d.Source); problem != "" {
		invalid("source", "%s", problem)
	}
	if d.Signed() {
		if _, _, err := read(d.Signature); err != nil {
			invalid("signature", "%v", err)
		} else if d.Digest == "" {
			invalid("digest", "missing digest, want that of the signed model")
		}
	}
	engines := port.EngineKinds()
	for i, e := range d.Engines {
		if !slices.Contains(engines, e) || slices.Contains(d.Engines[:i], e) {
			invalid("engines."+strconv.Itoa(i), "unknown or repeated engine %.40q, want each of %v once", e, engines)
		}
	}
	if len(d.Engines) == 0 {
		invalid("engines", "missing engines, want at least one of %v", engines)
	}
	for i, w := range d.Workloads {
		if !slices.Contains(Workloads(), w) || slices.Contains(d.Workloads[:i], w) {
			invalid("workloads."+strconv.Itoa(i), "unknown or repeated workload %.40q, want each of %v once", w, Workloads())
		}
	}
	if len(d.Workloads) == 0 {
		invalid("workloads", "no workloads, want at least one of %v", Workloads())
	}
	for _, name := range []struct{ field, text string }{{"engine_model", d.EngineModel}, {"tokenizer", d.Tokenizer}} {
		if len(name.text) > maxName || !limit.Printable(name.text) {
			invalid(name.field, "malformed %s, want at most %d printable bytes", name.field, maxName)
		}
	}
	if d.ContextTokens < 0 || d.ContextTokens > MaxContextTokens {
		invalid("context_tokens", "%d is out of range, want 0 (that of the engine) to %d", d.ContextTokens, MaxContextTokens)
	}
	for _, p := range []struct {
		field string
		price int64
	}{{"price.input_nanodollars", d.Price.Input}, {"price.output_nanodollars", d.Price.Output}} {
		if p.price < 0 || p.price > MaxPrice {
			invalid(p.field, "%d is out of range, want 0 to %d nano-dollars a token", p.price, MaxPrice)
		}
	}
	if len(d.Tags) > MaxTags {
		invalid("tags", "%d tags, want at most %d", len(d.Tags), MaxTags)
	}
	for i, tag := range d.Tags {
		if !artifact.ValidTag(tag) || slices.Contains(d.Tags[:i], tag) {
			invalid("tags."+strconv.Itoa(i), "malformed or repeated tag %.40q, want 1 to %d printable ASCII characters without spaces", tag, artifact.MaxTag)
		}
	}
	return found
}

// checkSource returns what is wrong with a source; empty if nothing is. A URI of Hugging
// Face or of a registry needs no host. The answer has nothing of a URI with a password.
func checkSource(source string) string {
	const want = "want a URI such as https://HOST/PATH, hf:OWNER/NAME or file:///PATH"
	if source == "" {
		return ""
	}
	u, err := url.Parse(source)
	switch {
	case len(source) > maxSource || !limit.Printable(source) || err != nil || u.Scheme == "":
		return "malformed source, " + want
	case u.User != nil:
		return "user information before the host, want a URI without it"
	}
	return ""
}

// Model is a model of a tenant.
type Model struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	State  State  `json:"state"`
	Definition
	// Verified is when the signature was last verified, and by which key; nil if it was not,
	// or did not match.
	Verified  *Verified `json:"verified,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy,omitempty"`
	UpdatedAt time.Time `json:"updatedAt"`
	UpdatedBy string    `json:"updatedBy,omitempty"`
}

// Verified is a verification that has succeeded.
type Verified struct {
	At time.Time `json:"at"`
	// Key is the id of the key.
	Key string `json:"key"`
}

// Prefixes of labels; see Labels. The list of all has the empty label.
const (
	labelTag    = "tag:"
	labelEngine = "engine:"
)

// Labels returns the lists that have the model.
func (m Model) Labels() []string {
	labels := []string{""}
	for _, e := range m.Engines {
		labels = append(labels, labelEngine+string(e))
	}
	for _, tag := range m.Tags {
		labels = append(labels, labelTag+tag)
	}
	return labels
}

// Filter selects models. Empty fields select all.
type Filter struct {
	Engine port.EngineKind
	Tag    string
	State  State
}

// Label returns the label of the shortest list that has every selected model.
func (f Filter) Label() string {
	switch {
	case f.Tag != "":
		return labelTag + f.Tag
	case f.Engine != "":
		return labelEngine + string(f.Engine)
	}
	return ""
}

// Selects reports whether clients that ask for f see the model. A list has models that had
// its label once.
func (f Filter) Selects(m Model) bool {
	return (f.Engine == "" || slices.Contains(m.Engines, f.Engine)) && (f.Tag == "" || slices.Contains(m.Tags, f.Tag)) && (f.State == "" || f.State == m.State)
}

// ParseState returns the state with a name. Fault: InvalidRequest with the field state.
func ParseState(text string) (State, error) {
	if !slices.Contains(States(), State(text)) {
		names := make([]string, 0, len(States()))
		for _, s := range States() {
			names = append(names, string(s))
		}
		return "", fault.Invalid("state", "unknown state %.40q, want %s", text, strings.Join(names, " or "))
	}
	return State(text), nil
}

// Admit returns the fault of a task for the model: PoolUnavailable without a retry for a retired one, and
// UntrustedArtifact if strict is set and no key has signed it; nil without one.
func (m Model) Admit(strict bool, keys Keys) error {
	if m.State == Retired {
		f := fault.New(fault.PoolUnavailable, "the model %s is retired and takes no further tasks; GET /v1/models lists the models that do", m.ID)
		f.Retryable = false
		return f
	}
	if !strict {
		return nil
	}
	_, err := m.Definition.Verify(keys)
	return err
}
