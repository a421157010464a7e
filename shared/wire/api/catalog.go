package api

import (
	"bytes"
	"encoding/json"

	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// ModelDefinition converts the settings of a model. The fault is InvalidRequest, with the field
// signed or signature, if these two contradict each other.
func ModelDefinition(in contract.ModelSettings) (d catalog.Definition, err error) {
	d = catalog.Definition{
		Digest: in.Digest, Source: in.Source, EngineModel: in.EngineModel, Tokenizer: in.Tokenizer, ContextTokens: in.ContextTokens, Tags: append([]string(nil), in.Tags...),
		Workloads: []port.Workload{port.WorkloadCompletion}, Price: catalog.Price{Output: catalog.DefaultOutputPrice},
	}
	if !isNull(in.Signature) {
		if d.Signature, err = json.Marshal(in.Signature); err != nil { // the form that is stored
			return d, fault.Invalid("signature", "malformed signature, want a DSSE envelope")
		}
	}
	switch signed := in.Signed; {
	case signed != nil && *signed && !d.Signed():
		return d, fault.Invalid("signature", "missing signature, want a DSSE envelope for a model that is signed")
	case signed != nil && !*signed && d.Signed():
		return d, fault.Invalid("signed", "a model with a signature is signed, want true or none")
	}
	d.Split, d.Shadow = sharesOf(in.Split), sharesOf(in.Shadow)
	for _, e := range in.Engines {
		d.Engines = append(d.Engines, platform.EngineKind(e))
	}
	if in.Workloads != nil {
		d.Workloads = nil
	}
	for _, w := range in.Workloads {
		d.Workloads = append(d.Workloads, port.Workload(w))
	}
	if p := in.Price; p != nil {
		d.Price.Input, d.Price.Cached = p.Input, p.Cached
		if p.Output != nil {
			d.Price.Output = *p.Output
		}
	}
	return d, nil
}

func sharesOf(in []contract.ModelShare) (shares []catalog.Share) {
	for _, s := range in {
		shares = append(shares, catalog.Share(s))
	}
	return shares
}

func modelShares(of []catalog.Share) (shares []contract.ModelShare) {
	for _, s := range of {
		shares = append(shares, contract.ModelShare(s))
	}
	return shares
}

func isNull(value json.RawMessage) bool {
	value = bytes.TrimSpace(value)
	return len(value) == 0 || string(value) == "null"
}

// PatchModel applies a JSON merge patch (RFC 7396) to the definition of a model. decode must
// refuse unknown fields.
func PatchModel(stored catalog.Definition, patch []byte, decode func(document []byte, into any) error) (catalog.Definition, error) {
	settings := modelSettings(stored)
	settings.Signed = nil // derived from the signature
	before, err := json.Marshal(settings)
	if err != nil {
		return catalog.Definition{}, err
	}
	document, err := mergePatch(before, patch, decode)
	if err != nil {
		return catalog.Definition{}, err
	}
	var after contract.ModelSettings
	if err := decode(document, &after); err != nil {
		return catalog.Definition{}, err
	}
	return ModelDefinition(after)
}

// mergePatch applies a JSON merge patch to an object, recursively.
func mergePatch(before, patch []byte, decode func(document []byte, into any) error) ([]byte, error) {
	var changes map[string]json.RawMessage
	if err := decode(patch, &changes); err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(before, &fields); err != nil {
		return nil, err
	}
	for name, value := range changes {
		switch object := bytes.TrimSpace(value); {
		case isNull(value):
			delete(fields, name)
		case len(object) > 0 && object[0] == '{' && len(fields[name]) > 0 && fields[name][0] == '{':
			merged, err := mergePatch(fields[name], value, decode)
			if err != nil {
				return nil, err
			}
			fields[name] = merged
		default:
			fields[name] = value
		}
	}
	return json.Marshal(fields)
}

func modelSettings(d catalog.Definition) contract.ModelSettings {
	in := contract.ModelSettings{
		Digest: d.Digest, Source: d.Source, Signed: new(d.Signed()), Signature: d.Signature, EngineModel: d.EngineModel, Tokenizer: d.Tokenizer,
		ContextTokens: d.ContextTokens, Price: &contract.ModelPrice{Input: d.Price.Input, Cached: d.Price.Cached, Output: &d.Price.Output}, Tags: d.Tags,
	}
	in.Split, in.Shadow = modelShares(d.Split), modelShares(d.Shadow)
	for _, e := range d.Engines {
		in.Engines = append(in.Engines, string(e))
	}
	for _, w := range d.Workloads {
		in.Workloads = append(in.Workloads, string(w))
	}
	return in
}

// Model returns the response for a model.
func Model(m catalog.Model) contract.Model {
	found := contract.Model{
		ID: m.ID, State: string(m.State), ModelSettings: modelSettings(m.Definition),
		CreatedMS: m.CreatedAt.UnixMilli(), CreatedBy: m.CreatedBy, UpdatedMS: m.UpdatedAt.UnixMilli(), UpdatedBy: m.UpdatedBy,
	}
	if v := m.Verified; v != nil {
		found.Verified = &contract.ModelVerified{AtMS: v.At.UnixMilli(), Key: v.Key}
	}
	return found
}

// ModelDocument encodes a model for the digests in its events.
func ModelDocument(m catalog.Model) ([]byte, error) { return json.Marshal(Model(m)) }

// ModelVerification returns the response for the verification of a model. why is nil if a
// trusted key has signed it; otherwise it is the reason.
func ModelVerification(v catalog.Stored, why error) contract.ModelVerification {
	found := contract.ModelVerification{Trusted: why == nil, Model: Model(v.Model)}
	if why != nil {
		found.Reason = fault.Of(why).Message
	}
	return found
}
