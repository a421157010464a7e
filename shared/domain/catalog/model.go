// Package catalog defines the models of tenants: their definitions, states and signatures.
//
// The signature of a model is an in-toto statement about its digest, in a DSSE envelope. The
// package does no I/O, and times are arguments.
package catalog

import (
	"cmp"
	"encoding/json"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// The limits of a definition.
const (
	// MaxSize is the maximum size of a request with a definition, in bytes.
	MaxSize = 128 << 10
	// MaxSignature is the maximum size of a signature in bytes.
	MaxSignature     = 64 << 10
	MaxTags          = 32
	MaxContextTokens = 100_000_000
	// MaxPrice is the maximum price of a token in nano-dollars: 1 dollar.
	MaxPrice  = 1_000_000_000
	maxSource = 2048
	maxName   = 255
)

// DefaultOutputPrice is the default price of a generated token in nano-dollars: $0.000002.
const DefaultOutputPrice = 2000

// State is the state of a model.
type State string

// The states. An operator moves a model between them.
const (
	// Active: tasks may use the model.
	Active State = "Active"
	// Retired: no further task is admitted for the model. Tasks that were admitted continue.
	Retired State = "Retired"
)

// States lists all states.
func States() []State { return []State{Active, Retired} }

// Price is the price of an input token and of a generated token, in nano-dollars.
type Price struct {
	Input int64 `json:"input"`
	// Cached is that of an input token that the engine has read from its cache, at most Input; nil is
	// Input.
	Cached *int64 `json:"cached,omitempty"`
	Output int64  `json:"output"`
}

// Definition is the part of a model that an operator sets.
type Definition struct {
	// Digest is "sha256:" and 64 hexadecimal digits; empty if unknown. It is the digest that
	// the signature covers.
	Digest string `json:"digest,omitempty"`
	// Source is the URI of the model; empty if unknown. Sortie does not fetch it.
	Source string `json:"source,omitempty"`
	// Signature is a DSSE envelope; empty for an unsigned model.
	Signature json.RawMessage `json:"signature,omitempty"`
	// Engines are the kinds of engines that can serve the model, at least one.
	Engines []platform.EngineKind `json:"engines"`
	// EngineModel is the model's name in requests to the engine; empty for an engine that
	// serves one model.
	EngineModel string `json:"engineModel,omitempty"`
	// Tokenizer names the tokenizer, for people.
	Tokenizer string `json:"tokenizer,omitempty"`
	// ContextTokens limits prompt and answer together; 0 means the limit of the engine.
	ContextTokens int             `json:"contextTokens,omitempty"`
	Workloads     []port.Workload `json:"workloads"`
	Price         Price           `json:"price"`
	// Split sends shares of the tasks for the model to other models.
	Split []Share `json:"split,omitempty"`
	// Shadow copies shares of the tasks for the model to other models.
	Shadow []Share  `json:"shadow,omitempty"`
	Tags   []string `json:"tags,omitempty"`
}

// Signed reports whether the model has a signature. It does not verify the signature.
func (d Definition) Signed() bool { return len(d.Signature) > 0 }

// Equal reports whether all fields of the two definitions are equal.
func (d Definition) Equal(other Definition) bool { return reflect.DeepEqual(d, other) }

// Workloads lists the workloads that a model can have.
func Workloads() []port.Workload {
	return []port.Workload{port.WorkloadCompletion, port.WorkloadEmbedding, port.WorkloadRerank}
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Check returns an InvalidRequest with the field for each invalid field of the definition.
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
	engines := platform.EngineKinds()
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
	if cached := d.Price.Cached; cached != nil && (*cached < 0 || *cached > d.Price.Input) {
		invalid("price.cached_nanodollars", "%d is out of range, want 0 to %d, the price of an input token", *cached, d.Price.Input)
	}
	for field, shares := range d.Shares() {
		found = append(found, checkShares(field, shares)...)
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

// checkSource returns the problem of a source URI, or "" if it is valid. A URI of Hugging Face
// or of a registry needs no host. The problem never contains the URI, which may contain a
// password.
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
	// Verified is the last successful verification of the signature. It is nil if the
	// signature was not verified or did not match.
	Verified  *Verified `json:"verified,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy,omitempty"`
	UpdatedAt time.Time `json:"updatedAt"`
	UpdatedBy string    `json:"updatedBy,omitempty"`
}

// ContextIn returns the context length of the model in a pool, in tokens: the reported context of
// its replicas, limited by that of the catalog. An unknown value limits nothing; if both are
// unknown, it is limit.ContextTokens.
func (m Model) ContextIn(reported int) int {
	if reported > 0 && m.ContextTokens > 0 {
		return min(reported, m.ContextTokens)
	}
	return cmp.Or(reported, m.ContextTokens, limit.ContextTokens)
}

// Verified records a successful verification of a signature.
type Verified struct {
	At time.Time `json:"at"`
	// Key is the id of the key that verified the signature.
	Key string `json:"key"`
}

// Prefixes of labels; see Labels. The empty label selects all models.
const (
	labelTag    = "tag:"
	labelEngine = "engine:"
)

// Labels returns the labels under which the store lists the model.
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
	Engine platform.EngineKind
	Tag    string
	State  State
}

// Label returns the label whose list contains every selected model. Tag takes precedence over
// Engine. State has no label.
func (f Filter) Label() string {
	switch {
	case f.Tag != "":
		return labelTag + f.Tag
	case f.Engine != "":
		return labelEngine + string(f.Engine)
	}
	return ""
}

// Selects reports whether the model matches all fields of f. Callers need it because a list may
// still contain models that have lost its label.
func (f Filter) Selects(m Model) bool {
	return (f.Engine == "" || slices.Contains(m.Engines, f.Engine)) && (f.Tag == "" || slices.Contains(m.Tags, f.Tag)) && (f.State == "" || f.State == m.State)
}

// ParseState returns the State with this name. Fault: InvalidRequest with the field state for
// an unknown name.
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

// Admit returns nil if a task may use the model. Faults: PoolUnavailable, not retryable, if the
// model is retired; UntrustedArtifact if strict is set and no key of keys has signed it.
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
