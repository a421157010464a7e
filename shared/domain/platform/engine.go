package platform

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// EngineKind is the kind of an inference server with an adapter in Sortie.
type EngineKind string

// The engines. EngineOpenAI is a service with OpenAI's API, reached over TLS with a key.
// EngineMock is for tests and development.
const (
	EngineLlamaCpp EngineKind = "llamacpp"
	EngineVLLM     EngineKind = "vllm"
	EngineTGI      EngineKind = "tgi"
	EngineTriton   EngineKind = "triton"
	EngineOpenAI   EngineKind = "openai"
	EngineMock     EngineKind = "mock"
)

// engineSeeds declares the engines with their seeds, in the order of the documents.
var engineSeeds = []struct {
	kind        EngineKind
	least, most int64
}{
	{EngineLlamaCpp, 0, math.MaxUint32 - 1}, // seeds have 32 bits; the largest means a random one
	{EngineVLLM, math.MinInt64, math.MaxInt64},
	{EngineTGI, 0, math.MaxInt64},
	{EngineTriton, math.MinInt64, math.MaxInt64},
	{EngineOpenAI, math.MinInt64, math.MaxInt64},
	{EngineMock, math.MinInt64, math.MaxInt64},
}

// EngineKinds lists the engines.
func EngineKinds() (kinds []EngineKind) {
	for _, e := range engineSeeds {
		kinds = append(kinds, e.kind)
	}
	return kinds
}

// EngineServers lists the engines that are servers with an address: all but EngineMock.
func EngineServers() []EngineKind {
	return slices.DeleteFunc(EngineKinds(), func(k EngineKind) bool { return k == EngineMock })
}

// EnginesWithoutKey lists the servers that require no key.
func EnginesWithoutKey() []EngineKind {
	return slices.DeleteFunc(EngineServers(), func(k EngineKind) bool { return k == EngineOpenAI })
}

// EngineNames returns the names of the engines as a text, the last after the word "or".
func EngineNames(kinds []EngineKind) string {
	var text strings.Builder
	for i, k := range kinds {
		switch {
		case i > 0 && i == len(kinds)-1:
			text.WriteString(" or ")
		case i > 0:
			text.WriteString(", ")
		}
		text.WriteString(string(k))
	}
	return text.String()
}

// Seeds returns the range of the seeds that the engine does not replace.
func (k EngineKind) Seeds() (least, most int64) {
	for _, e := range engineSeeds {
		if e.kind == k {
			return e.least, e.most
		}
	}
	return math.MinInt64, math.MaxInt64
}

// EnginePlace is where the inference tasks of a pool run: the replicas of an inference server
// that serve one model.
type EnginePlace struct {
	Kind EngineKind `json:"kind"`
	// Replicas are the servers, at least one, each with a unique id; empty with Machines.
	Replicas []EngineReplica `json:"replicas"`
	// Machines describes the replicas that Sortie runs itself; nil for servers at addresses.
	Machines *EngineMachines `json:"machines,omitempty"`
	// Model is the id of a model of the catalog.
	Model string `json:"model"`
	// EngineModel is the engine's name of the model; empty means that of the catalog.
	EngineModel string `json:"engineModel,omitempty"`
	// SecretRef is the name of the tenant's secret with the key of the service; for EngineOpenAI
	// alone.
	SecretRef string `json:"secretRef,omitempty"`
	// Slots is the number of tasks that each replica generates for at the same time. AutoSlots: it
	// is the smallest number that an engine has reported, or else DefaultSlots of the kind.
	Slots     int  `json:"slots"`
	AutoSlots bool `json:"autoSlots,omitempty"`
	// Deterministic: each replica has one slot, because concurrent generation can change the
	// tokens of a task. A task without a seed gets the seed 0.
	Deterministic bool `json:"deterministic,omitempty"`
	// DeadlineMS is the default deadline of tasks, in milliseconds after their creation, at
	// most MaxDeadlineMS; 0 means the default of the deployment.
	DeadlineMS int64 `json:"deadlineMs,omitempty"`
	// LongestDeadlineMS is the longest deadline of tasks, in the same form; 0 means that of the
	// deployment.
	LongestDeadlineMS int64 `json:"maxDeadlineMs,omitempty"`
	// Loads counts the reloads. What was measured of the replicas applies to one load only.
	Loads int `json:"loads,omitempty"`
}

