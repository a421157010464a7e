package catalog

import (
	"encoding/json"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Kind is the kind of the resources of models.
const Kind = "model"

// Stored is a model with the version of its record.
type Stored struct {
	Model
	Version int64
}

// Tag is the entity tag of a version of a model, with its quotes. A model that was deleted and
// created again has other tags.
func (s Stored) Tag() string { return fmt.Sprintf(`"%d-%x"`, s.Version, s.CreatedAt.UnixNano()) }

// Resource returns the record of the model.
func (s Stored) Resource() (port.Resource, error) {
	document, err := json.Marshal(s.Model)
	if err != nil {
		return port.Resource{}, fmt.Errorf("cannot encode model %s: %w", s.ID, err)
	}
	return port.Resource{ResourceRef: Ref(s.Tenant, s.ID), Version: s.Version, Labels: s.Labels(), CreatedAt: s.CreatedAt, Document: document}, nil
}

// Ref returns the key of the record of a model.
func Ref(tenant, id string) port.ResourceRef {
	return port.ResourceRef{Tenant: tenant, Kind: Kind, ID: id}
}

// Decode reads the record of a model. Fault: Internal for a malformed record.
func Decode(r port.Resource) (s Stored, err error) {
	if err := json.Unmarshal(r.Document, &s.Model); err != nil {
		return s, fault.Wrap(err, fault.Internal, "unreadable record of model %s", r.ID)
	}
	s.Version = r.Version
	return s, nil
}
