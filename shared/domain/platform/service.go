package platform

import (
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// DefaultSlots returns the slots of a replica whose engine reports none. Servers that batch their
// requests and queue the rest themselves have many.
func (k EngineKind) DefaultSlots() int {
	switch k {
	case EngineVLLM, EngineTGI, EngineTriton:
		return 64
	case EngineOpenAI:
		return 16
	case EngineLlamaCpp, EngineMock:
	}
	return 1
}

// WithSlots returns the place with the slots that its engines report; 0 is an unknown number. The
// place then keeps the slots of before, if that has the same servers.
func (e EnginePlace) WithSlots(reported int, before *EnginePlace) EnginePlace {
	switch {
	case !e.AutoSlots:
	case reported > 0:
		e.Slots = min(reported, MaxReplicaSlots)
	case before != nil && before.AutoSlots && before.Kind == e.Kind && slices.Equal(before.Replicas, e.Replicas):
		e.Slots = before.Slots
	default:
		e.Slots = e.Kind.DefaultSlots()
	}
	return e
}

// maxEngineModel is the longest name of a model of an engine, in bytes.
const maxEngineModel = 255

// checkService returns the faults of the name of the model and of the secret of an engine.
func (e EnginePlace) checkService() (found []*fault.Fault) {
	if len(e.EngineModel) > maxEngineModel || !limit.Printable(e.EngineModel) {
		found = append(found, fault.Invalid("engine.engineModel", "malformed name of a model, want at most %d printable bytes", maxEngineModel))
	}
	switch service := e.Kind == EngineOpenAI; {
	case !service && e.SecretRef != "":
		found = append(found, fault.Invalid("engine.secretRef", "a secret with the engine %s, want none: only the engine %s has a key", limit.Cut(string(e.Kind), limit.FileName), EngineOpenAI))
	case service && !limit.ValidName(e.SecretRef):
		found = append(found, fault.Invalid("engine.secretRef", "missing or malformed name %q, want that of the secret with the key of the service", limit.Cut(e.SecretRef, limit.FileName)))
	}
	return found
}

// serviceURLProblem returns the problem of the address of an EngineOpenAI; empty for a valid one
// and for other engines.
func (e EnginePlace) serviceURLProblem(name, text string) string {
	switch {
	case e.Kind != EngineOpenAI:
		return ""
	case name != "url":
		return "an address of metrics with the engine openai, want none"
	case !strings.HasPrefix(text, "https://"):
		return "an address without TLS, want the base URL of the service, such as https://api.example.com/v1"
	}
	return ""
}

// ModelName returns the name of a model in requests to the engine. catalog is the name that the
// catalog has for it. It is empty for an engine that serves only one model.
func (e EnginePlace) ModelName(catalog string) string {
	switch {
	case e.EngineModel != "":
		return e.EngineModel
	case catalog == "" && e.Kind == EngineOpenAI:
		return e.Model
	}
	return catalog
}