// EngineReplica is one server of an engine.
type EngineReplica struct {
	// ID distinguishes the replicas of a pool.
	ID string `json:"id"`
	// Run is the id of the run whose program is the server; empty for a server at an address.
	Run string `json:"-"`
	// URL is the address of the server. MetricsURL is that of its metrics, if it differs.
	// EngineMock has neither.
	URL        string `json:"url,omitempty"`
	MetricsURL string `json:"metricsUrl,omitempty"`
}

// The limits of an EnginePlace.
const (
	MaxReplicas     = 100
	MaxReplicaSlots = 1000
	MaxDeadlineMS   = int64(24 * time.Hour / time.Millisecond)
)

// Deadline returns the default deadline of tasks; 0 means the default of the deployment.
func (e EnginePlace) Deadline() time.Duration { return time.Duration(e.DeadlineMS) * time.Millisecond }

// MaxDeadline returns the longest deadline of tasks; 0 means that of the deployment.
func (e EnginePlace) MaxDeadline() time.Duration {
	return time.Duration(e.LongestDeadlineMS) * time.Millisecond
}

// WithIDs returns the place with an id for each replica without one: "r" and its number, from
// 1.
func (e EnginePlace) WithIDs() EnginePlace {
	e.Replicas = slices.Clone(e.Replicas)
	for i := range e.Replicas {
		if e.Replicas[i].ID == "" {
			e.Replicas[i].ID = "r" + strconv.Itoa(i+1)
		}
	}
	return e
}

// SlotsOf returns the number of tasks that a replica generates for at the same time. reported is
// the number of its engine; 0 means unknown. The setting of the pool can only lower it.
func (e EnginePlace) SlotsOf(reported int) int {
	if reported <= 0 {
		return e.Slots
	}
	return min(e.Slots, reported)
}

// Limit returns the number of tasks that all replicas generate for at the same time: the limit
// of the pool.
func (e EnginePlace) Limit() int {
	if e.Machines != nil {
		return e.Slots * min(max(e.Machines.Count, 0), MaxReplicas)
	}
	return e.Slots * len(e.Replicas)
}

// EngineOffer describes the engines that pools of a deployment can have.
type EngineOffer struct {
	// Mock: EngineMock is permitted.
	Mock bool
	// CheckURL returns an error for an address that Sortie may not reach. The error says what
	// is valid. It must be set.
	CheckURL func(text string) error
}

var replicaName = limit.Form{First: limit.Letters + limit.Digits, Rest: limit.Letters + limit.Digits + "._-", Most: 63}

// Check returns the faults of a place that is invalid for a pool of the deployment, each with
// the field: InvalidRequest for a malformed value, and Unprocessable for what the deployment
// does not offer.
func (e EnginePlace) Check(o EngineOffer) (found []*fault.Fault) {
	invalid := func(field, format string, args ...any) {
		found = append(found, fault.Invalid("engine."+field, format, args...))
	}
	kinds := EngineServers()
	if o.Mock {
		kinds = EngineKinds()
	}
	if !slices.Contains(EngineKinds(), e.Kind) {
		invalid("kind", "unknown engine %q, want %s", limit.Cut(string(e.Kind), limit.FileName), kindList(kinds))
	} else if !slices.Contains(kinds, e.Kind) {
		f := fault.New(fault.Unprocessable, "the deployment does not offer the engine %s, want %s", e.Kind, kindList(kinds))
		f.Field = "engine.kind"
		found = append(found, f)
	}
	if !limit.ValidModel(e.Model) {
		invalid("model", "missing or malformed model %q, want the id of a model of the catalog", limit.Cut(e.Model, limit.FileName))
	}
	most := MaxReplicaSlots
	if e.Deterministic {
		most = 1
	}
	if e.Slots < 1 || e.Slots > most {
		invalid("slots", "%d is out of range, want 1 to %d, and 1 if the engine is deterministic", e.Slots, MaxReplicaSlots)
	}
	if e.DeadlineMS < 0 || e.DeadlineMS > MaxDeadlineMS {
		invalid("deadlineMs", "out of range, want 1 to %d, or no field for the default deadline", MaxDeadlineMS)
	}
	if e.LongestDeadlineMS < 0 || e.LongestDeadlineMS > MaxDeadlineMS || e.LongestDeadlineMS > 0 && e.LongestDeadlineMS < e.DeadlineMS {
		invalid("maxDeadlineMs", "out of range, want 1 to %d, at least deadlineMs, or no field for the limit of the deployment", MaxDeadlineMS)
	}
	found = append(found, e.checkService()...)
	if e.Machines != nil {
		return append(found, e.checkMachines()...)
	}
	if n := len(e.Replicas); n < 1 || n > MaxReplicas {
		invalid("replicas", "%d replicas, want 1 to %d, or the field machines", n, MaxReplicas)
		return found
	}
	for i, r := range e.Replicas {
		at := fmt.Sprintf("replicas.%d.", i)
		others := e.Replicas[:i]
		switch {
		case !replicaName.Matches(r.ID):
			invalid(at+"id", "malformed id %q, want 1 to 63 letters, digits, dots, hyphens and underscores, the first a letter or a digit", limit.Cut(r.ID, limit.FileName))
		case slices.ContainsFunc(others, func(other EngineReplica) bool { return other.ID == r.ID }):
			invalid(at+"id", "repeated id %q, want each once", r.ID)
		}
		for _, address := range []struct{ name, text string }{{"url", r.URL}, {"metricsUrl", r.MetricsURL}} {
			if problem := e.checkURL(o, address.name, address.text); problem != "" {
				invalid(at+address.name, "%s", problem)
			}
		}
		if r.URL != "" && slices.ContainsFunc(others, func(other EngineReplica) bool { return other.URL == r.URL }) {
			invalid(at+"url", "repeated URL, want each replica once")
		}
	}
	return found
}

// checkURL returns the problem of a replica's address; empty for a valid one.
func (e EnginePlace) checkURL(o EngineOffer, name, text string) string {
	switch {
	case e.Kind == EngineMock && text != "":
		return "an address with the engine mock, want none"
	case e.Kind == EngineMock, text == "" && name != "url":
		return ""
	case strings.Contains(text, "?"):
		return "URL with a query, want one without"
	}
	if err := o.CheckURL(text); err != nil {
		return err.Error()
	}
	return e.serviceURLProblem(name, text)
}

func kindList(kinds []EngineKind) string {
	texts := make([]string, len(kinds))
	for i, k := range kinds {
		texts[i] = string(k)
	}
	return listed(texts, "none")
}

// EngineMachines describes the replicas of an engine that Sortie runs itself. Each replica is a
// run of a job whose program is the server.
type EngineMachines struct {
	// Job is the id of the job.
	Job string `json:"job"`
	// Count is the number of replicas.
	Count int `json:"count"`
	// Port is the port of the server in its machine. Machines that share the network of a host
	// get a port each instead.
	Port int `json:"port"`
	// Exec: the client that stored the pool had the scope exec.
	Exec bool `json:"exec,omitempty"`
}

// DefaultReplicaPort is the port of EngineMachines without one.
const DefaultReplicaPort = 8080

// checkMachines returns the faults of the replicas that Sortie runs.
func (e EnginePlace) checkMachines() (found []*fault.Fault) {
	invalid := func(field, format string, args ...any) {
		found = append(found, fault.Invalid("engine.machines"+field, format, args...))
	}
	m := *e.Machines
	if e.Kind == EngineMock || e.Kind == EngineOpenAI {
		invalid("", "machines with the engine %s, which has no server of its own, want replicas", e.Kind)
	}
	if len(e.Replicas) > 0 {
		invalid("", "machines beside replicas, want one of both")
	}
	if !limit.ValidName(m.Job) {
		invalid(".job", "missing or malformed job %q, want the id of a job", limit.Cut(m.Job, limit.FileName))
	}
	if m.Count < 1 || m.Count > MaxReplicas {
		invalid(".count", "%d is out of range, want 1 to %d", m.Count, MaxReplicas)
	}
	if m.Port < 1 || m.Port > 65535 {
		invalid(".port", "%d is out of range, want 1 to 65535", m.Port)
	}
	return found
}
